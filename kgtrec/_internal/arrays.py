"""Short names for the types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Float64 = npt.NDArray[np.float64]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]
Integers = npt.NDArray[np.integer[Any]]
Positions = npt.NDArray[np.signedinteger[Any]]
