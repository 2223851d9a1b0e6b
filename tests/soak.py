"""Whether `make soak` runs: it sets IOLENS_RANDOM=1, and tests that have a long form then take it."""

from __future__ import annotations

import os
from typing import Final

IS_SOAK: Final = os.environ.get("IOLENS_RANDOM") == "1"
