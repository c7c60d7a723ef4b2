"""The cases of `grid verify`: predictions of queueing theory, by the scenarios' parameters."""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from grid.config.parameters import written_override
from grid.config.shipped import shipped_folder
from grid.config.text_file import read_text
from grid.config.yaml_tree import read_tree
from grid.lab.verify import theory
from grid.model.arrays import Floats, Ints
from grid.model.errors import input_error
from grid.model.fields import REFERENCE_MIPS
from grid.model.job_results import JobResults
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
WORK_S = 1000.0
"""Mean work of a job in scenarios with latencies, and the period of gossip."""
SIZES, SHARES = (1, 2, 4), (4, 2, 1)
"""Of the jobs of `loss-by-size`."""

Parameters = Mapping[str, Any]
"""The parameters of the scenario of a case, by name."""


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
    """What is known of the jobs of a run without running them: control variates. In seconds.

    The jobs of all `vos` arrive `gap_s` apart and have exponential work of `work_s`; `servers`
    equal servers could run any of them (0: there is no steady state of a queue).
    """

    work_s: float
    gap_s: float
    servers: int
    vos: int = 1
    period_s: float = 0.0
    """The period of status updates."""

    @property
    def load(self) -> float:
        return self.work_s / (self.gap_s * self.servers)

    @property
    def for_steady(self) -> int:
        """The jobs of each VO after which a run is stationary.

        An M/M/1 queue relaxes as exp(-t (1 - √load)²), in mean service times, and snapshots are
        renewed every period.
        """
        relaxation_s = max(self.work_s / (1.0 - sqrt(self.load)) ** 2, self.period_s)
        return ceil(RELAXATIONS * relaxation_s / WARM_UP / (self.gap_s * self.vos))

    def expected(self) -> Floats:
        """Expected work, gap and, if known, wait for one pool of all servers. Shape (controls,)."""
        known = [self.work_s, self.gap_s]
        if self.servers:
            known.append(self.work_s * theory.mmc_wait(self.servers, self.load))
        return np.array(known)

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


def _at(servers: int, load: float, vos: int = 1, work_s: float = WORK_S) -> Jobs:
    """The jobs of all `vos` at this load of all their servers."""
    return Jobs(work_s, work_s / (servers * load), servers, vos)


def _lossy(servers: int, load: float, vos: int = 1, size: float = 1.0) -> Jobs:
    """Jobs of this mean size that are lost if they do not fit."""
    return Jobs(WORK_S, WORK_S * size / (servers * load), 0, vos)


# Expected values

Expected = Callable[[Parameters], dict[str, float]]
Measured = Callable[[Run], dict[str, float]]
WAIT, TIME, LOST = "mean wait, s", "mean time / mean work", "share of lost jobs"
OF_FIRST = "jobs of the first server / mean"
LEFT, BEGUN = "variance left per period", "exchanges that a VO initiates per period"


def _loss_by_size(given: Parameters) -> dict[str, float]:
    offered = given["cpus"] * given["load"] / sum(map(int.__mul__, SIZES, SHARES))
    losses = theory.kaufman_roberts(given["cpus"], [offered * share for share in SHARES], SIZES)
    return {_of_size(size): loss for size, loss in zip(SIZES, losses, strict=True)}


def _of_size(size: int) -> str:
    return f"share of lost jobs of {size} processor{'s' * (size > 1)}"


def _old_information(given: Parameters) -> dict[str, float]:
    servers, d = given["servers"], min(given["d"], given["servers"])
    if servers not in (2, 3):
        raise input_error("--set", f"{servers} servers", "2 or 3, for theory of old information")
    load = WORK_S / (given["gap_s"] * servers)
    if given["discount"] == "own_dispatches":
        # The only dispatcher sees all arrivals and ends: its information is never old.
        time = theory.power_of_d(servers, d, load)
    else:
        longest = 100 if servers == 2 else 40
        time = theory.periodic_updates(servers, d, load, given["period_s"] / WORK_S, longest)
    return {TIME: time, OF_FIRST: 1.0}


def _gossip(times: str, given: Parameters) -> dict[str, float]:
    begun = {BEGUN: 1.0} if times == "poisson" else {}
    return {LEFT: theory.left_a_period(given["others"] + 1, times), **begun}


def _capacity(given: Parameters) -> dict[str, float]:
    share = given["share_of_ones"] / (given["share_of_ones"] + 1)
    return {"jobs per mean work": theory.rigid_capacity(given["cpus"], share)}


# Measured values


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
    return {TIME: float(times_us.mean()) / SECOND_US / WORK_S}


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
    return {**_time(run), OF_FIRST: float((vos == 1).mean()) * (len(run.directory.vos) - 1)}


def _starts_a_second(run: Run) -> dict[str, float]:
    start_us = np.sort(run.results.outcome.start_us)
    first = len(start_us) // 10
    return {"jobs per mean work": (len(start_us) - first) / (start_us[-1] - start_us[first]) * 1e6}


def _gossip_exchanges(run: Run) -> dict[str, float]:
    exchanges, vos = _exchanges_of(run, from_seconds(WORK_S)), len(run.directory.vos)
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


def _fcfs(run: Run) -> dict[str, float]:
    """How many starts and ends differ from the recursion over submissions, run times and sizes."""
    results, (cluster,) = run.results, run.directory.clusters
    rows = np.argsort(results.submit_us, kind="stable")
    # Run times follow from what users submitted, so that wrong service times are found.
    exact_us = np.rint(results.estimate_us * REFERENCE_MIPS / cluster.machines[0].mips)
    run_us = np.maximum(exact_us.astype(np.int64), 1)[rows]
    of_jobs = results.submit_us[rows], run_us, results.processors[rows]
    start_us = np.array(theory.fcfs_starts(*of_jobs, sum(cluster.cpus)), np.int64)
    return {
        STARTS: float((start_us != results.outcome.start_us[rows]).sum()),
        ENDS: float((start_us + run_us != results.outcome.end_us[rows]).sum()),
    }


def _two_vos(run: Run) -> dict[str, float]:
    """Assignment, start and end of each job of `two-vos` against the two latencies by hand."""
    assert run.scenario is not None
    network = run.scenario.network
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

    `expected` gives values by name from the scenario's parameters, `found` the same values of a
    run. Values of an `exact` case count differences, of which 0 are expected.
    """

    name: str
    title: str
    source: str
    expected: Expected
    found: Measured
    jobs: Callable[[Parameters], Jobs] | None = None
    """The jobs, if their number depends on the load."""
    quick: Effort = EXACT_QUICK
    full: Effort = EXACT_FULL
    exact: bool = False
    controlled: bool = False
    """Whether the jobs are control variates."""
    events: bool = False
    """Whether `found` reads the events of a run."""
    scenario: str = ""
    """The name of the scenario, if it is not that of the case."""
    settings: tuple[str, ...] = ()
    """Parameters of the scenario in this case, as PARAMETER=VALUE."""

    @property
    def file(self) -> Path:
        return shipped_folder() / "verify" / f"{self.scenario or self.name}.yaml"

    def parameters(self, settings: Sequence[str] = ()) -> dict[str, Any]:
        """Those of the scenario, with the settings that are among them."""
        tree, _ = read_tree(read_text(self.file, 1 << 16, "a case"), str(self.file))
        known: dict[str, Any] = tree.plain()["parameters"]
        overrides = map(written_override, (*self.settings, *settings))
        given = {name: node.plain() for name, node in overrides}
        return {name: given.get(name, value) for name, value in known.items()}


def _exact(name: str, title: str, source: str, found: Measured, *more: str) -> Case:
    nothing = dict.fromkeys((*more, STARTS, ENDS), 0.0)
    return Case(name, title, source, lambda _: nothing, found, exact=True)


def _routed(name: str, title: str, source: str, time: Callable[..., float], jobs: int) -> Case:
    """Jobs that are routed to machines of one VO; `time` is of the machines, load and `d`."""

    def expected(given: Parameters) -> dict[str, float]:
        machines = given.get("machines", 2)
        return {TIME: time(machines, given["load"], min(given.get("d", 2), machines))}

    return Case(
        name, title, source, expected, _time,
        lambda given: _at(given.get("machines", 2), given["load"]),
        quick=Effort(20, 1_000), full=Effort(40, jobs), controlled=True,
    )  # fmt: skip


def _shared(name: str, title: str, time: Callable[[Parameters], float], full: Effort) -> Case:
    """VOs of one server that share work."""
    return Case(
        name, title, "truncated Markov chain", lambda given: {TIME: time(given)}, _time,
        lambda given: _at(given["vos"], given["load"], given["vos"]),
        quick=Effort(20, 500), full=full, controlled=True,
    )  # fmt: skip


def _stale(name: str, title: str, *settings: str) -> Case:
    """Jobs that one VO sends to the least loaded of `d` servers, which publish periodically."""
    return Case(
        name, title, "Markov chain from update to update (Mitzenmacher 2000)",
        _old_information, _time_and_first,
        lambda given: Jobs(
            WORK_S, given["gap_s"], given["servers"], period_s=given["period_s"]
        ),
        quick=Effort(20, 1_000), full=Effort(40, 5_000), controlled=True,
        scenario="old-information", settings=settings,
    )  # fmt: skip


def _averaging(name: str, title: str, limit: str, times: str) -> Case:
    source = f"exact for the number of VOs; for many: {limit} (Jelasity et al. 2005)"
    return Case(
        name, title, source, lambda given: _gossip(given.get("times", times), given),
        _gossip_exchanges, quick=Effort(12, 60), full=Effort(30, 300), events=True,
    )  # fmt: skip


CASES = {
    case.name: case
    for case in (
        _exact("one-server", "One server, FCFS, each start time", "Lindley 1952", _fcfs),
        _exact("many-servers", "Many servers, FCFS, each start time", "Kiefer and Wolfowitz 1955",
               _fcfs),
        _exact("rigid-jobs", "Rigid jobs on one pool, FCFS, each start time",
               "Kiefer and Wolfowitz 1955 with the k-th smallest time", _fcfs),
        _exact("two-vos", "Two VOs, each time computed by hand from the two latencies",
               "messages of the protocol", _two_vos, ASSIGNMENTS),
        Case("mmc", "M/M/c", "Erlang C",
             lambda given: {WAIT: theory.mmc_wait(given["servers"], given["load"])}, _mean_wait,
             lambda given: _at(given["servers"], given["load"], work_s=1.0),
             quick=Effort(30, 200_000), full=Effort(150, 1_000_000)),
        Case("mg1", "M/G/1", "Pollaczek and Khinchine",
             lambda given: {WAIT: theory.mg1_wait(given["load"], given["cv"])}, _mean_wait,
             lambda given: _at(1, given["load"], work_s=1.0),
             quick=Effort(30, 200_000), full=Effort(100, 1_000_000)),
        Case("rigid-capacity", "Capacity of a pool for rigid jobs, FCFS",
             "1 / [(1 - p)(1 + Σ p^i / i) + p^n / n]", _capacity, _starts_a_second,
             quick=Effort(20, 10_000), full=Effort(20, 40_000)),
        Case("loss", "M/M/c/c: a VO that rejects jobs if it is busy", "Erlang B",
             lambda given: {LOST: theory.erlang_b(given["servers"],
                                                  given["servers"] * given["load"])},
             _lost, lambda given: _lossy(given["servers"], given["load"]),
             quick=Effort(20, 2_500), full=Effort(40, 15_000), controlled=True),
        Case("loss-by-size", "Rigid jobs, rejected if they do not fit",
             "Kaufman 1981, Roberts 1981", _loss_by_size, _lost_by_size,
             lambda given: _lossy(given["cpus"], given["load"],
                                  size=sum(map(int.__mul__, SIZES, SHARES)) / sum(SHARES)),
             quick=Effort(20, 2_500), full=Effort(60, 30_000), controlled=True),
        _routed("shorter-of-two", "Join the shorter of two queues", "truncated Markov chain",
                lambda machines, load, _: theory.power_of_d(machines, machines, load), 5_000),
        _shared("until-idle", "A job is forwarded until a VO is idle, then queues",
                lambda given: theory.until_idle(given["vos"], given["load"], given["hops"]),
                Effort(40, 3_000)),
        Case("retries", "VOs that reject jobs if they are busy, and jobs that try others",
             "Markov chain",
             lambda given: {LOST: theory.retries(given["vos"], given["servers"],
                                                 given["servers"] * given["load"],
                                                 given["hops"])},
             _lost,
             lambda given: _lossy(given["vos"] * given["servers"], given["load"], given["vos"]),
             quick=Effort(20, 1_000), full=Effort(60, 6_000), controlled=True),
        _shared("steal", "An idle VO pulls a job from a VO that has two or more",
                lambda given: theory.steal(given["vos"], given["load"]), Effort(60, 4_000)),
        _routed("random-routing", "Routing at random: an M/M/1 queue at each machine",
                "thinned Poisson arrivals", lambda _, load, __: 1.0 / (1.0 - load), 12_000),
        _routed("round-robin", "Routing in turn: every n-th job to each machine", "E_n/M/1",
                lambda machines, load, _: theory.round_robin_time(machines, load), 6_000),
        _routed("power-of-d", "The shortest of d random queues", "truncated Markov chain",
                lambda machines, load, d: theory.power_of_d(machines, d, load), 5_000),
        _routed("least-loaded", "Join the shortest of all queues", "truncated Markov chain",
                lambda machines, load, _: theory.power_of_d(machines, machines, load), 5_000),
        _stale("old-information", "The shorter of two queues with periodic status updates"),
        _stale("old-least-loaded", "Herding: the shortest of three queues with rare status updates",
               "servers=3", "d=3", "gap_s=666.6667", "period_s=5000"),
        _stale("old-two-of-three", "The shorter of two random queues with rare status updates",
               "servers=3", "d=2", "gap_s=666.6667", "period_s=5000"),
        _stale("own-dispatches", "The shortest of three queues with rare updates, own dispatches",
               "servers=3", "d=3", "gap_s=666.6667", "period_s=5000", "discount=own_dispatches"),
        _averaging("gossip", "Gossip averaging: each VO once per period, in a new order each time",
                   "1 / (2 √e)", "shuffled"),
        _averaging("gossip-of-pairs", "Gossip averaging: two VOs at a time, at random times",
                   "1 / e", "poisson"),
    )
}  # fmt: skip
"""In the order of the table of `grid verify`."""
