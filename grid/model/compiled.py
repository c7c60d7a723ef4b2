"""How functions are compiled: what Python calls, and what only compiled code calls.

Most of what numba takes to compile a function is not the function. It makes two more of each, one
for calls from Python and one for calls from C, and each takes apart every array that it is given;
and it counts the references to all arrays that a function handles. So nothing gets a form for C,
only a `kernel` gets one for Python and machine code, and what makes no array says so.

Compiled or not, a function gives the same, bit for bit: it has no sum of an array, which numpy and
numba add up in different orders, no power and no other function that each has its own form of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from numba import njit

from grid.model.linked_code import LinkedCompiler, compile_once_for_all_values

# Not all of its options are in its types.
_njit: Any = njit
_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(*, allocates: bool = True, **options: Any) -> Callable[[_Function], _Function]:
    """A compiled function that Python calls; kept on disk.

    One that `allocates` nothing may slice arrays, but must not make any, nor return any; numba
    refuses most of what does.
    """

    def made(function: _Function) -> _Function:
        compiled: Any = _njit(cache=True, **_options(allocates, options))(function)
        if compiled is not function:
            _ask_before_compiling(compiled, _kernels_are_plain)
            compile_once_for_all_values(compiled)
        return compiled  # type: ignore[no-any-return]

    return made


def _compiled() -> bool:
    return False


class _Kernels:
    """How this process calls kernels that are not compiled yet."""

    are_plain: Callable[[], bool] = staticmethod(_compiled)


_kernels = _Kernels()


def _kernels_are_plain() -> bool:
    return _kernels.are_plain()


def plain_while(are_plain: Callable[[], bool] = _compiled) -> None:
    """From now on, a kernel that is not compiled is called as a plain Python function, as long as
    `are_plain()` says so: it is asked at each such call, and may wait. By default it is never."""
    _kernels.are_plain = are_plain


@contextmanager
def plain_kernels() -> Iterator[None]:
    """Within, kernels that are not compiled are called as plain functions, and no other waits."""
    before = _kernels.are_plain
    plain_while(lambda: True)
    try:
        yield
    finally:
        plain_while(before)


def inner(*, allocates: bool = True, **options: Any) -> Callable[[_Function], _Function]:
    """A part of compiled functions. Called from Python, it is a plain Python function."""

    def made(function: _Function) -> _Function:
        said = {"no_cpython_wrapper": True, "pipeline_class": LinkedCompiler, **options}
        compiled: Any = _njit(**_options(allocates, said))(function)
        if compiled is not function:
            compile_once_for_all_values(compiled)
            # What numba takes the function for where compiled code names it.
            function.compiled = compiled  # type: ignore[attr-defined]
            function._numba_type_ = compiled._numba_type_  # type: ignore[attr-defined]
        return function

    return made


def inlined(function: _Function) -> _Function:
    """A part that allocates nothing, put into its callers before they are compiled.

    Called from Python, it is a plain Python function.
    """
    compiled: Any = _njit(inline="always", **_options(False, {}))(function)
    if compiled is not function:
        _ask_before_compiling(compiled, lambda: True)
    return compiled  # type: ignore[no-any-return]


def _ask_before_compiling(compiled: Any, is_plain: Callable[[], bool]) -> None:
    """Have the plain function answer calls for which nothing is compiled, if `is_plain()`.

    Numba asks this method for what it is to call with types that it has not met.
    """
    compile_for = getattr(compiled, "_compile_for_args", None)
    if compile_for is None:
        # Another numba: it compiles at the first call.
        return

    def form_for(*args: Any, **named: Any) -> Any:
        return compiled.py_func if is_plain() else compile_for(*args, **named)

    compiled._compile_for_args = form_for


def _options(allocates: bool, more: dict[str, Any]) -> dict[str, Any]:
    """All that numba would else take over from whatever function happens to be compiled first.

    A count of references is an atomic instruction, and a loop over a few arrays is full of them:
    they took two thirds of the time of a pool under conservative backfilling.
    """
    said = {"no_cfunc_wrapper": True, "_nrt": allocates}
    return said | {"forceinline": False, "error_model": "python"} | more
