"""Makes the mutants importable for the test that judges them and for each other."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
