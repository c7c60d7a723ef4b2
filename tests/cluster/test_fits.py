"""`ClusterView.fits` gives what a plan may start, also after its own starts and preemptions."""

from __future__ import annotations

import numpy as np

from grid.cluster import make_cluster
from grid.model.job import Job, amounts
from grid.model.platform import Cluster, License, Machine, MachineOutage
from grid.model.time import NEVER, SECOND_US
from grid.policies.interface import ClusterView, Plan
from tests.cluster.clusters import Asking

S = SECOND_US
FARM = Cluster(
    "farm",
    (
        Machine("a", 4, 2000.0, ram_mb=100.0, licenses=("x",)),
        Machine("b", 2, 1000.0, licenses=("x",)),
        Machine("c", 2, 500.0),
    ),
    licenses=(License("x", 1),),
)


def job(number: int, processors: int = 1, **more: object) -> Job:
    given = {"estimate_us": 9 * S, "run_us": 9 * S, "submit_us": 0, "user": 0, **more}
    return Job(number=number, vo="v", processors=processors, **given)  # type: ignore[arg-type]


def test_what_the_plan_takes_is_gone_and_what_it_gives_back_is_there() -> None:
    def planned(view: ClusterView) -> Plan:
        if view.now == 0 and len(view.running) == 0:
            first, second, third = view.queue.tolist()
            before = view.free.copy(), view.license_copies_free.copy()
            view.take(first, 0)
            # The copy is in use on the first machine, where 60 of 100 MB are held.
            assert [view.fits(second, machine) for machine in range(3)] == [True, False, False]
            assert [view.fits(third, machine) for machine in range(3)] == [False, True, True]
            assert view.free.tolist() == [2, 2, 2]
            assert [column.tolist() for column in before] == [[4, 2, 2], [1]]
            return Plan(start=[(first, 0)], wake_us=S)
        (running,) = view.running.tolist()
        second, third = view.queue.tolist()
        assert not view.fits(second, 1)
        view.give_back(running)
        assert view.fits(second, 1) and view.fits(third, 0)
        return Plan(preempt=[running])

    asking = Asking(planned)
    cluster = make_cluster(FARM, asking)
    cluster.submit(job(0, 2, licenses=1, resources=(("ram_mb", 60.0),)), -1, 0)
    cluster.submit(job(1, licenses=1), -1, 0)
    cluster.submit(job(2, resources=(("ram_mb", 50.0),)), -1, 0)
    cluster.advance(S + 1)


def test_a_policy_that_asks_first_breaks_no_limit() -> None:
    """Random jobs, licenses, memory, bindings and outages; widest first, each where it fits."""

    def planned(view: ClusterView) -> Plan:
        plan = Plan()
        for slot in sorted(view.queue.tolist(), key=lambda slot: -view.jobs.processors[slot]):
            machine = view.fastest(slot)
            if machine >= 0:
                view.take(slot, machine)
                plan.start.append((slot, machine))
        return plan

    chance = np.random.default_rng(1)
    for one_job in (False, True):
        platform = Cluster("f", FARM.machines, licenses=FARM.licenses, one_job_per_machine=one_job)
        outages = tuple(MachineOutage(m, (20 + 9 * m) * S, (40 + 9 * m) * S) for m in range(3))
        cluster = make_cluster(platform, Asking(planned), None, outages)
        for number in range(60):
            now = number * 2 * S
            cluster.advance(now)
            assert list(cluster.broken_limits()) == []
            more = {"licenses": int(chance.integers(2)), "submit_us": now}
            ram_mb = float(chance.integers(0, 120))
            held = amounts({"ram_mb": ram_mb})
            one = job(number, int(chance.integers(1, 3)), resources=held, **more)
            cluster.submit(one, int(chance.integers(-1, 2)), now)
        cluster.advance(NEVER)
        assert len(cluster.take_ended()) == 60
