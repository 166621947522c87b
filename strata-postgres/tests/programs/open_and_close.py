"""Opens a store for writing, appends a row, closes it."""

import sys

from postgres_support import save, with_backend

url, name = sys.argv[1:]
with_backend(url, lambda backend: backend.commit([save(name)]))
