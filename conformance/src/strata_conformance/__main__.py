"""``python -m strata_conformance`` is ``strata-conformance``."""

import sys

from strata_conformance._cli import main

sys.exit(main())
