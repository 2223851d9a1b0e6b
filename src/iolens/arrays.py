"""Types of NumPy arrays, named once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Columns = dict[str, NDArray[Any]]  # of one length, by name
