"""What a case of verification is, and how a run of it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count, takewhile
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np

from grid.config.schema import Scenario, VoSection
from grid.config.sections import name_and_settings
from grid.lab.verify.chain import MOST_STATES, is_solved
from grid.lab.verify.controls import Jobs
from grid.lab.verify.sharing import fewest_queues, retries_fewest, retries_states
from grid.lab.verify.theory import states_of
from grid.model.arrays import Floats, Ints
from grid.model.errors import one_mistake, shorten
from grid.model.platform import REFERENCE_MIPS
from grid.model.time import SECOND_US
from grid.runtime.run import Run

WARM_UP = 0.2
"""Share of a VO's jobs, the first ones, that no steady state is measured on."""

SHUT_DOWN = 0.05
"""The same of the last ones, where there are several VOs: some end before others."""


FEWEST_RUNS = 12
"""As controls ask for (`grid.lab.verify.controls`)."""

RELAXATIONS = 5.0
"""How long warming up takes, in times after which a queue has forgotten most of its beginning."""


class Effort(NamedTuple):
    """How many runs of how many jobs each, with seeds from 1.

    In a full verification, so many runs more as precision asks for. Of a stable case, runs are
    longer and fewer where a steady state takes longer.
    """

    runs: int
    jobs: int

    def for_steady(self, least: int) -> Effort:
        """The same with at least so many jobs a run."""
        if least <= self.jobs:
            return self
        runs = ceil(self.runs * self.jobs / least)
        return Effort(min(self.runs, max(FEWEST_RUNS, runs)), least)


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
    expected. `quick` and `full` say how much is run; an exact case needs one run. `controls` says
    what is known of the jobs. The theory holds where `exponential` ones of arrivals and work are,
    and, if the case is `stable`, for a load below 1.
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
    controls: Callable[[Scenario], Jobs] | None = None
    exponential: tuple[str, ...] = ("arrivals", "work")
    stable: bool = True
    events: bool = False
    """Whether it takes the events of a run to see what is found."""


def settings_of(scenario: Scenario) -> dict[str, Any]:
    """The settings of the generator of jobs of the first VO."""
    workload = _first_vo(scenario).workload
    assert workload is not None
    return dict(workload.settings)


def generator_of(scenario: Scenario) -> str:
    """The name of the generator of jobs of the first VO; "" where it has none."""
    workload = _first_vo(scenario).workload
    return str(workload.generator) if workload is not None and workload.generator else ""


def check_theory(case: Case, scenario: Scenario) -> None:
    """Raise InputError where the theory of `case` does not speak of jobs such as those."""
    generator = generator_of(scenario)
    if case.exact and case.has_jobs and generator != "stochastic":
        found = repr(generator) if generator else "jobs of a log or a list"
        expected = "generator: stochastic, whose estimates are what its jobs take"
        raise one_mistake("workload", found, expected)
    if case.exact or generator != "stochastic":
        return
    workload = _first_vo(scenario).workload
    assert workload is not None
    if workload.seed is not None:
        found = f"{workload.seed}, the same jobs in every run"
        raise one_mistake("workload.seed", found, "none, for every run has jobs of its own")
    settings = settings_of(scenario)
    for name in case.exponential:
        if settings[name]["law"] != "exponential":
            found = shorten(str(settings[name]["law"]))
            raise one_mistake(f"{name}.law", found, f"exponential, for theory of {case.name}")
    if case.stable and _load(scenario) >= 1.0:
        load = f"a load of {_load(scenario):.6g}"
        raise one_mistake("--set", load, f"one below 1, for the steady state of {case.name}")
    if case.fewer is not None:
        case.fewer(scenario)


def jobs_for_steady(case: Case, scenario: Scenario) -> int:
    """How many jobs each VO needs until what a run finds is that of the steady state.

    A queue M/M/1 forgets its beginning as exp(-t (1 - √load)²), in mean service times, and a board
    is renewed every period.
    """
    if not case.stable or case.exact or generator_of(scenario) != "stochastic":
        return 0
    known = jobs_alone(scenario)
    period_s = scenario.protocol.snapshot_period_s or 0.0
    forgets_s = max(known.work_s / (1.0 - sqrt(_load(scenario))) ** 2, period_s)
    return ceil(RELAXATIONS * forgets_s / WARM_UP / (known.gap_s * _with_jobs(scenario)))


def _load(scenario: Scenario) -> float:
    """What the jobs ask for over what the VOs that they fit can do."""
    known = jobs_alone(scenario)
    offered = known.work_s * _mean_processors(settings_of(scenario)) / known.gap_s
    return offered / _processors(scenario)


def _processors(scenario: Scenario) -> int:
    """Of all VOs that jobs of the first one fit."""
    sizes = settings_of(scenario).get("sizes", ())
    widest = max((size["processors"] for size in sizes), default=1)
    counts = [len(vo.names) * count for vo in scenario.vos or () for count, _ in _servers(vo)]
    return sum(count for count in counts if count >= widest)


def processors_of(scenario: Scenario) -> int:
    """The processors of the first VO's first cluster, a pool."""
    processors = _first_vo(scenario).clusters[0].processors
    assert processors is not None
    return processors


def service_s(scenario: Scenario) -> float:
    """How long the first VO's first cluster, a pool, takes for a job, in the mean."""
    work_s = float(settings_of(scenario)["work"].get("mean_s", 1.0))
    return work_s * REFERENCE_MIPS / _first_vo(scenario).clusters[0].mips


def rule_of(scenario: Scenario) -> dict[str, Any]:
    """The settings of the rule of forwarding."""
    rule = scenario.protocol.when_busy
    assert not isinstance(rule, str)
    return dict(rule.settings)


def gossip_of(scenario: Scenario) -> dict[str, Any]:
    """The settings of gossip. Raises InputError where they are not those that theory speaks of."""
    overlay = scenario.protocol.information
    assert not isinstance(overlay, str)
    settings = dict(overlay.settings)
    if overlay.name != "gossip" or settings["mode"] != "push_pull" or settings["fan_out"] != 1:
        expected = "gossip with mode push_pull and fan_out 1"
        raise one_mistake("protocol.information", shorten(f"{overlay.name} {settings}"), expected)
    return settings


def vos_of(scenario: Scenario) -> int:
    """How many VOs there are."""
    return sum(len(vo.names) for vo in scenario.vos or ())


def fewer_queues(scenario: Scenario) -> Fewer | None:
    """Half as many VOs, where the Markov chain of their queues is too large. Raises InputError."""
    vos, load = vos_of(scenario), _load(scenario)
    if is_solved(vos, load):
        return None
    solved = takewhile(lambda few: is_solved(few, load), count(1))
    _check_many("VOs", vos, solved, fewest_queues(load))
    return Fewer(vos, vos // 2, (f"vos={vos // 2}",))


def fewer_rejecting(scenario: Scenario) -> Fewer | None:
    """The same for VOs that reject jobs when they are full. Raises InputError."""
    vos, servers = vos_of(scenario), processors_of(scenario)
    if retries_states(vos, servers) <= MOST_STATES:
        return None
    solved = takewhile(lambda few: retries_states(few, servers) <= MOST_STATES, count(1))
    work = servers * float(settings_of(scenario)["load"])
    _check_many("VOs", vos, solved, retries_fewest(servers, work, rule_of(scenario)["hops"]))
    return Fewer(vos, vos // 2, (f"vos={vos // 2}",))


def _check_many(what: str, found: int, solved: Iterable[int], many: int) -> None:
    """Raise InputError where what is expected of so many is neither `solved` nor a limit."""
    if found < many:
        few = max(solved)
        expected = f"at most {few}, or at least {many}: theory has no exact figure for others"
        raise one_mistake("--set", f"{found} {what}", expected)


def fewer_servers(scenario: Scenario) -> Fewer | None:
    """Half as many servers beside the VO of the users, each with the same load.

    Where each job draws one server there is nothing to extrapolate. Raises InputError.
    """
    servers = vos_of(scenario) - 1
    if servers <= 2 or drawn_of(scenario) == 1:
        return None
    _check_many("servers", servers, (1, 2), fewest_queues(_load(scenario)))
    half = servers // 2
    gap_s = settings_of(scenario)["arrivals"]["mean_s"] * servers / half
    return Fewer(servers, half, (f"servers={half}", f"gap_s={gap_s!r}"))


def jobs_of_servers(scenario: Scenario) -> Jobs:
    """As `jobs_at_one_pool`, where all VOs but the first are servers, of one job at a time."""
    return jobs_alone(scenario)._replace(servers=vos_of(scenario) - 1)


def is_chain(scenario: Scenario) -> bool:
    """Whether the machines are so few that the Markov chain of their queues can be solved."""
    d, load = drawn_of(scenario), settings_of(scenario)["load"]
    if name_and_settings(_first_vo(scenario).selection)[0] == "least_loaded":
        d = machines_of(scenario)
    return states_of(machines_of(scenario), d, load) <= MOST_STATES


def fewer_machines(scenario: Scenario) -> Fewer | None:
    """Half as many machines, where the limit of many is expected. Raises InputError."""
    machines, d, load = machines_of(scenario), drawn_of(scenario), _load(scenario)
    if is_chain(scenario) or d == 1:
        return None
    solved = takewhile(lambda few: states_of(few, min(d, few), load) <= MOST_STATES, count(1))
    _check_many("machines", machines, solved, fewest_queues(load))
    return Fewer(machines, machines // 2, (f"machines={machines // 2}",))


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
    """The rows of jobs in the steady state: while no VO begins and none ends. Shape (jobs,)."""
    return steady_rows(run.results.vo, run.results.submit_us)


def steady_rows(vo: Ints, submit_us: Ints) -> Ints:
    """The same, from the columns."""
    of_vos = [np.sort(submit_us[vo == number]) for number in np.unique(vo)]
    begin = max(times[int(len(times) * WARM_UP)] for times in of_vos)
    last = 1.0 - (SHUT_DOWN if len(of_vos) > 1 else 0.0)
    end = min(times[max(1, int(len(times) * last)) - 1] for times in of_vos)
    return np.flatnonzero((submit_us >= begin) & (submit_us <= end))


def jobs_at_one_pool(scenario: Scenario) -> Jobs:
    """What is known of the jobs, also how long they would wait for one pool of all servers."""
    jobs, cpus = jobs_alone(scenario), 0
    for vo in scenario.vos or ():
        if any(speed != REFERENCE_MIPS for _, speed in _servers(vo)):
            return jobs
        cpus += len(vo.names) * sum(count for count, _ in _servers(vo))
    return jobs._replace(servers=cpus)


def jobs_alone(scenario: Scenario) -> Jobs:
    """What is known of the jobs of all VOs together, of which those with any are alike."""
    vo, settings = _first_vo(scenario), settings_of(scenario)
    work_s = float(settings["work"].get("mean_s", 1.0))
    gap_s = settings["arrivals"].get("mean_s")
    if settings.get("load") is not None:
        capacity = sum(count * speed for count, speed in _servers(vo)) / REFERENCE_MIPS
        gap_s = work_s * _mean_processors(settings) / (capacity * settings["load"])
    assert gap_s is not None
    return Jobs(work_s, float(gap_s) / _with_jobs(scenario), 0)


def _with_jobs(scenario: Scenario) -> int:
    """How many VOs have jobs."""
    return sum(len(one.names) for one in scenario.vos or () if one.workload is not None)


def _mean_processors(settings: Mapping[str, Any]) -> float:
    sizes = settings.get("sizes", ({"processors": 1, "share": 1.0},))
    shares = sum(size["share"] for size in sizes)
    return float(sum(size["processors"] * size["share"] for size in sizes) / shares)


def _servers(vo: VoSection) -> list[tuple[int, float]]:
    """Processors of the VO's clusters, and their MIPS."""
    found: list[tuple[int, float]] = []
    for cluster in vo.clusters:
        machines = cluster.machines if isinstance(cluster.machines, tuple) else ()
        found += [(one.count * one.cpus, one.mips) for one in machines]
        found += [(cluster.processors, REFERENCE_MIPS)] if cluster.processors else []
    return found


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
