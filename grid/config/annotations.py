"""What jobs of any source get beside what they have: requirements, deadlines, input, checkpoints.

Everything is drawn from the seed, each kind from a stream of its own, for the jobs of a VO in their
order. So the same log with the same seed always gets the same, and a further kind changes nothing
in the others.
"""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt

import numpy as np

from grid.config.workload_sections import (
    AnnotatedDeadlineSection,
    AnnotatedInputSection,
    AnnotatedRequirementSection,
    AnnotateSection,
)
from grid.kernel.entity import random_stream
from grid.model.arrays import Floats, Ints
from grid.model.job import Requirement
from grid.model.job_table import JobTable
from grid.model.time import NEVER


def annotated(jobs: JobTable, wanted: AnnotateSection | None, seed: int, vo: str) -> JobTable:
    """The jobs of `vo` with what they get; they are not changed themselves."""
    if wanted is None or not len(jobs):
        return jobs
    own = seed if wanted.seed is None else wanted.seed

    def stream(kind: str) -> np.random.Generator:
        return random_stream(own, f"{kind} of {vo}")

    if wanted.requirements:
        each = [
            _requirements(len(jobs), one, stream(f"requirement {place}"))
            for place, one in enumerate(wanted.requirements)
        ]
        jobs = replace(jobs, requirements=[
            tuple(one for one in all_of_job if one is not None)
            for all_of_job in zip(*each, strict=True)
        ])  # fmt: skip
    if wanted.deadline is not None:
        jobs = replace(jobs, deadline_us=_deadlines(jobs, wanted.deadline, stream("deadlines")))
    if wanted.input is not None:
        jobs = replace(jobs, input_mb=_input_mb(len(jobs), wanted.input, stream("input")))
    if wanted.checkpointable is not None:
        has_it = stream("checkpointable").random(len(jobs)) < wanted.checkpointable
        jobs = replace(jobs, checkpointable=has_it)
    return jobs


def _requirements(
    count: int, section: AnnotatedRequirementSection, rng: np.random.Generator
) -> list[Requirement | None]:
    """The requirement of each job, None where it has none."""
    has_it = rng.random(count) < section.share
    kept = np.full(count, len(section.options))
    if section.at_most is not None:
        kept = rng.integers(1, min(section.at_most, len(section.options)) + 1, count)
    orders = np.tile(np.arange(len(section.options)), (count, 1))
    if section.order == "drawn":
        orders = rng.permuted(orders, axis=1)
    made: dict[tuple[int, ...], Requirement] = {}
    found: list[Requirement | None] = []
    for wanted, most, order in zip(has_it.tolist(), kept.tolist(), orders.tolist(), strict=True):
        values = tuple(order[:most])
        if wanted and values not in made:
            made[values] = _dealt(section, values)
        found.append(made[values] if wanted else None)
    return found


def _dealt(section: AnnotatedRequirementSection, values: tuple[int, ...]) -> Requirement:
    """The requirement with these of its values at its first places."""
    options = tuple(
        section.options[value].model_copy(update={"utility": section.options[place].utility})
        for place, value in enumerate(values)
    )
    return section.model_copy(update={"options": options}).requirement


def _deadlines(jobs: JobTable, section: AnnotatedDeadlineSection, rng: np.random.Generator) -> Ints:
    has_it = rng.random(len(jobs)) < section.share
    slack = rng.uniform(section.least, section.most, len(jobs)) * jobs.estimate_us
    room = NEVER - 1 - jobs.submit_us
    after_us = np.minimum(np.rint(np.minimum(slack, 9e18)).astype(np.int64), room)
    return np.where(has_it, jobs.submit_us + np.maximum(after_us, 1), NEVER)


def _input_mb(count: int, section: AnnotatedInputSection, rng: np.random.Generator) -> Floats:
    has_it = rng.random(count) < section.share
    variance = log(1.0 + section.cv**2)
    size = np.exp(rng.standard_normal(count) * sqrt(variance) - variance / 2.0) * section.mean_mb
    return np.where(has_it, np.minimum(size, 1e12), 0.0)
