"""Makes `sqlite_support`, which the tests and their child programs share, importable."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
