"""Slurm's main and backfill schedulers: schedules worked by hand from slurm.conf's documentation.

Four CPUs. Job 1 holds two of them until 100 s, with a limit of two minutes; job 2 needs four from
1 s on. Job 3 needs one from 2 s on, for 50 s, with a limit of one minute. The main scheduler runs
at the first half second after an end or submission, and three seconds after its last run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import grid
from grid.model.errors import InputError
from grid.policies.slurm import placed
from tests.examples import examples

JOBS = [
    {"run_s": 100, "estimate_s": 110, "cpus": 2, "user": 1},
    {"submit_s": 1, "run_s": 10, "cpus": 4, "user": 2},
    {"submit_s": 2, "run_s": 50, "cpus": 1, "user": 3},
]


def starts(
    jobs: list[dict[str, Any]], policy: str = "slurm", machine: Any = None, **parameters: Any
) -> list[float]:
    """The start of each job in seconds, -1 if it is rejected."""
    cluster = {"policy": {"name": policy, "settings": parameters}} | (machine or {"cpus": 4})
    workload = {"entry_point": "cluster", "jobs": jobs}
    done = grid.run({"vos": [{"name": "lab", "clusters": [cluster], "workload": workload}]})
    return list(done.jobs().sort_values("job_id")["starting_time"].fillna(-1))


@pytest.mark.parametrize(
    ("parameters", "start"),
    [
        # The main scheduler stops at job 2. Backfill starts job 3 in its next iteration.
        ({}, 30),
        ({"bf_interval": 1}, 2),
        ({"bf_interval": 45}, 45),
        # At 70 s a limit of one minute would end after 120 s, when job 2 may start.
        ({"bf_interval": 70}, 111.5),
        # Only job 2 is tested.
        ({"bf_max_job_test": 1}, 111.5),
        # Job 2 does not block job 3.
        ({"bf_min_age_reserve": 1000}, 3.5),
    ],
)
def test_the_third_job(parameters: dict[str, int], start: float) -> None:
    assert starts(JOBS, **parameters) == [0, 100.5, start]


def test_limits_are_rounded_up_to_minutes_and_planned_times_to_the_resolution() -> None:
    """With a limit of 61 s, job 3 would end after 120 s; for the first 30 minutes job 2 has all."""
    longer = [*JOBS[:2], {**JOBS[2], "estimate_s": 61}]
    assert starts(longer) == [0, 100.5, 111.5]
    assert starts(JOBS, bf_resolution=1800) == [0, 100.5, 111.5]


def test_no_reservation_beyond_the_window() -> None:
    """Job 2 can start at 120 s, beyond a window of one minute: job 3 starts, and delays it."""
    longer = [*JOBS[:2], {**JOBS[2], "run_s": 300}]
    assert starts(longer, bf_window=2) == [0, 100.5, 111.5]
    assert starts(longer, bf_window=1) == [0, 330.5, 30]


def test_only_some_jobs_have_reservations() -> None:
    """Job 3 needs four CPUs. Job 4 needs two and has a limit of three minutes.

    Without a reservation for job 3, job 4 takes the CPUs that job 2 leaves, and delays it.
    """
    jobs = [
        {"run_s": 100, "estimate_s": 110, "cpus": 2, "user": 1},
        {"submit_s": 1, "run_s": 50, "cpus": 2, "user": 2},
        {"submit_s": 2, "run_s": 10, "cpus": 4, "user": 3},
        {"submit_s": 3, "run_s": 170, "cpus": 2, "user": 4},
    ]
    assert starts(jobs, bf_interval=60) == [0, 3.5, 100.5, 111.5]
    assert starts(jobs, bf_interval=60, bf_min_age_reserve=500) == [0, 3.5, 225.5, 54.5]


def test_the_main_scheduler_tests_some_jobs_after_an_event() -> None:
    alone = [{"submit_s": 1, "run_s": 10, "user": 1}]
    assert starts(alone) == [1.5]
    assert starts(alone, default_queue_depth=0, bf_interval=45) == [45]
    assert starts(alone, default_queue_depth=0, bf_interval=10_000) == [60.5]
    two = [alone[0], {"submit_s": 2, "run_s": 10, "user": 1}]
    assert starts(two, sched_min_interval=5_000_000, bf_interval=10_000) == [1.5, 6.5]
    assert starts(two, batch_sched_delay=0, bf_interval=10_000) == [1.5, 2.5]


def test_backfill_starts_and_tests_some_jobs_of_a_user() -> None:
    jobs = [
        {**JOBS[0], "estimate_s": 150},
        JOBS[1],
        {"submit_s": 2, "run_s": 10, "user": 3},
        {"submit_s": 2, "run_s": 10, "user": 3},
        {"submit_s": 2, "run_s": 10, "user": 4},
    ]
    assert starts(jobs) == [0, 100.5, 30, 30, 60]
    assert starts(jobs, bf_max_job_user=1)[2:] == [30, 60, 30]
    assert starts(jobs, bf_max_job_start=1, bf_interval=20)[2:] == [20, 40, 60]


def test_higher_priority_first() -> None:
    """User 1 has used 400 CPU seconds when the CPUs are free again, and users 2 nothing."""
    jobs = [
        {"run_s": 100, "cpus": 4, "user": 1},
        {"submit_s": 1, "run_s": 10, "cpus": 4, "user": 1},
        {"submit_s": 2, "run_s": 10, "cpus": 4, "user": 2},
    ]
    assert starts(jobs) == [0, 100.5, 111.5]
    assert starts(jobs, fair_share_weight=1000.0, calc_period_s=10.0) == [0, 111.5, 100.5]


def test_the_main_scheduler_blocks_the_partition_of_a_job(tmp_path: Path) -> None:
    """Job 2 does not fit in its partition, so job 3 does not start. Job 4 has another partition."""
    records = ["JobID|Partition|User|Submit|ElapsedRaw|AllocCPUS|TimelimitRaw|State"]
    for number, (partition, second, cpus) in enumerate(
        [("a", 0, 1), ("a", 1, 2), ("a", 2, 1), ("b", 3, 1), ("b", 4, 1)], 1
    ):
        submit = f"2024-03-01T08:00:0{second}"
        records.append(f"{number}|{partition}|u|{submit}|10|{cpus}|1|COMPLETED")
    log = tmp_path / "sacct.txt"
    log.write_text("\n".join(records))
    settings = {"bf_interval": 10_000, "cpus_per_node": 2}
    cluster = {
        "machines": [{"cpus": 2}, {"cpus": 2}], "resource": "machine",
        "policy": {"name": "slurm", "settings": settings},
    }  # fmt: skip
    workload = {"entry_point": "cluster", "trace": str(log), "route": "partition"}

    def run(**bound: int) -> list[float]:
        numbers = {1: bound["a"], 2: bound["b"]}
        vo = {
            "name": "lab",
            "clusters": [cluster],
            "workload": workload | {"bound_machines": numbers},
        }
        return list(grid.run({"vos": [vo]}).jobs().sort_values("job_id")["starting_time"])

    assert run(a=0, b=1) == [0, 10.5, 21.5, 3.5, 6.5]
    assert run(a=0, b=0) == [0, 10.5, 21.5, 21.5, 32.5]
    with pytest.raises(InputError) as caught:
        run(a=0, b=2)
    assert [one.field for one in caught.value.errors] == ["vos.0.workload.bound_machines.2"]


def test_a_job_over_its_user_s_limit_is_skipped() -> None:
    jobs = [{"run_s": 100, "user": 1}, {"run_s": 10, "user": 1}, {"run_s": 10, "user": 2}]
    assert starts(jobs, max_running_jobs=1) == [0, 100.5, 0]


def test_backfill_reserves_whole_nodes() -> None:
    """Job 2 is planned on three CPUs from 120 s on, and job 3 would use the fourth until then.

    With two CPUs on each node, the fourth is on a node that job 2 reserves.
    """
    jobs = [
        JOBS[0],
        {"submit_s": 1, "run_s": 60, "cpus": 3, "user": 2},
        {"submit_s": 2, "run_s": 10, "estimate_s": 240, "cpus": 1, "user": 3},
    ]
    assert starts(jobs) == [0, 100.5, 30]
    assert starts(jobs, cpus_per_node=2) == [0, 100.5, 100.5]


def test_jobs_are_placed_on_nodes_that_fit_best() -> None:
    free = np.array([1, 4, 0, 2, 2, 0, 3])

    def nodes(cpus: int) -> list[int]:
        found = placed(free, cpus)
        assert found is not None
        return found.tolist()

    # Sets of consecutive nodes with free CPUs: 5, 4 and 3 CPUs.
    assert nodes(3) == [0, 0, 0, 0, 0, 0, 3]
    assert nodes(2) == [0, 0, 0, 0, 0, 0, 2]
    assert nodes(4) == [0, 0, 0, 2, 2, 0, 0]
    assert nodes(5) == [1, 4, 0, 0, 0, 0, 0]
    assert nodes(8) == [1, 4, 0, 0, 0, 0, 3]
    assert nodes(12) == free.tolist()
    assert placed(free, 13) is None


def test_resources_of_nodes_are_used_in_proportion_to_cpus() -> None:
    """Two nodes of four CPUs with two GPUs each. A job of four CPUs and four GPUs needs both."""
    site = {"machines": [{"cpus": 8, "resources": {"gpus": 4}, "ram_mb": 80}]}
    jobs = [
        {"run_s": 100, "cpus": 4, "resources": {"gpus": 4}, "user": 1},
        {"submit_s": 1, "run_s": 10, "resources": {"gpus": 1}, "user": 1},
        {"submit_s": 2, "run_s": 10, "cpus": 4, "user": 1},
        {"submit_s": 3, "run_s": 10, "cpus": 1, "resources": {"gpus": 3}, "user": 1},
        {"submit_s": 3, "run_s": 10, "cpus": 8, "ram_mb": 81, "user": 1},
    ]
    # Job 3 uses two CPUs of each node. Jobs 4 and 5 fit on no node and on no machine.
    assert starts(jobs[:4], machine=site, cpus_per_node=4) == [0, 100.5, 30, -1]
    # A node with all of it: job 4 has enough.
    assert starts(jobs[:4], machine=site, cpus_per_node=8) == [0, 100.5, 30, 100.5]
    assert starts(jobs[4:], machine=site, cpus_per_node=8) == [-1]


def test_jobs_without_their_licenses_are_skipped() -> None:
    """Job 2 waits for a resource of the cluster, and gets no reservation. Job 3 starts."""
    site = {"cpus": 4, "resources": {"licenses": 1}}
    licensed = {"run_s": 100, "resources": {"licenses": 1}, "user": 1}
    jobs = [
        licensed,
        {**licensed, "submit_s": 1},
        {"submit_s": 2, "run_s": 300, "cpus": 3, "user": 1},
    ]
    assert starts(jobs, machine=site) == [0, 100.5, 3.5]


def test_jobs_do_not_start_if_their_limits_reach_into_a_reservation() -> None:
    """All four CPUs, in nodes of two, are reserved from 150 s to 200 s; or one of the nodes."""
    jobs = [
        {"submit_s": 1, "run_s": 20, "estimate_s": 130, "user": 1},
        {"submit_s": 2, "run_s": 20, "estimate_s": 60, "cpus": 4, "user": 1},
        {"submit_s": 3, "run_s": 20, "estimate_s": 60, "cpus": 2, "user": 1},
    ]
    machine = {"name": "m", "cpus": 4}
    window = {"from_s": 150, "to_s": 200, "machines": ["m"]}
    site = {"machines": [machine], "reservations": [window]}
    # Job 1 has a limit of three minutes, and blocks no job behind it.
    assert starts(jobs, machine=site, cpus_per_node=2) == [210, 4.5, 25.5]
    # The reservation ends beyond the minute for which backfill plans.
    assert starts(jobs[:1], machine=site, bf_window=1) == [210]
    half = {"machines": [machine], "reservations": [{**window, "cpus": 2}]}
    assert starts(jobs, machine=half, cpus_per_node=2) == [1.5, 22.5, 43.5]
    own = {"machines": [machine], "reservations": [{**window, "users": [1]}]}
    assert starts(jobs, machine=own, cpus_per_node=2) == [1.5, 22.5, 43.5]


@settings(max_examples=examples(15), deadline=None)
@given(
    st.lists(st.tuples(*map(st.integers, (0, 1, 1), (90, 90, 4)), st.integers(0, 150)), min_size=1)
)
def test_gpus_of_a_node_are_like_cpus(described: list[tuple[int, int, int, int]]) -> None:
    jobs = [
        {"submit_s": submit, "run_s": run, "estimate_s": run + more, "user": 1}
        for submit, run, _, more in sorted(described)
    ]
    amounts = [amount for _, _, amount, _ in sorted(described)]
    on_gpus = [
        {**job, "resources": {"gpus": amount}} for job, amount in zip(jobs, amounts, strict=True)
    ]
    on_cpus = [{**job, "cpus": amount} for job, amount in zip(jobs, amounts, strict=True)]
    site = {"machines": [{"cpus": 1000, "resources": {"gpus": 4}}]}
    expected = starts(on_cpus, cpus_per_node=4, bf_interval=7)
    assert starts(on_gpus, machine=site, cpus_per_node=1000, bf_interval=7) == expected


def by_checks(
    jobs: list[dict[str, Any]], reserved: tuple[float, float] = (1e9, 1e9)
) -> list[float]:
    """FCFS at half seconds after events, at least three seconds after the last time.

    Jobs whose limits reach into the time when all is reserved are skipped.
    """
    found: dict[int, float] = {}
    ends: dict[int, float] = {}
    check, last = 0.5, -10.0
    while len(found) < len(jobs):
        events = [*(job["submit_s"] for job in jobs), *ends.values()]
        is_full = check % 60 == 0.5 and any(
            job["submit_s"] <= check for number, job in enumerate(jobs) if number not in found
        )
        if is_full or (check >= last + 3 and any(last <= event < check for event in events)):
            last = check
            for number, job in enumerate(jobs):
                limit = -(-job["run_s"] // 60) * 60
                if number in found or job["submit_s"] > check:
                    continue
                if check < reserved[1] and check + limit > reserved[0]:
                    continue
                held = sum(jobs[one]["cpus"] for one, end in ends.items() if end >= check)
                if held + job["cpus"] > 4:
                    break
                found[number], ends[number] = check, check + job["run_s"]
        check += 1
    return [found[number] for number in range(len(jobs))]


@settings(max_examples=examples(15), deadline=None)
@example([(0, 1, 1), (60, 1, 1)], 6)
@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(1, 90), st.integers(1, 4)), max_size=9),
    st.integers(1, 200),
)
def test_the_main_scheduler_alone_is_fcfs_at_checks(
    described: list[tuple[int, int, int]], reserved_s: int
) -> None:
    jobs = [
        {"submit_s": submit + 1, "run_s": run, "cpus": cpus, "user": 1}
        for submit, run, cpus in sorted(described)
    ]
    if jobs:
        assert starts(jobs, bf_interval=10_800) == by_checks(jobs)
        window = (float(reserved_s), reserved_s + 55.0)
        site = {"cpus": 4, "reservations": [{"from_s": window[0], "to_s": window[1]}]}
        assert starts(jobs, machine=site, bf_interval=10_800) == by_checks(jobs, window)
