"""Compiled functions that allocate nothing: numba without its counts of references to arrays.

Each count is an atomic instruction, and a loop over a few arrays is full of them: they took two
thirds of the time of a pool under conservative backfilling. Such a function may slice arrays, and
must not make any; numba refuses what does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., Any])
_OPTIONS: dict[str, Any] = {"cache": True, "_nrt": False}


def compiled(function: _Function) -> _Function:
    made: _Function = njit(**_OPTIONS)(function)
    return made


def inlined(function: _Function) -> _Function:
    """The same, put into its callers before they are compiled."""
    made: _Function = njit(**_OPTIONS, inline="always")(function)
    return made
