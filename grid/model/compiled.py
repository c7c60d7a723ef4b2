"""Decorators of compiled functions: kernels, which Python calls, and functions that they call.

An interpreted and a compiled function return bit-identical results: none sums an array (NumPy and
numba add in different orders) or calls a function, such as a power, that each implements itself.

A kernel of which numba's cache has nothing is interpreted until interpreted kernels have taken
`INTERPRETED_SECONDS` of this process, then compiled. A small first run ends before that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.extending import overload, register_jitable

INTERPRETED_SECONDS = 2.0
_njit: Any = njit
_overload: Any = overload
_register: Any = register_jitable
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Interpreted:
    """CPU seconds of interpreted kernels in this process, and the limit."""

    spent_s = 0.0
    limit_s = INTERPRETED_SECONDS


def interpreted_seconds() -> float:
    """CPU seconds that this process has spent on interpreted kernels."""
    return _Interpreted.spent_s


def compile_kernels() -> None:
    """From now on, compile a kernel at its first call."""
    _Interpreted.limit_s = 0.0


def kernel(*, allocates: bool = True, **options: Any) -> Callable[[_Function], _Function]:
    """A compiled function that Python calls, cached on disk.

    With `allocates` false it may slice arrays, but neither makes nor returns any.
    """
    options = _options(allocates) | options

    def decorate(function: _Function) -> _Function:
        compiled: Any = _njit(cache=True, **options)(function)
        if compiled is function or _is_cached(compiled):
            return compiled  # type: ignore[no-any-return]
        return _interpreted_at_first(function, compiled, options)

    return decorate


def _is_cached(compiled: Any) -> bool:
    folder, function = Path(compiled.stats.cache_path), compiled.py_func
    return any(folder.glob(f"*.{function.__name__}-*.nbi"))


def _interpreted_at_first(function: _Function, compiled: Any, options: dict[str, Any]) -> _Function:
    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        if _Interpreted.spent_s >= _Interpreted.limit_s:
            return compiled(*args, **named)
        began_s = time.thread_time()
        try:
            return function(*args, **named)
        finally:
            _Interpreted.spent_s += time.thread_time() - began_s

    # What another kernel that calls this one compiles.
    _overload(call, jit_options=options, strict=False)(lambda *_, **__: function)
    return call  # type: ignore[return-value]


def inner(*, allocates: bool = True, **options: Any) -> Callable[[_Function], _Function]:
    """A function that compiled code calls. Python calls it interpreted."""
    return _register(**_options(allocates) | options)  # type: ignore[no-any-return]


def inlined(function: _Function) -> _Function:
    """An `inner` function that allocates nothing, inlined into its callers."""
    return _register(**_options(False) | {"forceinline": True})(function)  # type: ignore[no-any-return]


def _options(allocates: bool) -> dict[str, Any]:
    """Options that numba would otherwise inherit from the function compiled first.

    Reference counts are atomic instructions: without them (`_nrt` false), a pool under conservative
    backfilling takes a third of the time.
    """
    return {
        "no_cfunc_wrapper": True,
        "_nrt": allocates,
        "forceinline": False,
        "error_model": "python",
    }
