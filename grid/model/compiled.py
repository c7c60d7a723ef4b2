"""How functions are compiled: what Python calls, and what only compiled code calls.

Most of what numba takes to compile a function is not the function. It makes two more of each, one
for calls from Python and one for calls from C, and each takes apart every array that it is given;
and it counts the references to all arrays that a function handles. So nothing gets a form for C,
only a `kernel` gets one for Python, and what makes no array says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

# Not all of its options are in its types.
_njit: Any = njit
_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(*, allocates: bool = True, **options: Any) -> Callable[[_Function], _Function]:
    """A compiled function that Python calls; kept on disk.

    One that `allocates` nothing may slice arrays, but must not make any, nor return any; numba
    refuses most of what does.
    """
    made: Callable[[_Function], _Function] = _njit(cache=True, **_options(allocates, options))
    return made


def inner(*, allocates: bool = True, **options: Any) -> Callable[[_Function], _Function]:
    """A part of compiled functions. Called from Python, it is a plain Python function."""

    def made(function: _Function) -> _Function:
        said = _options(allocates, {"no_cpython_wrapper": True, **options})
        compiled: Any = _njit(**said)(function)
        if compiled is not function:
            # What numba takes the function for where compiled code names it.
            function.compiled = compiled  # type: ignore[attr-defined]
            function._numba_type_ = compiled._numba_type_  # type: ignore[attr-defined]
        return function

    return made


def inlined(function: _Function) -> _Function:
    """A part that allocates nothing, put into its callers before they are compiled."""
    made: _Function = _njit(inline="always", **_options(False, {}))(function)
    return made


def _options(allocates: bool, more: dict[str, Any]) -> dict[str, Any]:
    """All that numba would else take over from whatever function happens to be compiled first.

    A count of references is an atomic instruction, and a loop over a few arrays is full of them:
    they took two thirds of the time of a pool under conservative backfilling.
    """
    said = {"no_cfunc_wrapper": True, "_nrt": allocates}
    return said | {"forceinline": False, "error_model": "python"} | more
