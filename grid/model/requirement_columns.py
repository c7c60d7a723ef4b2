"""Requirements of many jobs as columns, which take a sixth of the memory that objects take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import overload

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import Option, Requirement, RequirementKind, filled, setters

OfJob = tuple[Requirement, ...]
"""What one job asks for."""

AT_A_TIME = 1024
"""Jobs whose requirements are made together where all are gone through."""


@dataclass(frozen=True, slots=True, eq=False)
class RequirementColumns(Sequence[OfJob]):
    """What each of n jobs asks for: a sequence of tuples, which are made when asked for.

    Job j has the requirements `first_requirement[j]` to before `first_requirement[j + 1]`, and
    requirement r the options from `first_option[r]` on in the same way. So with m requirements and
    k options in all, the shapes are (n + 1,), (m,), (m,), (m + 1,), (k,) and (k,). Both begin
    with 0.
    """

    first_requirement: Ints
    kind: npt.NDArray[np.int8]
    """Values of `RequirementKind`."""
    weight: Floats
    first_option: Ints
    value: Floats
    utility: Floats

    def __len__(self) -> int:
        return len(self.first_requirement) - 1

    @overload
    def __getitem__(self, rows: int) -> OfJob: ...
    @overload
    def __getitem__(self, rows: slice) -> list[OfJob]: ...
    def __getitem__(self, rows: int | slice) -> OfJob | list[OfJob]:
        chosen = range(len(self))[rows]
        if isinstance(chosen, int):
            return self._made(chosen, chosen + 1)[0]
        if chosen.step == 1:
            return self._made(chosen.start, max(chosen.start, chosen.stop))
        return [self._made(row, row + 1)[0] for row in chosen]

    def __iter__(self) -> Iterator[OfJob]:
        for first in range(0, len(self), AT_A_TIME):
            yield from self._made(first, min(first + AT_A_TIME, len(self)))

    def __mul__(self, times: int) -> RequirementColumns:
        """Those of the same jobs so many times, as of a list."""
        return joined([self] * times)

    @property
    def is_any(self) -> Bools:
        """Whether each job asks for anything. Shape (n,)."""
        return np.diff(self.first_requirement) > 0

    @property
    def are_right(self) -> bool:
        """Each has an option, all values are finite, and weights and utilities from 0 to 1."""
        shares = (self.weight, self.utility)
        return (
            all(bool(((share >= 0) & (share <= 1)).all()) for share in shares)
            and bool(np.isfinite(self.value).all())
            and bool((np.diff(self.first_option) > 0).all())
        )

    def take(self, rows: Ints) -> RequirementColumns:
        """Those of the given jobs, in the given order."""
        first_requirement, wanted = _inner(self.first_requirement, rows)
        first_option, options = _inner(self.first_option, wanted)
        return RequirementColumns(
            first_requirement,
            self.kind[wanted],
            self.weight[wanted],
            first_option,
            self.value[options],
            self.utility[options],
        )

    def _made(self, first: int, end: int) -> list[OfJob]:
        """The requirements of jobs `first` to before `end` as objects."""
        of_jobs = self.first_requirement[first : end + 1].tolist()
        wanted = slice(of_jobs[0], of_jobs[-1])
        of_wanted = self.first_option[wanted.start : wanted.stop + 1].tolist()
        among = slice(of_wanted[0], of_wanted[-1])
        of_options = (self.value[among].tolist(), self.utility[among].tolist())
        options: list[Option] = filled(Option, _OF_AN_OPTION, of_options)
        of_each = [
            tuple(options[one - among.start : other - among.start])
            for one, other in pairwise(of_wanted)
        ]
        kinds = [_KINDS[kind] for kind in self.kind[wanted].tolist()]
        of_requirements = (kinds, of_each, self.weight[wanted].tolist())
        made: list[Requirement] = filled(Requirement, _OF_A_REQUIREMENT, of_requirements)
        return [
            tuple(made[one - wanted.start : other - wanted.start])
            for one, other in pairwise(of_jobs)
        ]


_KINDS = tuple(RequirementKind)
_OF_AN_OPTION = setters(Option, ("value", "utility"))
_OF_A_REQUIREMENT = setters(Requirement, ("kind", "options", "weight"))


def joined(parts: Sequence[RequirementColumns]) -> RequirementColumns:
    """Those of the jobs of all parts, one after the other."""
    return RequirementColumns(
        _firsts([np.diff(part.first_requirement) for part in parts]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([part.weight for part in parts]),
        _firsts([np.diff(part.first_option) for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.utility for part in parts]),
    )


def _firsts(counts: Sequence[Ints]) -> Ints:
    """Where each begins, and where the last one ends."""
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts]))


def _inner(first: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """What of the inner columns belongs to `rows`, and where each of these begins in it."""
    counts = first[rows + 1] - first[rows]
    begins = _firsts([counts])
    return begins, np.arange(begins[-1]) + np.repeat(first[rows] - begins[:-1], counts)
