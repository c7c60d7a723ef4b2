"""Which form of a function is called: the compiled one, or the plain one until that is there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from grid.model.compiled import _ask_before_compiling, inlined, kernel, plain_while


@inlined
def _half(number: int) -> int:
    return number // 2


@kernel(allocates=False)
def _halves(numbers: Any) -> int:
    total = 0
    for number in numbers:
        total += _half(number)
    return total


@pytest.mark.skipif(not hasattr(_halves, "signatures"), reason="nothing is compiled here")
def test_a_kernel_is_plain_until_nobody_says_so_and_is_asked_at_each_call() -> None:
    compiled: Any = _halves
    numbers, answers = np.array([5, 6, -3]), [True, True, False]
    asked: list[bool] = []

    def are_plain() -> bool:
        asked.append(answers.pop(0))
        return asked[-1]

    plain_while(are_plain)
    try:
        forms = [(_halves(numbers), len(compiled.signatures)) for _ in range(5)]
    finally:
        plain_while()
    assert forms == [(3, 0), (3, 0), (3, 1), (3, 1), (3, 1)]
    assert asked == [True, True, False]


def test_a_numba_that_asks_nobody_is_left_as_it_is() -> None:
    other = SimpleNamespace(py_func=divmod)
    _ask_before_compiling(other, lambda: True)
    assert vars(other) == {"py_func": divmod}


def test_what_is_put_into_others_is_plain_where_python_calls_it() -> None:
    assert _half(7) == 3
    assert not getattr(_half, "signatures", [])
