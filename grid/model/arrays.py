"""Types of arrays: integers, floats and bools."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
SomeInts = npt.NDArray[np.signedinteger[Any]]
"""Integers of any width."""
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
