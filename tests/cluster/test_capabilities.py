"""A required feature takes effect or is refused, for every policy and every feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from grid.cluster import ClusterState, make_cluster
from grid.cluster.gang.processor_choices import ald, ld
from grid.model.errors import InputError
from grid.model.fields import PluginRef
from grid.model.job import Amounts, Job
from grid.model.platform import (
    Cluster,
    License,
    Machine,
    MachineOutage,
    PreemptionOverheads,
    Reservation,
    SwitchOff,
)
from grid.model.time import NEVER, SECOND_US
from grid.policies.features import FEATURES, ClusterSpec, JobFeatures, is_pool
from grid.policies.registry import make_policy, policy_names

S = SECOND_US
# What `batsim` decides is decided elsewhere; tests of its own say what it refuses.
POLICIES = sorted(name for name in policy_names() if name != "batsim")
SETTINGS: dict[str, dict[str, Any]] = {"tabu": {"iterations": 5}}


def job(number: int, processors: int = 1, run_s: int = 10, **more: Any) -> Job:
    times = {"submit_us": 0, "estimate_us": run_s * S, "run_us": run_s * S}
    return Job(number=number, vo="v", processors=processors, **{"user": 1, **times, **more})


def memory(ram_mb: float) -> Amounts:
    return (("ram_mb", ram_mb),)


class Probe(NamedTuple):
    """Two clusters that differ in one feature, and jobs that ought to notice."""

    without: Cluster
    asked: Cluster
    jobs: list[Job]
    outages: tuple[MachineOutage, ...] = ()
    asked_outages: tuple[MachineOutage, ...] = ()
    bound: int = -1


ONE = Cluster("c", (Machine("m", 4),))
DOWN = (MachineOutage(0, 4 * S, 6 * S),)
LICENSED = tuple(Machine(f"m{n}", 1, licenses=("x",)) for n in range(2))
TWO_SPEEDS = (Machine("slow", 4, 500.0), Machine("fast", 4, 1000.0))

PROBES: dict[str, Probe] = {
    "several machines": Probe(ONE, replace(ONE, machines=ONE.machines * 2), [job(0, 4), job(1, 4)]),
    "machine outages": Probe(ONE, ONE, [job(0)], asked_outages=DOWN),
    "resources": Probe(
        ONE,
        replace(ONE, machines=(Machine("m", 4, ram_mb=100.0),)),
        # No machine can run the third.
        [job(number, resources=memory(mb)) for number, mb in enumerate((60.0, 60.0, 200.0))],
    ),
    "licenses": Probe(
        Cluster("c", LICENSED, licenses=(License("x", 2),)),
        Cluster("c", LICENSED, licenses=(License("x", 1),)),
        [job(0, licenses=1), job(1, licenses=1)],
    ),
    "reservations": Probe(ONE, replace(ONE, reservations=(Reservation(4, 20),)), [job(0)]),
    "binding to machines": Probe(
        Cluster("c", TWO_SPEEDS), Cluster("c", TWO_SPEEDS, resource="machine"), [job(0)], bound=0
    ),
    "one job per machine": Probe(ONE, replace(ONE, one_job_per_machine=True), [job(0), job(1)]),
    "preemption costs": Probe(
        ONE,
        replace(ONE, preemption=PreemptionOverheads(2, 3, 3)),
        [job(0, checkpointable=True)],
        outages=DOWN,
        asked_outages=DOWN,
    ),
    "processor placement": Probe(
        replace(ONE, machines=(Machine("m", 3),)),
        replace(ONE, machines=(Machine("m", 3),), processor_choice=PluginRef("ald")),
        # After the second, all queues are empty, and the first still runs.
        [job(0), job(1, 2, 1, submit_us=S), job(2, 2, 1, submit_us=3 * S)],
    ),
    "switching machines off": Probe(
        ONE,
        replace(ONE, machines=(Machine("m", 4, switch_off=SwitchOff(1, 3)),)),
        [job(0, run_s=2), job(1, run_s=2, submit_us=6 * S)],
    ),
    "overrunning jobs": Probe(ONE, replace(ONE, overrun="extend"), [job(0, run_us=15 * S)]),
    "exact estimates": Probe(ONE, replace(ONE, estimates="exact"), [job(0, run_us=15 * S)]),
    "estimate factors": Probe(ONE, replace(ONE, estimate_factor=2.0), [job(0, run_us=15 * S)]),
}


def make(
    platform: Cluster, policy: str, outages: tuple[MachineOutage, ...], **more: Any
) -> ClusterState:
    platform = replace(platform, policy=PluginRef(policy))
    made = make_policy(policy, SETTINGS.get(policy, {}))
    choice = ald if platform.processor_choice else ld
    return make_cluster(platform, made, None, outages, choice=choice, **more)


def ends(cluster: ClusterState, jobs: list[Job], bound: int = -1) -> list[Any]:
    """How all jobs ended that arrive together."""
    for one in jobs:
        cluster.submit(one, bound, one.submit_us)
    cluster.advance(NEVER)
    ended = sorted(cluster.take_ended())
    assert len(ended) == len(jobs)
    return ended


def refused(make_it: Callable[[], ClusterState]) -> str:
    """Why there is no such cluster; nothing if there is."""
    try:
        make_it()
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("feature", PROBES)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_feature_takes_effect_or_is_refused(policy: str, feature: str) -> None:
    """Never both, and never neither."""
    probe = PROBES[feature]
    reason = refused(lambda: make(probe.asked, policy, probe.asked_outages))
    if reason:
        assert policy in reason and feature in reason
        return
    asked = make(probe.asked, policy, probe.asked_outages)
    plain_platform = probe.without
    if refused(lambda: make(plain_platform, policy, probe.outages)):
        pytest.fail(f"{policy} is refused without {feature}")
    plain = make(plain_platform, policy, probe.outages)
    played = ends(asked, probe.jobs, probe.bound)
    if feature == "one job per machine" and policy.startswith("cs_"):
        # C07's matchings give a machine one job anyway; its usage then counts machines.
        assert ends(plain, probe.jobs) == played
        assert asked.figures() != plain.figures()
    else:
        assert ends(plain, probe.jobs) != played


def test_every_feature_of_the_table_is_probed() -> None:
    """Three are apart: see `test_estimates`, `test_cancellations`, and `test_moldable`."""
    apart = ("predicted estimates", "cancellations", "moldable jobs")
    assert [*PROBES, *apart] == list(FEATURES)


@pytest.mark.parametrize("feature", [name for name in PROBES if FEATURES[name].pools])
@pytest.mark.parametrize("policy", ["fcfs", "sjf", "edf", "easy", "easy_sjbf"])
def test_a_pool_and_machines_give_the_same(policy: str, feature: str) -> None:
    probe = PROBES[feature]
    clusters = [make(probe.asked, policy, (), pool=pool) for pool in (True, False)]
    played = [ends(cluster, probe.jobs, probe.bound) for cluster in clusters]
    assert played[0] == played[1]


def test_pool_kernels_are_used_if_they_support_what_is_required() -> None:
    easy = make_policy("easy", {})
    assert is_pool(ClusterSpec(ONE), easy)
    assert not is_pool(ClusterSpec(ONE, outages=True), easy)
    assert not is_pool(ClusterSpec(ONE), make_policy("cs2", {}))
    assert not is_pool(ClusterSpec(ONE), make_policy("edf", {"preemptive": True}))
    limited = replace(ONE, machines=(Machine("m", 4, ram_mb=1.0),))
    assert not is_pool(ClusterSpec(limited), easy)
    assert is_pool(ClusterSpec(limited, jobs=JobFeatures(resources=False)), easy)


@pytest.mark.parametrize("policy", ["easy", "flexible"])
def test_no_job_uses_the_memory_of_a_reservation(policy: str) -> None:
    """The second waits for memory until 10 s; the third, of 20 s, would hold it up then."""
    platform = replace(ONE, machines=(Machine("m", 4, ram_mb=100.0),))
    jobs = [
        job(0, resources=memory(60.0)),
        job(1, resources=memory(70.0)),
        job(2, 1, 20, resources=memory(40.0)),
    ]
    jobs.append(job(3, 1, 20, resources=memory(30.0)))
    started = [one.outcome.start_us // S for one in ends(make(platform, policy, ()), jobs)]
    assert started == [0, 10, 20, 0]


def test_a_job_that_asks_for_more_memory_than_any_machine_has_is_rejected() -> None:
    platform = replace(ONE, machines=(Machine("m", 4, ram_mb=100.0),))
    (ended,) = ends(make(platform, "easy", ()), [job(0, resources=memory(100.5))])
    assert ended.outcome.machine == -1


@pytest.mark.parametrize("policy", ["fcfs", "easy", "afcfs", "cs2"])
def test_jobs_that_ask_for_licenses_which_no_machine_has_are_rejected(policy: str) -> None:
    """On every core."""
    (ended,) = ends(make(ONE, policy, ()), [job(0, licenses=1)])
    assert ended.outcome.machine == -1
