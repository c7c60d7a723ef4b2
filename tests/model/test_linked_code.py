"""What only compiled code calls is compiled once, linked into kernels, and never machine code."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from grid.model.arrays import Ints
from grid.model.compiled import inner

# Not one of our kernels: what is kept on disk from the last test would not be compiled.
callable_from_python: Any = numba.njit
pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled here")


@inner(allocates=False)
def _sum_from(numbers: Ints, first: int, doubled: bool) -> int:
    total = 0
    for number in numbers[first:]:
        total += number
    return 2 * total if doubled else total


@inner(allocates=False)
def _alone(number: int) -> int:
    return number + 1


@inner(allocates=False)
def _from_either(numbers: Ints, place: int) -> int:
    if numbers[place] < 0:
        raise ValueError("a number below zero")
    return (
        _sum_from(numbers, 0, True) + _sum_from(numbers, 1, False) + _sum_from(numbers, place, True)
    )


@callable_from_python
def _all_sums(numbers: Ints, place: int) -> int:
    return _from_either(numbers, place) + _sum_from(numbers, 2, False)


@inner()
def _ordered(numbers: Ints) -> Ints:
    made = np.sort(numbers)
    return made[made > 0]


@callable_from_python
def _ordered_twice(numbers: Ints) -> tuple[Ints, Ints]:
    return _ordered(numbers), _ordered(-numbers)


def compiled_form(function: Any) -> Any:
    return function.compiled


def test_constants_share_what_is_compiled() -> None:
    numbers = np.array([1, 2, 4, 8])
    assert _all_sums(numbers, 3) == 30 + 14 + 16 + 12
    assert len(compiled_form(_sum_from).signatures) == 1


def has_machine_code(function: Any) -> bool:
    (made,) = function.overloads.values()
    engine = made.library.codegen._engine
    return bool(engine.is_symbol_defined(made.fndesc.llvm_func_name))


def test_a_part_is_no_machine_code_of_its_own() -> None:
    compiled_form(_alone).compile((numba.int64,))
    assert not has_machine_code(compiled_form(_alone))
    assert _all_sums(np.array([1, 2, 4, 8]), 3) == 72
    assert has_machine_code(_all_sums)


def test_an_error_in_a_part_comes_out_of_the_kernel() -> None:
    with pytest.raises(ValueError, match="a number below zero"):
        _all_sums(np.array([1, -2]), 1)


def test_arrays_that_a_part_makes_outlive_it() -> None:
    first, second = _ordered_twice(np.array([3, -1, 2, -5]))
    assert (first.tolist(), second.tolist()) == ([2, 3], [1, 5])


def test_a_part_is_a_plain_function_for_python() -> None:
    assert _sum_from(np.array([1, 2]), 1, True) == 4
