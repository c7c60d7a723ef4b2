"""The cases of `grid verify`, in the order of its table."""

from __future__ import annotations

from collections.abc import Callable
from math import gamma, sqrt
from typing import Any

import numpy as np

from grid.config.schema import Scenario
from grid.lab.verify import averages, exact, old_board, sharing, theory
from grid.lab.verify.case import (
    Case,
    Effort,
    drawn_of,
    fewer_machines,
    fewer_queues,
    fewer_rejecting,
    fewer_servers,
    gossip_of,
    is_chain,
    jobs_alone,
    jobs_at_one_pool,
    jobs_of_servers,
    lost,
    machines_of,
    processors_of,
    rule_of,
    service_s,
    settings_of,
    steady,
    times_in_system_s,
    vos_of,
    waits_s,
)
from grid.model.errors import one_mistake
from grid.model.time import from_seconds
from grid.runtime.run import Run

Expected = Callable[[Scenario], dict[str, float]]
OF_FIRST = "jobs of the first server / mean"
LEFT, BEGUN = "variance left a period", "exchanges that a VO begins a period"


def _mmc(scenario: Scenario) -> dict[str, float]:
    wait = theory.mmc_wait(processors_of(scenario), settings_of(scenario)["load"])
    return {"mean wait, s": wait * service_s(scenario)}


def _mg1(scenario: Scenario) -> dict[str, float]:
    settings, processors = settings_of(scenario), processors_of(scenario)
    if processors != 1:
        raise one_mistake("processors", str(processors), "1, for theory of mg1")
    wait = theory.mg1_wait(settings["load"], variation_of(settings["work"]))
    return {"mean wait, s": wait * service_s(scenario)}


def variation_of(law: dict[str, float | str]) -> float:
    """Standard deviation / mean of a law of `grid.workload.stochastic`."""
    if "cv" in law:
        return float(law["cv"])
    if law["law"] == "weibull":
        shape = float(law["shape"])
        return sqrt(gamma(1 + 2 / shape) / gamma(1 + 1 / shape) ** 2 - 1)
    return {"exponential": 1.0, "fixed": 0.0}[str(law["law"])]


def _mean_wait(run: Run) -> dict[str, float]:
    return {"mean wait, s": float(waits_s(run, steady(run)).mean())}


def _loss(scenario: Scenario) -> dict[str, float]:
    servers = processors_of(scenario)
    return {"share of lost jobs": theory.erlang_b(servers, servers * settings_of(scenario)["load"])}


def _lost(run: Run) -> dict[str, float]:
    return {"share of lost jobs": lost(run, steady(run))}


def _loss_by_size(scenario: Scenario) -> dict[str, float]:
    settings, capacity = settings_of(scenario), processors_of(scenario)
    sizes = [size["processors"] for size in settings["sizes"]]
    shares = [size["share"] for size in settings["sizes"]]
    asked = sum(size * share for size, share in zip(sizes, shares, strict=True))
    work = [settings["load"] * capacity * share / asked for share in shares]
    losses = theory.kaufman_roberts(capacity, work, sizes)
    return {_of_size(size): loss for size, loss in zip(sizes, losses, strict=True)}


def _lost_by_size(run: Run) -> dict[str, float]:
    rows = steady(run)
    processors = run.results.processors[rows]
    return {
        _of_size(int(size)): lost(run, rows[processors == size]) for size in np.unique(processors)
    }


def _of_size(size: int) -> str:
    return f"share of lost jobs of {size} processor{'s' * (size > 1)}"


def _shorter(scenario: Scenario) -> dict[str, float]:
    return {"mean time / mean work": theory.shorter_of_two(settings_of(scenario)["load"])}


def _time(run: Run) -> dict[str, float]:
    assert run.scenario is not None
    work_s = settings_of(run.scenario)["work"].get("mean_s", 1.0)
    return {"mean time / mean work": float(times_in_system_s(run, steady(run)).mean()) / work_s}


def _mean_time_of(theory_of_it: Callable[[Scenario, float], float]) -> Expected:
    def expected(scenario: Scenario) -> dict[str, float]:
        return {"mean time / mean work": theory_of_it(scenario, settings_of(scenario)["load"])}

    return expected


def _until_idle(scenario: Scenario, load: float) -> float:
    hops, vos = rule_of(scenario)["hops"], vos_of(scenario)
    if fewer_queues(scenario) is None:
        return sharing.until_idle_of_few(vos, load, hops)
    return sharing.until_idle(load, hops)


def _steal(scenario: Scenario, load: float) -> float:
    if fewer_queues(scenario) is None:
        return sharing.steal_of_few(vos_of(scenario), load)
    return sharing.steal(load)


def _retries(scenario: Scenario) -> dict[str, float]:
    servers, hops, vos = processors_of(scenario), rule_of(scenario)["hops"], vos_of(scenario)
    work = servers * settings_of(scenario)["load"]
    if fewer_rejecting(scenario) is None:
        return {"share of lost jobs": sharing.retries_of_few(vos, servers, work, hops)}
    return {"share of lost jobs": sharing.retries(servers, work, hops)}


def _random_routing(_: Scenario, load: float) -> float:
    return 1.0 / (1.0 - load)


def _round_robin(scenario: Scenario, load: float) -> float:
    return theory.round_robin_time(machines_of(scenario), load)


def _power_of_d(scenario: Scenario, load: float) -> float:
    machines = machines_of(scenario)
    d = min(drawn_of(scenario), machines)
    if is_chain(scenario):
        return theory.power_of_d(machines, d, load)
    return theory.power_of_d_of_many(d, load)


def _least_loaded(scenario: Scenario, load: float) -> float:
    machines = machines_of(scenario)
    if not is_chain(scenario):
        raise one_mistake("machines", str(machines), "fewer: theory has too many states")
    return theory.power_of_d(machines, machines, load)


def _old_board(scenario: Scenario) -> dict[str, float]:
    settings, servers = settings_of(scenario), vos_of(scenario) - 1
    work_s, period_s = settings["work"]["mean_s"], scenario.protocol.snapshot_period_s
    assert period_s is not None
    load = work_s / (settings["arrivals"]["mean_s"] * servers)
    solve = old_board.of_two if servers == 2 else old_board.of_many
    time = solve(min(drawn_of(scenario), servers), load, period_s / work_s)
    return {"mean time / mean work": time, OF_FIRST: 1.0}


def _time_and_first(run: Run) -> dict[str, float]:
    """The mean time, and how many jobs the first server gets: no server is special."""
    assert run.scenario is not None
    servers = vos_of(run.scenario) - 1
    vos = run.results.placement.executed_vo[steady(run)]
    return {**_time(run), OF_FIRST: float((vos == 1).mean()) * servers}


def _left(scenario: Scenario) -> dict[str, float]:
    times = gossip_of(scenario)["times"]
    begun = {BEGUN: 1.0} if times == "poisson" else {}
    return {LEFT: averages.left_a_period(vos_of(scenario), times), **begun}


def _left_by_exchanges(run: Run) -> dict[str, float]:
    assert run.scenario is not None
    # A job is submitted in every period; whatever overlay is planted, that is how long it lasts.
    period_us = from_seconds(settings_of(run.scenario)["arrivals"]["mean_s"])
    exchanges, vos = averages.exchanges_of(run, period_us), vos_of(run.scenario)
    begun = averages.exchanges_a_period(exchanges, vos)
    return {LEFT: averages.left_by(exchanges, vos), BEGUN: begun}


def _capacity(scenario: Scenario) -> dict[str, float]:
    ones, wide = settings_of(scenario)["sizes"]
    share = ones["share"] / (ones["share"] + wide["share"])
    return {"jobs a mean work": theory.rigid_capacity(processors_of(scenario), share)}


def _starts_a_second(run: Run) -> dict[str, float]:
    start_us = np.sort(run.results.outcome.start_us)
    first = len(start_us) // 10
    return {"jobs a mean work": (len(start_us) - first) / (start_us[-1] - start_us[first]) * 1e6}


def _exactly(name: str, title: str, source: str, found: Callable[[Run], dict[str, float]]) -> Case:
    return Case(name, title, source, exact.no_difference, found, exact=True)


GOSSIP: dict[str, Any] = {
    "quick": Effort(12, 60), "full": Effort(30, 300), "exponential": (), "stable": False,
    "events": True,
}  # fmt: skip
"""Jobs are periods: one comes in each."""

CASES = {
    case.name: case
    for case in (
        _exactly("one-server", "One server, FCFS, start by start", "Lindley 1952", exact.lindley),
        _exactly(
            "many-servers",
            "Many servers, FCFS, start by start",
            "Kiefer and Wolfowitz 1955",
            exact.fcfs,
        ),
        _exactly(
            "rigid-jobs",
            "Rigid jobs on one pool, FCFS, start by start",
            "the same recursion with the k-th smallest of the times at which processors are free",
            exact.fcfs,
        ),
        Case(
            "two-vos",
            "Two VOs, every time by pencil from the two latencies",
            "the protocol: messages counted by hand",
            exact.no_pencil_difference,
            exact.two_vos,
            exact=True,
            has_jobs=False,
        ),
        Case(
            "mmc", "M/M/c", "Erlang C", _mmc, _mean_wait, quick=Effort(30, 200_000),
            full=Effort(150, 1_000_000),
        ),
        Case(
            "mg1", "M/G/1", "Pollaczek and Khinchine", _mg1, _mean_wait,
            quick=Effort(30, 200_000), full=Effort(100, 1_000_000), exponential=("arrivals",),
        ),
        Case(
            "rigid-capacity", "Capacity of a pool for rigid jobs, FCFS",
            "1 / [(1 - p)(1 + Σ p^i / i) + p^n / n]", _capacity, _starts_a_second,
            quick=Effort(20, 10_000), full=Effort(20, 40_000), exponential=("work",), stable=False,
        ),
        Case(
            "loss", "M/M/c/c: a VO that rejects when it is busy", "Erlang B", _loss, _lost,
            quick=Effort(20, 2_500), full=Effort(40, 15_000), controls=jobs_alone,
            exponential=("arrivals",), stable=False,
        ),
        Case(
            "loss-by-size", "Rigid jobs, rejected when they do not fit",
            "Kaufman 1981, Roberts 1981", _loss_by_size, _lost_by_size,
            quick=Effort(20, 2_500), full=Effort(60, 30_000), controls=jobs_alone,
            exponential=("arrivals",), stable=False,
        ),
        Case(
            "shorter-of-two", "Join the shorter of two queues", "truncated Markov chain",
            _shorter, _time, quick=Effort(20, 1_000), full=Effort(40, 5_000),
            controls=jobs_at_one_pool,
        ),
        Case(
            "until-idle", "A job moves on until it finds a VO idle, then queues",
            "few VOs: truncated Markov chain; many: 1 / (1 - λ^(H+1))",
            _mean_time_of(_until_idle), _time, quick=Effort(20, 500), full=Effort(40, 3_000),
            fewer=fewer_queues, controls=jobs_at_one_pool,
        ),
        Case(
            "retries", "VOs that reject when busy, and jobs that try others",
            "few VOs: Markov chain; many: x = a (1 - B^(H+1)) / (1 - B), loss B^(H+1)",
            _retries, _lost, quick=Effort(20, 1_000), full=Effort(60, 6_000),
            fewer=fewer_rejecting, controls=jobs_alone, stable=False,
        ),
        Case(
            "steal", "An idle VO takes a job from one other that has two or more",
            "few VOs: truncated Markov chain; many: 1 / (1 - π/λ)",
            _mean_time_of(_steal), _time, quick=Effort(20, 500), full=Effort(60, 4_000),
            fewer=fewer_queues, controls=jobs_at_one_pool,
        ),
        Case(
            "random-routing", "Routing at random: an M/M/1 queue at each machine",
            "thinned Poisson arrivals", _mean_time_of(_random_routing), _time,
            quick=Effort(20, 1_000), full=Effort(80, 6_000), controls=jobs_at_one_pool,
        ),
        Case(
            "round-robin", "Routing in turn: every n-th job to each machine", "E_n/M/1",
            _mean_time_of(_round_robin), _time, quick=Effort(20, 1_000), full=Effort(40, 6_000),
            controls=jobs_at_one_pool,
        ),
        Case(
            "power-of-d", "The shortest of d queues drawn",
            "few machines: truncated Markov chain; many: Σ λ^((d^i - d) / (d - 1))",
            _mean_time_of(_power_of_d), _time, quick=Effort(20, 1_000), full=Effort(40, 5_000),
            fewer=fewer_machines, controls=jobs_at_one_pool,
        ),
        Case(
            "least-loaded", "Join the shortest of all queues", "truncated Markov chain",
            _mean_time_of(_least_loaded), _time, quick=Effort(20, 1_000), full=Effort(40, 5_000),
            controls=jobs_at_one_pool,
        ),
        Case(
            "old-information", "The shorter of two queues by a board that is told once a period",
            "two servers: Markov chain from board to board; many: fixed point (Mitzenmacher 2000)",
            _old_board, _time_and_first, quick=Effort(20, 1_000), full=Effort(40, 5_000),
            fewer=fewer_servers, controls=jobs_of_servers,
        ),
        Case(
            "gossip", "Gossip of averages: each VO once in a period, in a new order each time",
            "its finite number of VOs; of many: 1 / (2 √e) (Jelasity et al. 2005)",
            _left, _left_by_exchanges, **GOSSIP,
        ),
        Case(
            "gossip-of-pairs", "Gossip of averages: two VOs at a time, at any time",
            "its finite number of VOs; of many: 1 / e (Jelasity et al. 2005)",
            _left, _left_by_exchanges, **GOSSIP,
        ),
    )
}  # fmt: skip
