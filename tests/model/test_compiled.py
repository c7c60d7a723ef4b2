"""What is compiled in fewer pieces gives what Python gives, from the cache, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from grid.model import compiled
from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.model.in_place import in_place


class Pair(NamedTuple):
    """Columns of one type, which numba keeps in another way than columns of different types."""

    first: Ints
    second: Ints


class Columns(NamedTuple):
    """A tuple in a tuple, arrays and numbers."""

    pair: Pair
    worth: Floats
    limit: int


@inner(allocates=False)
def add_up(columns: Columns, times: int) -> float:
    total = 0.0
    for place in range(len(columns.worth)):
        if columns.pair.first[place] < columns.limit:
            total += columns.worth[place] * times
    return total


@inner(allocates=False)
def note(pair: Pair, place: int, value: int) -> None:
    pair.second[place] = value


@kernel(allocates=False)
def by_address(columns: Columns) -> float:
    columns = in_place(columns)
    found = add_up(columns, 3) + add_up(columns, columns.limit)
    for place in range(len(columns.worth)):
        note(columns.pair, place, place * columns.limit)
    return found


def test_a_tuple_in_place_is_the_tuple() -> None:
    """It is read and written through, as deep as it goes."""
    made = [
        Columns(Pair(np.arange(5), np.zeros(5, np.int64)), np.linspace(0, 2, 5), 3)
        for _ in range(2)
    ]
    assert by_address(made[0]) == by_address.py_func(made[1])  # type: ignore[attr-defined]
    assert made[0].pair.second.tolist() == made[1].pair.second.tolist() == [0, 3, 6, 9, 12]


def test_a_part_gets_one_form_for_all_numbers() -> None:
    """Not one for a number that stands in the call, and one for any."""
    columns = Columns(Pair(np.arange(2), np.zeros(2, np.int64)), np.ones(2), 3)
    by_address(columns)
    assert len(add_up.compiled.signatures) == 1  # type: ignore[attr-defined]


PROGRAM = """
from pathlib import Path
import numpy as np
from grid.model.compiled import inner, kernel

@inner(allocates=False)
def checked(value, limit):
    if value > limit:
        raise ValueError("too much")
    return value * 2

@kernel(allocates=False)
def doubled(values, limit):
    total = 0
    for value in values:
        total += checked(value, limit)
    return total

print(doubled(np.arange(10), 9), sum(doubled.stats.cache_hits.values()))
try:
    doubled(np.arange(10), 5)
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("tried", [compiled._TRIED, "none."])
def test_what_comes_from_the_cache_is_what_was_compiled(
    tried: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors of a part, which need its environment, as well; with another numba, too."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    program = tmp_path / "program.py"
    version = f"import numba\nif {tried!r} == 'none.':\n    numba.__version__ = 'of another time'\n"
    program.write_text(version + PROGRAM)
    for hits in (0, 1):
        ran = subprocess.run(
            [sys.executable, str(program)], capture_output=True, text=True, check=True
        )
        assert ran.stdout.splitlines() == [f"90 {hits}", "too much"]
