"""Many short runs in virtual time with random faults, validated by all checkers."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from grid.config.build import Grid
from grid.config.faults import FaultsSection
from grid.config.random_scenarios import random_faults, with_random_decisions
from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.config.wrapped import virtual_rules
from grid.model.errors import InputError, PluginFailed, only_on_ray
from grid.model.time import from_seconds, to_seconds
from grid.results.checkers import check
from grid.runtime.sequential import NeverEnds, run_sequential

SEEDS_A_TASK = 25
LONGEST = 100
"""Limit of messages after all faults have healed, as a multiple of those of a run without faults.
Before that there is none: lost messages are resent without limit."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A scenario without faults, and the length and messages of a run of it.

    With `decisions` the protocol's policies are drawn for each seed, too.
    """

    scenario: Scenario
    file: str
    lasts_s: float
    messages: int
    decisions: bool = False


class Trial(NamedTuple):
    """The result of a seed: a line for each broken rule."""

    seed: int
    broken: list[str]
    details: str = ""
    """The traceback of a plugin that failed."""


Progress = Callable[[int, int], None]
"""Called with the number of seeds tried, and of those with violations."""


def subject_of(scenario: Scenario, file: str, decisions: bool = False) -> Subject:
    """Run the scenario once, without faults. Raises InputError."""
    scenario = scenario.model_copy(update={"faults": None})
    grid, _ = realize(scenario, file)
    outcome = run_sequential(grid)
    results = outcome.results()
    ends = results.outcome.end_us if len(results) else results.submit_us
    lasts_s = max(1.0, to_seconds(int(ends.max(initial=0))))
    return Subject(scenario, file, lasts_s, outcome.messages, decisions)


def scenario_of(subject: Subject, seed: int) -> Scenario:
    """The scenario under `seed`, without faults."""
    scenario = subject.scenario.model_copy(update={"seed": seed})
    return with_random_decisions(scenario, seed) if subject.decisions else scenario


def faults_of(subject: Subject, seed: int) -> tuple[Grid, FaultsSection]:
    """The grid and its faults under `seed`."""
    scenario = scenario_of(subject, seed)
    grid, _ = realize(scenario, subject.file)
    faults = random_faults(seed, grid.names, grid.vos, scenario.network, subject.lasts_s)
    return replace(grid, settings=grid.settings.model_copy(update={"faults": faults})), faults


def attempt(subject: Subject, seed: int) -> Trial:
    """Run the subject with the workload and faults of `seed`."""
    try:
        grid, faults = faults_of(subject, seed)
        limit = LONGEST * subject.messages
        healed_us = from_seconds(faults.heal_s) + virtual_rules(grid).longest_wait_us
        outcome = run_sequential(grid, limit=limit, limit_from_us=healed_us)
        results = outcome.results()
        errors = check(results, grid.directory, sum(grid.jobs_by_vo()))
        stalled = [] if outcome.stalled is None else [outcome.stalled]
        return Trial(seed, stalled + outcome.broken_rules() + errors)
    except InputError:
        raise
    except PluginFailed as error:
        return Trial(seed, [str(error)], error.details)
    except NeverEnds as error:
        return Trial(seed, [str(error)])
    except Exception as error:
        # Any exception of an entity is a finding.
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
        return Trial(seed, [" ".join(text.split())])


def run_chaos(
    subject: Subject,
    seeds: Sequence[int],
    *,
    in_process: bool = False,
    address: str | None = None,
    cpus: int | None = None,
    progress: Progress | None = None,
) -> list[Trial]:
    """Try all seeds; the trials with violations, by seed. Raises InputError."""
    if in_process:
        only_on_ray(address=address, cpus=cpus)
        trials = ([attempt(subject, seed)] for seed in seeds)
        return _failing(trials, progress)
    from grid.runtime.cluster import ray_cluster

    with ray_cluster(address, cpus):
        return _failing(_in_tasks(subject, seeds, cpus), progress)


def _failing(batches: Iterator[list[Trial]], progress: Progress | None) -> list[Trial]:
    failing: list[Trial] = []
    tried = 0
    for batch in batches:
        tried += len(batch)
        failing += [trial for trial in batch if trial.broken]
        if progress is not None:
            progress(tried, len(failing))
    return sorted(failing)


def _in_tasks(subject: Subject, seeds: Sequence[int], most: int | None) -> Iterator[list[Trial]]:
    """Trials in batches, as Ray tasks, `most` at once; None: a few of them wait for each CPU."""
    import ray

    @ray.remote(num_cpus=1)
    def batch(subject: Subject, seeds: Sequence[int]) -> list[Trial]:
        return [attempt(subject, seed) for seed in seeds]

    shared = ray.put(subject)
    parts = iter([seeds[i : i + SEEDS_A_TASK] for i in range(0, len(seeds), SEEDS_A_TASK)])
    there = max(1, int(ray.cluster_resources().get("CPU", 1)))
    ahead = most if most is not None and most < there else 3 * there
    running = [batch.remote(shared, part) for _, part in zip(range(ahead), parts, strict=False)]
    while running:
        ready, running = ray.wait(running)
        yield ray.get(ready[0])
        running += [batch.remote(shared, part) for part in [next(parts, None)] if part is not None]
