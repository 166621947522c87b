"""Opens a store for writing, appends a row, closes it."""

import sys

from sqlite_support import save, with_backend

path, name = sys.argv[1:]
with_backend(path, lambda backend: backend.commit([save(name)]))
