"""Makes `machine_support` and `harm_support` importable."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
