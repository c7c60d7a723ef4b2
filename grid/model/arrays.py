"""The types of arrays that columns are: one for whole numbers, one for numbers, one for flags."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
SomeInts = npt.NDArray[np.signedinteger[Any]]
"""Whole numbers that are held as small as they are."""
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
