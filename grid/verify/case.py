"""What a case of verification is, and how a run of it is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.time import SECOND_US
from grid.runtime.run import Run
from grid.scenario.schema import Scenario, VoSection
from grid.scenario.sections import name_and_settings

WARM_UP = 0.1
"""Share of a VO's jobs, the first ones, that no steady state is measured on."""


class Effort(NamedTuple):
    """How many runs of how many jobs each, with seeds from 1."""

    runs: int
    jobs: int


EXACT_QUICK, EXACT_FULL = Effort(1, 20_000), Effort(1, 200_000)


class Fewer(NamedTuple):
    """Settings with which a scenario of `many` VOs has `few`."""

    many: int
    few: int
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario of `scenarios/verify`, and what mathematics says of it.

    `expected` gives figures by name from the scenario with all its settings filled in, `found` the
    same figures of one run. Of an `exact` case every figure is a number of differences, and 0 is
    expected. `quick` and `full` say how much is run; an exact case needs one run.
    """

    name: str
    title: str
    source: str
    expected: Callable[[Scenario], Mapping[str, float]]
    found: Callable[[Run], Mapping[str, float]]
    quick: Effort = EXACT_QUICK
    full: Effort = EXACT_FULL
    exact: bool = False
    has_jobs: bool = True
    """Whether the number of jobs is a parameter."""
    fewer: Callable[[Scenario], Fewer | None] | None = None
    """The same with fewer VOs, where what is expected is the limit of many; None: it is not."""


def settings_of(scenario: Scenario) -> dict[str, Any]:
    """The settings of the generator of jobs of the first VO."""
    workload = _first_vo(scenario).workload
    assert workload is not None
    return dict(workload.settings)


def processors_of(scenario: Scenario) -> int:
    """The processors of the first VO's first cluster, a pool."""
    processors = _first_vo(scenario).clusters[0].processors
    assert processors is not None
    return processors


def rule_of(scenario: Scenario) -> dict[str, Any]:
    """The settings of the rule of forwarding."""
    rule = scenario.protocol.when_busy
    assert not isinstance(rule, str)
    return dict(rule.settings)


def vos_of(scenario: Scenario) -> int:
    """How many VOs there are."""
    return sum(len(vo.names) for vo in scenario.vos or ())


def half_the_vos(scenario: Scenario) -> Fewer | None:
    """Half as many VOs, where there are more than two."""
    vos = vos_of(scenario)
    return Fewer(vos, vos // 2, (f"vos={vos // 2}",)) if vos > 2 else None


def half_the_servers(scenario: Scenario) -> Fewer | None:
    """Half as many servers beside the VO of the users, each with the same load."""
    servers = vos_of(scenario) - 1
    if servers <= 2:
        return None
    half = servers // 2
    gap_s = settings_of(scenario)["arrivals"]["mean_s"] * servers / half
    return Fewer(servers, half, (f"servers={half}", f"gap_s={gap_s!r}"))


def machines_of(scenario: Scenario) -> int:
    """The machines of the first VO's first cluster."""
    machines = _first_vo(scenario).clusters[0].machines
    assert isinstance(machines, tuple)
    return sum(machine.count for machine in machines)


def drawn_of(scenario: Scenario) -> int:
    """How many machines the first VO's selection draws, where it is `power_of_d`; else two."""
    name, settings = name_and_settings(_first_vo(scenario).selection)
    return int(str(dict(settings).get("d", 2))) if name == "power_of_d" else 2


def _first_vo(scenario: Scenario) -> VoSection:
    assert scenario.vos is not None
    return scenario.vos[0]


def steady(run: Run) -> Ints:
    """The rows of jobs in the steady state: all but the first of each VO. Shape (jobs,)."""
    vo, submit_us = run.results.vo, run.results.submit_us
    kept = []
    for number in range(int(vo.max()) + 1):
        rows = np.flatnonzero(vo == number)
        rows = rows[np.argsort(submit_us[rows], kind="stable")]
        kept.append(rows[int(len(rows) * WARM_UP) :])
    return np.concatenate(kept)


def waits_s(run: Run, rows: Ints) -> Floats:
    """From submission to start, of the jobs in `rows`."""
    return _seconds(run.results.outcome.start_us[rows] - run.results.submit_us[rows])


def times_in_system_s(run: Run, rows: Ints) -> Floats:
    """From submission to end, of the jobs in `rows`."""
    return _seconds(run.results.outcome.end_us[rows] - run.results.submit_us[rows])


def lost(run: Run, rows: Ints) -> float:
    """The share of the jobs in `rows` that never started."""
    return float((run.results.outcome.start_us[rows] < 0).mean())


def _seconds(times_us: Ints) -> Floats:
    seconds: Floats = times_us / float(SECOND_US)
    return seconds
