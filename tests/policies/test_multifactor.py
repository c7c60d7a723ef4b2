"""Multifactor priority: account trees worked by hand, decay by a slow version, limits by user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grid
from grid.model.errors import InvalidPlugin
from grid.model.job import Job
from grid.model.platform import Cluster, Machine
from grid.model.time import SECOND_US
from grid.policies.interface import ClusterView, Plan
from grid.policies.multifactor import Account, AccountTree, DecayedUsage
from grid.policies.registry import make_policy
from tests.cluster.clusters import Asking, general_cluster
from tests.examples import examples

PHYSICS = Account(name="physics", shares=60, users={1: 1, 2: 1})
CHEMISTRY = Account(name="chemistry", shares=40)
ORGANIC = Account(name="organic", parent="chemistry", shares=3, users={3: 2, 4: 1})
ANALYTIC = Account(name="analytic", parent="chemistry", shares=1, users={5: 1})
TREE = (PHYSICS, CHEMISTRY, ORGANIC, ANALYTIC)


def test_fair_tree_worked_by_hand() -> None:
    """Physics used 500 of 1000: 0.6 / 0.5 = 1.2; chemistry 0.4 / 0.5 = 0.8. Physics is first.

    In it, user 2 used less than user 1. In chemistry, organic has 0.75 / 0.4 = 1.875 and analytic
    0.25 / 0.6. In organic, users 3 and 4 have (2/3) / (150/200) and (1/3) / (50/200), the larger.
    """
    usage = {1: 400.0, 2: 100.0, 3: 150.0, 4: 50.0, 5: 300.0}
    assert AccountTree(TREE).fair_tree(usage) == {2: 1.0, 1: 0.8, 4: 0.6, 3: 0.4, 5: 0.2}


def test_fair_tree_ranks_ties_together() -> None:
    """Without usage all are infinite: one rank. With shares of 0, an account is last."""
    assert set(AccountTree(TREE).fair_tree({}).values()) == {1.0}
    accounts = (Account(name="a", users={1: 1, 2: 1}), Account(name="b", users={3: 1, 4: 1, 5: 0}))
    # a and b tie at 0.5 / 0.5, so their users are ranked together: 2 is infinite, 3 and 4 have
    # 0.5 / 0.5, 1 has 0.5 / 1, and 5 has 0.
    usage = {1: 10.0, 3: 5.0, 4: 5.0}
    assert AccountTree(accounts).fair_tree(usage) == {2: 1.0, 3: 0.8, 4: 0.8, 1: 0.4, 5: 0.2}


def test_equal_levels_and_accounts_without_users() -> None:
    # 1/11 / (20/130) = 5/11 / (100/130).
    tree = AccountTree((Account(name="a", users={1: 1, 2: 5, 3: 5}),))
    assert tree.fair_tree({1: 20.0, 2: 10.0, 3: 100.0}) == {2: 1.0, 1: 2 / 3, 3: 2 / 3}
    # Accounts a and b have no shares, thus 0; a has no users.
    tree = AccountTree((Account(name="a", shares=0), Account(name="b", shares=0, users={3: 1})))
    tree.add(2)
    assert tree.fair_tree({2: 30.0}) == {2: 1.0, 3: 0.5}


def test_a_user_shares_the_rank_of_the_first_user_of_an_equal_account() -> None:
    tree = AccountTree((Account(name="a", users={1: 1, 2: 1}),))
    tree.add(3)
    # User 3 and account a both have 0.5 / 0.5.
    assert tree.fair_tree({1: 4.0, 2: 6.0, 3: 10.0}) == {3: 1.0, 1: 1.0, 2: 1 / 3}


def test_classic_worked_by_hand() -> None:
    """S of user 3 is 0.4 * 0.75 * 2/3 = 0.2. Its U is 0.15 and that of organic 0.2.

    Chemistry is below the root, so Ue = U = 0.5. Organic has 0.2 + (0.5 - 0.2) * 0.75 = 0.425, and
    user 3 has 0.15 + (0.425 - 0.15) * 2/3 = 1/3.
    """
    usage = {1: 400.0, 2: 100.0, 3: 150.0, 4: 50.0, 5: 300.0}
    factors = AccountTree(TREE).classic(usage)
    assert factors[3] == pytest.approx(2 ** (-(1 / 3) / 0.2))
    # User 1: S = 0.3, Ue = 0.4 + (0.5 - 0.4) / 2.
    assert factors[1] == pytest.approx(2 ** (-0.45 / 0.3))
    assert set(AccountTree(TREE).classic({}).values()) == {1.0}


@settings(max_examples=examples(40), deadline=None)
@given(st.dictionaries(st.integers(1, 5), st.integers(0, 10**6).map(float), max_size=5))
def test_all_users_of_a_better_account_come_first(usage: dict[int, float]) -> None:
    factors = AccountTree(TREE).fair_tree(usage)
    physics = usage.get(1, 0.0) + usage.get(2, 0.0)
    chemistry = sum(usage.get(user, 0.0) for user in (3, 4, 5))
    if physics * 0.4 < chemistry * 0.6 * 0.999:
        assert min(factors[1], factors[2]) > max(factors[3], factors[4], factors[5])
    assert max(factors.values()) == 1.0 and min(factors.values()) > 0.0


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 8)), max_size=8),
    st.integers(1, 300),
    st.sampled_from([0, 100, 5000]),
)
def test_usage_decays_as_counted_second_by_second(
    steps: list[tuple[int, int]], period: int, half_life: int
) -> None:
    usage = DecayedUsage(period * SECOND_US, half_life * SECOND_US)
    decay = 0.5 ** (period / half_life) if half_life else 1.0
    now, cpus, total, pending = 0, 0, 0.0, 0.0
    usage.set_cpus(np.zeros(1))
    for seconds, next_cpus in steps:
        for _ in range(seconds):
            now += 1
            pending += cpus
            if now % period == 0:
                total, pending = total * decay + pending, 0.0
        usage.advance(now * SECOND_US)
        assert usage.cpu_seconds[0] == pytest.approx(total)
        cpus = next_cpus
        usage.set_cpus(np.array([float(cpus)]))


def run(policy: dict[str, Any], jobs: list[dict[str, Any]], **settings: Any) -> list[float]:
    """The start of each job, in seconds; -1 if it is rejected."""
    cluster = {"cpus": 4, "policy": {"name": "multifactor", "settings": policy}, **settings}
    workload = {"entry_point": "cluster", "jobs": jobs}
    done = grid.run({"vos": [{"name": "lab", "clusters": [cluster], "workload": workload}]})
    return list(done.jobs().sort_values("job_id")["starting_time"].fillna(-1))


def job(submit_s: float, user: int, run_s: float = 100, cpus: int = 4) -> dict[str, Any]:
    return {"submit_s": submit_s, "user": user, "run_s": run_s, "cpus": cpus}


def test_the_user_with_less_usage_goes_first() -> None:
    """User 1 has used 400 CPU seconds when the first job ends; user 2 came later, and is first."""
    jobs = [job(0, 1), job(1, 1), job(2, 2)]
    assert run({"calc_period_s": 10}, jobs) == [0, 200, 100]
    # Usage counts from the next update on.
    assert run({"calc_period_s": 1000}, jobs) == [0, 100, 200]
    assert run({"fair_share_weight": 0.0, "age_weight": 1e9}, jobs) == [0, 100, 200]


def test_usage_of_long_ago_is_forgotten() -> None:
    """User 1 used 10,000 CPU seconds at first, user 2 later 400. Half-lives decide who is first."""
    jobs = [job(0, 1, 2500), job(100_000, 2), job(100_001, 1), job(100_002, 2)]
    assert run({"half_life_s": 0, "calc_period_s": 10}, jobs)[2:] == [100_200, 100_100]
    assert run({"half_life_s": 1000, "calc_period_s": 10}, jobs)[2:] == [100_100, 100_200]


def test_size_and_age() -> None:
    """While all CPUs are taken, a job of 4 CPUs waits since 1 s, one of 1 CPU since 2 s."""
    jobs = [job(0, 1), job(1, 2, 100, 4), job(2, 3, 300, 1)]
    ages = {"fair_share_weight": 0.0, "age_weight": 1e6, "max_age_s": 10_000}
    assert run(ages, jobs) == [0, 100, 200]
    small = ages | {"job_size_weight": 1e6, "favor_small": True}
    assert run(small, jobs) == [0, 400, 100]


def test_qos_of_users() -> None:
    """User 3 has 200 of at most 200, user 2 has 100, user 1 none: 1000, 500 and 0.

    PriorityWeightQOS is 1000. Without it, the order is by age.
    """
    jobs = [job(0, 1), job(1, 1), job(2, 2), job(3, 3)]
    qos = {"fair_share_weight": 0.0, "age_weight": 0.0, "qos_priorities": {2: 100, 3: 200}}
    assert run(qos | {"qos_weight": 1000.0}, jobs) == [0, 300, 200, 100]
    older = {"age_weight": 600.0, "max_age_s": 1000}
    assert run(qos | older | {"qos_weight": 0.0}, jobs) == [0, 100, 200, 300]


def test_priorities_of_partitions_and_qos() -> None:
    """Machine 0 has 30, machine 1 the highest, 60; user 7 has a QOS of 5, of at most 20."""
    settings: dict[str, Any] = {
        "age_weight": 0.0, "fair_share_weight": 0.0, "partition_weight": 100.0,
        "partition_priorities": [30, 60], "qos_weight": 40.0, "qos_priorities": {7: 5, 8: 20},
    }  # fmt: skip
    policy = make_policy("multifactor", settings)
    found: list[float] = []

    def planned(view: ClusterView) -> Plan:
        found[:] = policy.ranked(view, view.now)[1].tolist()
        return Plan()

    machines = tuple(Machine(name, 4) for name in "abc")
    cluster = general_cluster(Cluster("c", machines), Asking(planned))
    for number, (user, machine) in enumerate([(7, 0), (8, 1), (9, 2), (7, -1)]):
        one = Job(
            number=number, vo="v", user=user, processors=1, submit_us=0, estimate_us=9, run_us=9
        )
        cluster.submit(one, machine, 0)
    cluster.advance(1)
    assert found == [60.0, 140.0, 0.0, 10.0]


@pytest.mark.parametrize("limit", [{"max_running_jobs": 1}, {"max_cpus": 2}])
def test_a_job_beyond_its_user_s_limit_blocks_no_other(limit: dict[str, Any]) -> None:
    jobs = [job(0, 1, 100, 2), job(0, 1, 100, 2), job(0, 2, 100, 2)]
    assert run(limit, jobs) == [0, 100, 0]


@pytest.mark.parametrize("limit", [{"max_running_jobs": 1}, {"max_cpus": 4}])
def test_a_job_beyond_the_limit_with_one_that_starts_has_no_reservation(
    limit: dict[str, Any],
) -> None:
    """At 10 s, user 1's first job starts. The second can't start at 110 s: user 2's starts now."""
    jobs = [job(0, 3, 10), job(1, 1, 100, 2), job(2, 1), job(3, 2, 1000, 2)]
    assert run(limit, jobs) == [0, 10, 1010, 10]


def test_another_job_of_the_user_starts_if_the_first_is_too_wide() -> None:
    """User 1 may run one job. The first needs 4 CPUs, of which 2 are free; the second needs 1."""
    ages = {"fair_share_weight": 0.0, "age_weight": 1e6, "max_age_s": 1000, "max_running_jobs": 1}
    jobs = [job(0, 2, 100, 2), job(1, 1, 100, 4), job(2, 1, 50, 1)]
    assert run(ages, jobs) == [0, 100, 2]


@pytest.mark.parametrize("policy", ["multifactor", "slurm"])
def test_a_job_that_alone_exceeds_the_limit_is_rejected(policy: str) -> None:
    cluster = {"cpus": 4, "policy": {"name": policy, "settings": {"max_cpus": 2}}}
    jobs = [job(0, 1, 100, 3), job(0, 1, 100, 2), job(0, 1, 100, 2)]
    workload = {"entry_point": "cluster", "jobs": jobs}
    done = grid.run({"vos": [{"name": "lab", "clusters": [cluster], "workload": workload}]})
    assert done.jobs().sort_values("job_id")["state"].tolist() == ["rejected"] + 2 * ["completed"]


def test_jobs_that_hold_machines_alone_have_their_own_cpus() -> None:
    """For limits and usage: user 1 has used 100 CPU seconds, user 2 has used 300."""
    jobs = [job(0, 1, 100, 1), job(1, 2, 100, 3), job(2, 2, 100, 3), job(3, 1, 100, 1)]
    settings = {"calc_period_s": 10, "max_cpus": 3, "job_size_weight": 1e9, "favor_small": True}
    assert run(settings, jobs[:3], one_job_per_machine=True) == [0, 100, 200]
    settings["job_size_weight"] = 0.0
    assert run(settings, jobs, one_job_per_machine=True) == [0, 100, 300, 200]
    assert run({"max_cpus": 2}, jobs[:2], one_job_per_machine=True) == [0, -1]


@pytest.mark.parametrize(
    "accounts",
    [
        [{"name": "a"}, {"name": "a"}],
        [{"name": "a", "parent": "b"}],
        [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}],
        [{"name": "a", "users": {1: 1}}, {"name": "b", "users": {1: 1}}],
        [{"name": "a", "shares": -1}],
    ],
)
def test_wrong_trees_are_refused(accounts: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidPlugin):
        make_policy("multifactor", {"accounts": accounts})
