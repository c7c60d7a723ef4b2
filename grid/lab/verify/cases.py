"""The cases of `grid verify`: scenarios, and what queueing theory says of them."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, gamma, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grid.config.schema import Scenario
from grid.lab.verify import theory
from grid.model.arrays import Floats, Ints
from grid.model.errors import input_error, shorten
from grid.model.fields import REFERENCE_MIPS
from grid.model.job_results import JobResults
from grid.model.platform import VirtualOrganization
from grid.model.time import SECOND_US, from_seconds
from grid.runtime.run import Run

WARM_UP = 0.2
"""The share of a VO's first jobs that are not measured."""
SHUT_DOWN = 0.05
"""The share of a VO's last jobs that are not measured if there are several VOs."""
FEWEST_RUNS = 12
"""At least as many as control variates need."""
RELAXATIONS = 5.0
"""The length of the warm-up in relaxation times of a queue."""


class Effort(NamedTuple):
    """A number of runs with seeds from 1, and the jobs of each. Full verification may add runs."""

    runs: int
    jobs: int

    def for_steady(self, least: int) -> Effort:
        """The same number of jobs in fewer runs of at least `least` jobs."""
        if least <= self.jobs:
            return self
        runs = ceil(self.runs * self.jobs / least)
        return Effort(min(self.runs, max(FEWEST_RUNS, runs)), least)


EXACT_QUICK, EXACT_FULL = Effort(1, 20_000), Effort(1, 200_000)


class Jobs(NamedTuple):
    """Control variates: what is known of the jobs of a run without running them. In seconds.

    All jobs together arrive `gap_s` apart and have exponential work of `work_s`; `servers` equal
    servers could run any of them (0: the load exceeds them).
    """

    work_s: float
    gap_s: float
    servers: int

    def expected(self) -> Floats:
        """Expected work, gap and, if known, wait for one pool of all servers. Shape (controls,)."""
        if not self.servers:
            return np.array([self.work_s, self.gap_s])
        load = self.work_s / (self.gap_s * self.servers)
        return np.array(
            [self.work_s, self.gap_s, self.work_s * theory.mmc_wait(self.servers, load)]
        )

    def found(self, results: JobResults, steady: Ints) -> Floats:
        """The same of the jobs that users submitted in a run. Shape (controls,)."""
        vos = np.unique(results.vo)
        submits = [results.submit_us[results.vo == vo] for vo in vos]
        gaps_us = [np.ptp(one) / max(1, len(one) - 1) for one in submits]
        work_us = results.estimate_us
        found = [work_us.mean(), np.mean(gaps_us) / len(vos)]
        if self.servers:
            order = np.argsort(results.submit_us, kind="stable")
            waits_us = np.empty(len(results))
            waits_us[order] = pool_waits(results.submit_us[order], work_us[order], self.servers)
            found.append(waits_us[steady].mean())
        return np.array(found) / SECOND_US


def pool_waits(submit_us: Ints, work_us: Ints, servers: int) -> list[int]:
    """The wait of every job, in order of submission, FCFS at one pool."""
    free, waits = [0] * servers, []
    for submit, work in zip(submit_us.tolist(), work_us.tolist(), strict=True):
        start = max(submit, free[0])
        heapq.heapreplace(free, start + work)
        waits.append(start - submit)
    return waits


@dataclass(frozen=True)
class Given:
    """A resolved scenario, and the numbers that theory needs of it."""

    scenario: Scenario

    @cached_property
    def first(self) -> VirtualOrganization:
        assert self.scenario.vos is not None
        return self.scenario.vos[0]

    @cached_property
    def settings(self) -> dict[str, Any]:
        assert self.first.workload is not None
        return dict(self.first.workload.settings)

    @property
    def generator(self) -> str:
        """The name of the first VO's workload generator; empty if it has none."""
        workload = self.first.workload
        return str(workload.generator) if workload is not None and workload.generator else ""

    @property
    def processors(self) -> int:
        """The CPUs of the first VO's first cluster, a pool."""
        processors = self.first.clusters[0].cpus
        assert processors is not None
        return processors

    @property
    def work_s(self) -> float:
        """Mean work of a job in seconds on the reference machine."""
        return float(self.settings["work"].get("mean_s", 1.0))

    @property
    def pool_work(self) -> float:
        """The offered load of the pool in Erlang."""
        return float(self.processors * self.settings["load"])

    @property
    def hops(self) -> int:
        rule = self.scenario.protocol.forwarding
        assert not isinstance(rule, str)
        return int(dict(rule.settings)["hops"])

    @property
    def vos(self) -> int:
        return sum(len(vo.names) for vo in self.scenario.vos or ())

    @property
    def drawn(self) -> int:
        """How many resources the first VO's selection draws: `d` of `power_of_d`, else two."""
        selection = self.first.selection
        return int(selection.settings.get("d", 2)) if selection.name == "power_of_d" else 2

    @property
    def period_s(self) -> float:
        return self.scenario.protocol.snapshots.period_s or 0.0

    @cached_property
    def jobs(self) -> Jobs:
        """The jobs of all VOs together; VOs with jobs are alike."""
        gap_s = self.settings["arrivals"].get("mean_s")
        if self.settings.get("load") is not None:
            capacity = sum(n * mips for n, mips in _servers(self.first)) / REFERENCE_MIPS
            gap_s = self.work_s * self._mean_processors / (capacity * self.settings["load"])
        assert gap_s is not None
        return Jobs(self.work_s, float(gap_s) / self._vos_with_jobs, 0)

    @property
    def load(self) -> float:
        """The offered load over the capacity of the VOs that the jobs fit."""
        sizes = self.settings.get("sizes", ())
        widest = max((size["cpus"] for size in sizes), default=1)
        counts = [len(vo.names) * n for vo in self.scenario.vos or () for n, _ in _servers(vo)]
        offered = self.jobs.work_s * self._mean_processors / self.jobs.gap_s
        return offered / sum(n for n in counts if n >= widest)

    @property
    def _vos_with_jobs(self) -> int:
        return sum(len(one.names) for one in self.scenario.vos or () if one.workload is not None)

    @property
    def _mean_processors(self) -> float:
        sizes = self.settings.get("sizes", ({"cpus": 1, "share": 1.0},))
        shares = sum(size["share"] for size in sizes)
        return float(sum(size["cpus"] * size["share"] for size in sizes) / shares)

    @property
    def jobs_for_steady(self) -> int:
        """The jobs of each VO after which a run is stationary.

        An M/M/1 queue relaxes as exp(-t (1 - √load)²), in mean service times, and snapshots are
        renewed every period.
        """
        relaxation_s = max(self.jobs.work_s / (1.0 - sqrt(self.load)) ** 2, self.period_s)
        each_s = self.jobs.gap_s * self._vos_with_jobs
        return ceil(RELAXATIONS * relaxation_s / WARM_UP / each_s)


def _servers(vo: VirtualOrganization) -> list[tuple[int, float]]:
    """CPUs of the VO's clusters, and their MIPS."""
    found: list[tuple[int, float]] = []
    for cluster in vo.clusters:
        machines = cluster.machines if isinstance(cluster.machines, tuple) else ()
        found += [(one.count * one.cpus, one.mips) for one in machines]
        found += [(cluster.cpus, REFERENCE_MIPS)] if cluster.cpus else []
    return found


def jobs_at_one_pool(given: Given) -> Jobs:
    """Controls with the wait at one pool of all servers, if these are alike."""
    servers = [
        (len(vo.names) * n, mips) for vo in given.scenario.vos or () for n, mips in _servers(vo)
    ]
    if any(mips != REFERENCE_MIPS for _, mips in servers):
        return given.jobs
    return given.jobs._replace(servers=sum(n for n, _ in servers))


# Expected values

Expected = Callable[[Given], dict[str, float]]
Measured = Callable[[Run], dict[str, float]]
WAIT, TIME, LOST = "mean wait, s", "mean time / mean work", "share of lost jobs"
OF_FIRST = "jobs of the first server / mean"
LEFT, BEGUN = "variance left per period", "exchanges that a VO begins per period"


def _mean_time(time: Callable[[Given, float], float]) -> Expected:
    return lambda given: {TIME: time(given, given.settings["load"])}


def _service_s(given: Given) -> float:
    """Mean run time of a job on the first VO's first cluster."""
    return given.work_s * REFERENCE_MIPS / given.first.clusters[0].mips


def _mg1(given: Given) -> dict[str, float]:
    if given.processors != 1:
        raise input_error("cpus", str(given.processors), "1, for theory of mg1")
    variation = variation_of(given.settings["work"])
    return {WAIT: theory.mg1_wait(given.settings["load"], variation) * _service_s(given)}


def variation_of(distribution: dict[str, float | str]) -> float:
    """Standard deviation / mean of a distribution of `grid.workload.stochastic`."""
    if "cv" in distribution:
        return float(distribution["cv"])
    if distribution["distribution"] == "weibull":
        shape = float(distribution["shape"])
        return sqrt(gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1)
    return {"exponential": 1.0, "fixed": 0.0}[str(distribution["distribution"])]


def _loss_by_size(given: Given) -> dict[str, float]:
    sizes = [size["cpus"] for size in given.settings["sizes"]]
    shares = [size["share"] for size in given.settings["sizes"]]
    mean = sum(size * share for size, share in zip(sizes, shares, strict=True))
    work = [given.pool_work * share / mean for share in shares]
    losses = theory.kaufman_roberts(given.processors, work, sizes)
    return {_of_size(size): loss for size, loss in zip(sizes, losses, strict=True)}


def _of_size(size: int) -> str:
    return f"share of lost jobs of {size} processor{'s' * (size > 1)}"


def _old_information(given: Given) -> dict[str, float]:
    if given.vos != 3:
        raise input_error("--set", f"{given.vos - 1} servers", "2, for theory of old-information")
    load = given.work_s / (given.settings["arrivals"]["mean_s"] * 2)
    period = given.period_s / given.work_s
    return {TIME: theory.periodic_updates(min(given.drawn, 2), load, period), OF_FIRST: 1.0}


def _gossip(given: Given) -> dict[str, float]:
    overlay = given.scenario.protocol.information
    settings = dict(overlay.settings)
    if overlay.name != "gossip" or settings["mode"] != "push_pull" or settings["fan_out"] != 1:
        expected, found = "gossip with mode push_pull and fan_out 1", f"{overlay.name} {settings}"
        raise input_error("protocol.information", shorten(found), expected)
    times = str(settings["times"])
    begun = {BEGUN: 1.0} if times == "poisson" else {}
    return {LEFT: theory.left_a_period(given.vos, times), **begun}


def _machines(given: Given) -> int:
    machines = given.first.clusters[0].machines
    assert isinstance(machines, tuple)
    return sum(machine.count for machine in machines)


def _capacity(given: Given) -> dict[str, float]:
    ones, wide = given.settings["sizes"]
    share = ones["share"] / (ones["share"] + wide["share"])
    return {"jobs per mean work": theory.rigid_capacity(given.processors, share)}


# Measured values


def _given(run: Run) -> Given:
    assert run.scenario is not None
    return Given(run.scenario)


def steady(run: Run) -> Ints:
    """The rows of jobs submitted while no VO warms up or shuts down. Shape (jobs,)."""
    vo, submit_us = run.results.vo, run.results.submit_us
    of_vos = [np.sort(submit_us[vo == number]) for number in np.unique(vo)]
    begin = max(times[int(len(times) * WARM_UP)] for times in of_vos)
    last = 1.0 - (SHUT_DOWN if len(of_vos) > 1 else 0.0)
    end = min(times[max(1, int(len(times) * last)) - 1] for times in of_vos)
    return np.flatnonzero((submit_us >= begin) & (submit_us <= end))


def _mean_wait(run: Run) -> dict[str, float]:
    waits_us = (run.results.outcome.start_us - run.results.submit_us)[steady(run)]
    return {WAIT: float(waits_us.mean()) / SECOND_US}


def _time(run: Run) -> dict[str, float]:
    times_us = (run.results.outcome.end_us - run.results.submit_us)[steady(run)]
    return {TIME: float(times_us.mean()) / SECOND_US / _given(run).work_s}


def _lost(run: Run) -> dict[str, float]:
    return {LOST: float((run.results.outcome.start_us[steady(run)] < 0).mean())}


def _lost_by_size(run: Run) -> dict[str, float]:
    rows = steady(run)
    processors, is_lost = run.results.processors[rows], run.results.outcome.start_us[rows] < 0
    return {
        _of_size(int(size)): float(is_lost[processors == size].mean())
        for size in np.unique(processors)
    }


def _time_and_first(run: Run) -> dict[str, float]:
    """The mean time, and the share of the first server, which is like the others."""
    vos = run.results.placement.executed_vo[steady(run)]
    return {**_time(run), OF_FIRST: float((vos == 1).mean()) * (_given(run).vos - 1)}


def _starts_a_second(run: Run) -> dict[str, float]:
    start_us = np.sort(run.results.outcome.start_us)
    first = len(start_us) // 10
    return {"jobs per mean work": (len(start_us) - first) / (start_us[-1] - start_us[first]) * 1e6}


def _gossip_exchanges(run: Run) -> dict[str, float]:
    given = _given(run)
    # A job is submitted in every period of gossip.
    period_us = from_seconds(given.settings["arrivals"]["mean_s"])
    exchanges, vos = _exchanges_of(run, period_us), given.vos
    begun = theory.exchanges_a_period(exchanges, vos)
    return {LEFT: theory.left_by(exchanges, vos), BEGUN: begun}


def _exchanges_of(run: Run, period_us: int) -> theory.Exchanges:
    """The gossip exchanges in the events of a run, until the last job is submitted."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    assert run.events is not None
    with tempfile.TemporaryDirectory(prefix="grid-verify-") as folder:
        file = Path(folder) / "events.parquet"
        run.events.write(file, run.results, run.directory)
        columns = ["time_us", "entity", "peer"]
        table = pq.read_table(file, columns=columns, filters=pc.field("event") == "status_update")
    number = {f"{name}/information": vo for vo, name in enumerate(run.directory.vos)}
    to = [number[name] for name in table["entity"].to_pylist()]
    by = [number[name] for name in table["peer"].to_pylist()]
    found = paired_messages(table["time_us"].to_pylist(), to, by, period_us)
    until = found.period <= int(run.results.submit_us.max()) // period_us
    return theory.Exchanges(*(column[until] for column in found))


def paired_messages(
    times_us: list[int], to: list[int], by: list[int], period_us: int
) -> theory.Exchanges:
    """Exchanges from messages: of two messages between a pair, the second is the reply."""
    asked: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int, int]] = []
    for time_us, receiver, sender in zip(times_us, to, by, strict=True):
        if asked.get((receiver, sender), 0):
            asked[receiver, sender] -= 1
        else:
            asked[sender, receiver] = asked.get((sender, receiver), 0) + 1
            rows.append((sender, receiver, (time_us - 2) // period_us))
    first, second, period = np.array(rows, np.int64).reshape(-1, 3).T
    return theory.Exchanges(first, second, period)


# Exact cases: every time of every job, to the microsecond

STARTS, ENDS = "starts that differ", "ends that differ"
ASSIGNMENTS = "assignments that differ"


def _lindley(run: Run) -> dict[str, float]:
    def starts(submit_us: Ints, run_us: Ints, _: Ints) -> Ints:
        return submit_us + np.array(theory.lindley_waits(submit_us, run_us), np.int64)

    return _differing(run, starts)


def _fcfs(run: Run) -> dict[str, float]:
    servers = sum(run.directory.clusters[0].cpus)

    def starts(submit_us: Ints, run_us: Ints, processors: Ints) -> Ints:
        return np.array(theory.fcfs_starts(submit_us, run_us, processors, servers), np.int64)

    return _differing(run, starts)


def _differing(run: Run, starts: Callable[[Ints, Ints, Ints], Ints]) -> dict[str, float]:
    """How many starts and ends differ from a recursion over submissions, run times and sizes."""
    results = run.results
    rows = np.argsort(results.submit_us, kind="stable")
    # Run times follow from what users submitted, so that wrong service times are found.
    speeds = {machine.mips for machine in run.directory.clusters[0].machines}
    if len(speeds) != 1:
        raise input_error("machines", f"{len(speeds)} speeds", "one, for the recursion")
    exact_us = np.rint(results.estimate_us * REFERENCE_MIPS / speeds.pop()).astype(np.int64)
    run_us = np.maximum(exact_us, 1)[rows]
    start_us = starts(results.submit_us[rows], run_us, results.processors[rows])
    return {
        STARTS: float((start_us != results.outcome.start_us[rows]).sum()),
        ENDS: float((start_us + run_us != results.outcome.end_us[rows]).sum()),
    }


def _two_vos(run: Run) -> dict[str, float]:
    """Assignment, start and end of each job of `two-vos` against the two latencies by hand."""
    network = _given(run).scenario.network
    d, between = from_seconds(network.local_latency_s), from_seconds(network.latency_s)
    second = SECOND_US
    # Submission, delay of the assignment, run time on the machine that the job ends up on.
    local, remote, refused = 4 * d, 4 * d + between, 8 * d + between
    by_hand = {
        (0, 1): (100 * second, local, 500 * second),
        (0, 2): (200 * second, remote, 50 * second),
        (1, 1): (300 * second, refused, 50 * second),
        (1, 2): (400 * second, local, 25 * second),
    }
    results, wrong = run.results, dict.fromkeys((ASSIGNMENTS, STARTS, ENDS), 0.0)
    free_at = 100 * second + 5 * d + 500 * second
    for row in range(len(results)):
        key = (int(results.vo[row]), int(results.number[row]))
        submitted, to_assign, run_us = by_hand[key]
        start = submitted + to_assign + d
        if key == (1, 1):
            start = max(start, free_at)
        wrong[ASSIGNMENTS] += int(results.placement.assigned_us[row] != submitted + to_assign)
        wrong[STARTS] += int(results.outcome.start_us[row] != start)
        wrong[ENDS] += int(results.outcome.end_us[row] != start + run_us)
    return wrong


# The table


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario of `scenarios/verify`, and what theory expects of it.

    `expected` gives values by name from the scenario, `found` the same values of a run. Values of
    an `exact` case count differences, of which 0 are expected. The theory requires exponential
    distributions of the settings in `exponential` and, if the case is `stable`, a load below 1.
    """

    name: str
    title: str
    source: str
    expected: Expected
    found: Measured
    quick: Effort = EXACT_QUICK
    full: Effort = EXACT_FULL
    exact: bool = False
    has_jobs: bool = True
    """Whether the number of jobs is a parameter."""
    controls: Callable[[Given], Jobs] | None = None
    exponential: tuple[str, ...] = ("arrivals", "work")
    stable: bool = True
    events: bool = False
    """Whether `found` reads the events of a run."""


def check_theory(case: Case, given: Given) -> None:
    """Raises InputError if the theory of `case` does not hold for the scenario."""
    generator = given.generator
    if case.exact and case.has_jobs and generator != "stochastic":
        found = repr(generator) if generator else "jobs of a log or a list"
        expected = "generator: stochastic, whose estimates are exact"
        raise input_error("workload", found, expected)
    if case.exact or generator != "stochastic":
        return
    assert given.first.workload is not None
    if given.first.workload.seed is not None:
        found = f"{given.first.workload.seed}, the same jobs in every run"
        raise input_error("workload.seed", found, "none, since runs must be independent")
    for name in case.exponential:
        if (distribution := given.settings[name]["distribution"]) != "exponential":
            expected = f"exponential, for theory of {case.name}"
            raise input_error(f"{name}.distribution", shorten(str(distribution)), expected)
    if case.stable and given.load >= 1.0:
        expected = f"one below 1, for the steady state of {case.name}"
        raise input_error("--set", f"a load of {given.load:.6g}", expected)


def _exact(name: str, title: str, source: str, found: Measured, *more: str, **how: Any) -> Case:
    nothing = dict.fromkeys((*more, STARTS, ENDS), 0.0)
    return Case(name, title, source, lambda _: nothing, found, exact=True, **how)


ROUTED: dict[str, Any] = {"quick": Effort(20, 1_000), "controls": jobs_at_one_pool}
SHARED: dict[str, Any] = {**ROUTED, "quick": Effort(20, 500)}
LOSSY: dict[str, Any] = {
    "quick": Effort(20, 2_500), "controls": lambda given: given.jobs, "exponential": ("arrivals",),
    "stable": False,
}  # fmt: skip
GOSSIP: dict[str, Any] = {
    "quick": Effort(12, 60), "full": Effort(30, 300), "exponential": (), "stable": False,
    "events": True,
}  # fmt: skip

CASES = {
    case.name: case
    for case in (
        _exact("one-server", "One server, FCFS, start by start", "Lindley 1952", _lindley),
        _exact("many-servers", "Many servers, FCFS, start by start", "Kiefer and Wolfowitz 1955",
               _fcfs),
        _exact("rigid-jobs", "Rigid jobs on one pool, FCFS, start by start",
               "Kiefer and Wolfowitz 1955 with the k-th smallest time", _fcfs),
        _exact("two-vos", "Two VOs, every time by hand from the two latencies",
               "messages of the protocol", _two_vos, ASSIGNMENTS, has_jobs=False),
        Case("mmc", "M/M/c", "Erlang C",
             lambda given: {WAIT: _service_s(given)
                            * theory.mmc_wait(given.processors, given.settings["load"])},
             _mean_wait, quick=Effort(30, 200_000), full=Effort(150, 1_000_000)),
        Case("mg1", "M/G/1", "Pollaczek and Khinchine", _mg1, _mean_wait,
             quick=Effort(30, 200_000), full=Effort(100, 1_000_000), exponential=("arrivals",)),
        Case("rigid-capacity", "Capacity of a pool for rigid jobs, FCFS",
             "1 / [(1 - p)(1 + Σ p^i / i) + p^n / n]", _capacity, _starts_a_second,
             quick=Effort(20, 10_000), full=Effort(20, 40_000), exponential=("work",),
             stable=False),
        Case("loss", "M/M/c/c: a VO that rejects jobs if it is busy", "Erlang B",
             lambda given: {LOST: theory.erlang_b(given.processors, given.pool_work)}, _lost,
             full=Effort(40, 15_000), **LOSSY),
        Case("loss-by-size", "Rigid jobs, rejected if they do not fit",
             "Kaufman 1981, Roberts 1981", _loss_by_size, _lost_by_size,
             full=Effort(60, 30_000), **LOSSY),
        Case("shorter-of-two", "Join the shorter of two queues", "truncated Markov chain",
             _mean_time(lambda _, load: theory.power_of_d(2, 2, load)), _time,
             full=Effort(40, 5_000), **ROUTED),
        Case("until-idle", "A job is forwarded until a VO is idle, then queues",
             "truncated Markov chain",
             _mean_time(lambda given, load: theory.until_idle(given.vos, load, given.hops)), _time,
             full=Effort(40, 3_000), **SHARED),
        Case("retries", "VOs that reject jobs if they are busy, and jobs that try others",
             "Markov chain",
             lambda given: {LOST: theory.retries(given.vos, given.processors, given.pool_work,
                                                 given.hops)},
             _lost, quick=Effort(20, 1_000), full=Effort(60, 6_000),
             controls=lambda given: given.jobs, stable=False),
        Case("steal", "An idle VO pulls a job from a VO that has two or more",
             "truncated Markov chain",
             _mean_time(lambda given, load: theory.steal(given.vos, load)), _time,
             full=Effort(60, 4_000), **SHARED),
        Case("random-routing", "Routing at random: an M/M/1 queue at each machine",
             "thinned Poisson arrivals", _mean_time(lambda _, load: 1.0 / (1.0 - load)), _time,
             full=Effort(80, 6_000), **ROUTED),
        Case("round-robin", "Routing in turn: every n-th job to each machine", "E_n/M/1",
             _mean_time(lambda given, load: theory.round_robin_time(_machines(given), load)), _time,
             full=Effort(40, 6_000), **ROUTED),
        Case("power-of-d", "The shortest of d random queues",
             "truncated Markov chain",
             _mean_time(lambda given, load: theory.power_of_d(
                 _machines(given), min(given.drawn, _machines(given)), load)),
             _time, full=Effort(40, 5_000), **ROUTED),
        Case("least-loaded", "Join the shortest of all queues", "truncated Markov chain",
             _mean_time(lambda given, load: theory.power_of_d(
                 _machines(given), _machines(given), load)),
             _time, full=Effort(40, 5_000), **ROUTED),
        Case("old-information", "The shorter of two queues by periodic status updates",
             "Markov chain from update to update (Mitzenmacher 2000)",
             _old_information, _time_and_first, quick=Effort(20, 1_000), full=Effort(40, 5_000),
             controls=lambda given: given.jobs._replace(servers=given.vos - 1)),
        Case("gossip", "Gossip averaging: each VO once per period, in a new order each time",
             "exact for the number of VOs; for many: 1 / (2 √e) (Jelasity et al. 2005)",
             _gossip, _gossip_exchanges, **GOSSIP),
        Case("gossip-of-pairs", "Gossip averaging: two VOs at a time, at random times",
             "exact for the number of VOs; for many: 1 / e (Jelasity et al. 2005)",
             _gossip, _gossip_exchanges, **GOSSIP),
    )
}  # fmt: skip
"""In the order of the table of `grid verify`."""
