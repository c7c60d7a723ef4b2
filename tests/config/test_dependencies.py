"""Jobs that depend on others: against a slow oracle, under faults, and invalid dependencies."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import grid
from grid.config.build import Grid
from grid.config.load import load_scenario
from grid.config.schema import GridSettings
from grid.config.workload import realize
from grid.model.errors import InputError
from grid.model.job import FINAL_STATES, JobState
from grid.model.job_table import JobTable, Predecessors
from grid.model.platform import Cluster, VirtualOrganization
from grid.results.checkers import digest
from grid.runtime.chaos import attempt, subject_of

D = 1_000
"""The latency inside a VO in microseconds."""
BETWEEN = 50_000
MBPS = 8.0
"""A megabyte takes a second."""
S = 1_000_000
VOS = ("a", "b")


def scenario(jobs: dict[str, list[dict[str, Any]]], cpus: int = 1000, **more: Any) -> Any:
    """A scenario of jobs by VO."""
    network = {"local_latency_s": D / S, "latency_s": BETWEEN / S, "bandwidth_mbps": MBPS}
    vos = [
        {"name": name, "clusters": [{"cpus": cpus}]}
        | ({"workload": {"jobs": jobs[name]}} if jobs.get(name) else {})
        for name in VOS
    ]
    return {"name": "workflow", "network": network, "vos": vos, **more}


def outcomes(run: Any) -> dict[tuple[str, int], tuple[int, int, int, int]]:
    """Submission, start, end and state of each job; times in microseconds."""
    results = run.results
    columns = (results.submit_us, results.outcome.start_us, results.outcome.end_us)
    each = zip(results.vo, results.number, *columns, results.outcome.state, strict=True)
    return {(VOS[vo], int(number)): tuple(map(int, rest)) for vo, number, *rest in each}


# The oracle


@st.composite
def workflows(draw: Any) -> dict[str, list[dict[str, Any]]]:
    """Jobs of two VOs, each after some of the jobs before it. Some are killed at their estimate."""
    jobs: dict[str, list[dict[str, Any]]] = {name: [] for name in VOS}
    every: list[tuple[str, int]] = []
    for number in range(1, draw(st.integers(2, 12)) + 1):
        vo = draw(st.sampled_from(VOS))
        before = draw(st.lists(st.sampled_from(every), max_size=3, unique=True)) if every else []
        after = [
            {
                "vo": other, "job": earlier, "state": draw(st.sampled_from(["ok", "ok", "any"])),
                "data_mb": draw(st.sampled_from([0.0, 0.5, 3.0])),
            }
            for other, earlier in before
        ]  # fmt: skip
        run_s = draw(st.integers(2, 60))
        is_killed = draw(st.integers(0, 9)) == 0
        jobs[vo].append(
            {
                "number": number, "run_s": run_s, "submit_s": draw(st.integers(0, 50)),
                "after": after, **({"estimate_s": 1} if is_killed else {}),
            }
        )  # fmt: skip
        every.append((vo, number))
    return jobs


def oracle(
    jobs: dict[str, list[dict[str, Any]]],
) -> dict[tuple[str, int], tuple[int, int, int, int]]:
    """Submission, start, end and state of each job, if CPUs are always free in its own VO."""
    found: dict[tuple[str, int], tuple[int, int, int, int]] = {}
    left = [(vo, job) for vo in VOS for job in jobs[vo]]
    while left:
        for vo, job in list(left):
            before = [(one["vo"], one["job"]) for one in job["after"]]
            if all(key in found for key in before):
                found[(vo, job["number"])] = outcome_of(vo, job, found)
                left.remove((vo, job))
    return found


def known_us(vo: str, key: tuple[str, int], one: tuple[int, int, int, int]) -> int:
    """When the Workload Source of a VO is notified of an end."""
    submit_us, start_us, end_us, _ = one
    # A job that never starts ends when its Local Scheduler has received the resources.
    at_scheduler = submit_us + 3 * D if start_us < 0 else end_us + 2 * D
    return at_scheduler + (D if key[0] == vo else BETWEEN)


def outcome_of(vo: str, job: dict[str, Any], found: Any) -> tuple[int, int, int, int]:
    before = [((one["vo"], one["job"]), one) for one in job["after"]]
    times = sorted((known_us(vo, key, found[key]), key, one) for key, one in before)
    for at_us, key, one in times:
        if one["state"] == "ok" and found[key][3] != JobState.COMPLETED:
            return (at_us, -1, -1, int(JobState.CANCELLED))
    submit_us = max([job["submit_s"] * S, *(at_us for at_us, _, _ in times)])
    start_us = submit_us + 5 * D
    remote = [one for key, one in before if found[key][1] >= 0 and one["vo"] != vo]
    if sum(one["data_mb"] for one in remote):
        start_us += BETWEEN + round(sum(one["data_mb"] for one in remote) * 8 / MBPS * S)
    is_killed = "estimate_s" in job
    run_us = (job["estimate_s"] if is_killed else job["run_s"]) * S
    state = JobState.FAILED if is_killed else JobState.COMPLETED
    return submit_us, start_us, start_us + run_us, int(state)


def critical_path_s(jobs: dict[str, list[dict[str, Any]]]) -> list[float]:
    """That of each workflow, by trying all paths."""
    every = {(vo, job["number"]): job for vo in VOS for job in jobs[vo]}
    after = {key: [(one["vo"], one["job"]) for one in job["after"]] for key, job in every.items()}
    connected: dict[Any, set[Any]] = {key: {key} for key in every}
    for key, before in after.items():
        for other in before:
            union = connected[key] | connected[other]
            connected |= dict.fromkeys(union, union)

    def longest(key: tuple[str, int]) -> float:
        return float(every[key]["run_s"]) + max(map(longest, after[key]), default=0.0)

    components = {min(one): one for one in connected.values() if len(one) > 1}
    return [max(map(longest, components[one])) for one in sorted(components)]


@settings(max_examples=60)
@given(workflows())
def test_each_job_starts_and_ends_as_in_the_oracle(jobs: dict[str, list[dict[str, Any]]]) -> None:
    run = grid.run(scenario(jobs, protocol={"forwarding": "never"}))
    found, expected = outcomes(run), oracle(jobs)
    assert found == expected
    metrics = run.metrics["grid"]
    paths = critical_path_s(jobs)
    assert metrics.get("workflows_submitted", 0) == len(paths)
    if len(paths) == 1 and metrics["workflows_completed"]:
        members = [
            key for vo in VOS for job in jobs[vo] for one in job["after"]
            for key in ((vo, job["number"]), (one["vo"], one["job"]))
        ]  # fmt: skip
        first = min(expected[key][0] for key in members)
        makespan_s = (max(expected[key][2] for key in members) - first) / S
        assert metrics["workflow_makespan_mean"] == pytest.approx(makespan_s)
        assert metrics["critical_path_mean"] == pytest.approx(paths[0])
        assert metrics["workflow_slowdown_mean"] == pytest.approx(makespan_s / paths[0])


@settings(max_examples=30)
@given(workflows(), st.sampled_from(["queue", "best_expected_finish", "until_idle", "auction"]))
def test_no_job_starts_before_its_predecessors_ended_and_its_data_arrived(
    jobs: dict[str, list[dict[str, Any]]], forwarding: str
) -> None:
    run = grid.run(scenario(jobs, cpus=1, protocol={"forwarding": forwarding, "ttl": 2}))
    found = outcomes(run)
    keys = zip(run.results.vo.tolist(), run.results.number.tolist(), strict=True)
    executed = run.results.placement.executed_vo.tolist()
    ran_in = {(VOS[vo], number): there for (vo, number), there in zip(keys, executed, strict=True)}
    assert all(one[3] in FINAL_STATES for one in found.values())
    for vo in VOS:
        for job in jobs[vo]:
            key = (vo, job["number"])
            before = [((one["vo"], one["job"]), one) for one in job["after"]]
            is_cancelled = any(
                one["state"] == "ok" and found[other][3] != JobState.COMPLETED
                for other, one in before
            )
            assert is_cancelled == (found[key][3] == JobState.CANCELLED)
            for other, one in before if not is_cancelled else ():
                is_remote = ran_in[other] not in (-1, ran_in[key])
                transfer_us = round(one["data_mb"] * 8 / MBPS * S) if is_remote else 0
                assert found[key][1] >= found[other][2] + transfer_us


# By hand


DIAMOND = [
    {"run_s": 10},
    {"run_s": 20, "after": [1]},
    {"run_s": 30, "after": [{"job": 1, "data_mb": 2}]},
    {"run_s": 5, "after": [2, 3]},
]


def test_a_diamond_by_hand() -> None:
    """Jobs 2 and 3 start 8 latencies after the end of job 1, and job 4 after that of job 3."""
    run = grid.run(scenario({"a": DIAMOND}))
    starts = [one[1] for one in outcomes(run).values()]
    assert starts == [5 * D, 10 * S + 13 * D, 10 * S + 13 * D, 40 * S + 21 * D]
    metrics = run.metrics["grid"]
    assert metrics["critical_path_mean"] == 45
    assert metrics["workflow_makespan_mean"] == (45 * S + 21 * D) / S
    assert run.metrics["vos"]["b"]["workflows_submitted"] == 0


def test_forwarded_tasks_take_their_data_with_them() -> None:
    """Job 1 fills VO a, so job 2 runs in b, and its output of 3 MB travels back to a for job 3."""
    jobs = [
        {"run_s": 100},
        {"run_s": 10},
        {"run_s": 10, "submit_s": 150, "after": [{"job": 2, "data_mb": 3}]},
    ]
    run = grid.run(scenario({"a": jobs}, cpus=1, protocol={"ttl": 1}))
    assert run.results.placement.executed_vo.tolist() == [0, 1, 0]
    assert int(run.results.outcome.start_us[2]) == 153 * S + BETWEEN + 5 * D
    assert run.metrics["grid"]["input_sent_mb"] == 3


@pytest.mark.parametrize(("state", "ends"), [("ok", "cancelled"), ("any", "completed")])
def test_a_job_whose_predecessor_fails(state: str, ends: str) -> None:
    jobs = [
        {"run_s": 10, "estimate_s": 5},
        {"run_s": 10, "after": [{"job": 1, "state": state}], "cancel_after_s": 50},
        {"run_s": 10, "after": [{"job": 2, "state": "any"}]},
    ]
    run = grid.run(scenario({"a": jobs}))
    states = [JobState(one[3]).name.lower() for one in outcomes(run).values()]
    assert states == ["failed", ends, "completed"]
    assert run.metrics["grid"]["workflows_completed"] == 0


# In all runtimes


def test_dependencies_under_faults_and_crashes(tmp_path: Path) -> None:
    jobs = [*DIAMOND, {"run_s": 9, "estimate_s": 3}, {"run_s": 7, "after": [{"job": 5}]}]
    one = scenario({"a": jobs, "b": [{"run_s": 5, "after": [{"job": 4, "vo": "a", "data_mb": 1}]}]})
    one["vos"][0]["clusters"] = [{"cpus": 1}]
    one["protocol"] = {"ttl": 2, "lost_after_s": 60, "snapshots": {"period_s": 10}}
    file = tmp_path / "waiting.yaml"
    file.write_text(yaml.safe_dump(one))
    subject = subject_of(load_scenario(file), str(file))
    trials = [attempt(subject, seed) for seed in range(12)]
    assert not [trial for trial in trials if trial.broken]


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_actors_give_the_digest_of_one_process() -> None:
    from grid.runtime.windowed import run_windowed

    jobs = {
        "a": [dict(job, number=at * 4 + place, after=[
            {"job": at * 4 + one["job"], "data_mb": 1} for one in map(full, job.get("after", ()))
        ]) for at in range(6) for place, job in enumerate(DIAMOND, start=1)],
        "b": [{"run_s": 3, "after": [{"job": 4, "vo": "a", "state": "any"}]}],
    }  # fmt: skip
    one = load_scenario(scenario(jobs, cpus=2, protocol={"ttl": 1}))
    expected = digest(grid.run(one).results)
    outcome = run_windowed(realize(one, "workflow")[0], actors=2)
    assert digest(outcome.results()) == expected


def full(after: Any) -> dict[str, Any]:
    return {"job": after} if isinstance(after, int) else after


# Invalid dependencies

TEXT = """\
vos:
  - name: a
    clusters: [{cpus: 4}]
    workload:
      jobs:
        - {run_s: 1}
        - run_s: 1
          after: [%s]
        - {run_s: 1, after: [2]}
"""


@pytest.mark.parametrize(
    ("after", "line", "field", "found"),
    [
        ("9", 8, "after", "job 9, which does not exist"),
        ("2", 8, "after", "job 2, the job itself"),
        ("3", 8, "after", "a cycle: 2 after 3 after 2"),
        ("{job: 2, vo: c}", 8, "after.0.vo", "'c'"),
        ("{job: 1, state: done}", 8, "after.0.state", "'done'"),
        ("-1", 8, "after.0", "-1"),
    ],
)
def test_an_invalid_dependency_is_an_error_of_its_line(
    tmp_path: Path, after: str, line: int, field: str, found: str
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(TEXT % after)
    with pytest.raises(InputError) as caught:
        load_scenario(file)
    (error,) = caught.value.errors
    assert (error.file, error.line, error.found) == (str(file), line, found)
    assert error.field == f"vos.0.workload.jobs.1.{field}"


def test_a_job_of_a_generator_may_be_waited_for() -> None:
    """Which numbers it gives its jobs is known only in the run."""
    one = scenario({"a": [{"run_s": 1, "after": [{"job": 3, "vo": "b"}]}]})
    settings = {"jobs": 3, "arrivals": {"distribution": "fixed", "mean_s": 1},
                "work": {"distribution": "fixed", "mean_s": 1}}  # fmt: skip
    one["vos"][1]["workload"] = {"generator": "stochastic", "settings": settings}
    with pytest.raises(InputError) as caught:
        realize(load_scenario(one), "scenario")
    assert caught.value.errors[0].field == "vos.0.workload.jobs.0.after"
    one["vos"][0]["workload"]["jobs"][0]["after"][0]["job"] = 2
    assert grid.run(one).metrics["grid"]["workflows_completed"] == 1


def test_jobs_that_enter_at_a_cluster_do_not_wait() -> None:
    workload = {"jobs": [{"run_s": 1}, {"run_s": 1, "after": [1]}], "entry_point": "cluster"}
    one = scenario({})
    one["vos"][0]["workload"] = workload
    with pytest.raises(InputError, match="`after` only with `entry_point: scheduler`"):
        load_scenario(one)


def test_tables_of_jobs_have_dependencies_in_python() -> None:
    jobs = JobTable.of(
        number=[1, 2, 3], submit_us=[0, 0, 0], processors=[1, 1, 1], estimate_us=[S, S, S],
        run_us=[S, S, S], predecessors=Predecessors.of([[], [1], [1, 2]]),
    )  # fmt: skip
    vos = [VirtualOrganization(name="a", clusters=(Cluster(name="c", cpus=4),))]
    made = Grid(GridSettings(name="python"), tuple(vos), (jobs,), (None,))
    ends = np.sort(grid.run(made).results.outcome.end_us).tolist()
    assert all(later - earlier > S for earlier, later in pairwise(ends))
    with pytest.raises(InputError, match="do not enter at a Local Scheduler"):
        Grid(GridSettings(name="python"), tuple(vos), (None,), (jobs,))


# Logs


def line(number: int, submit: int, run: int, vo: int, before: str = "-1", think: int = -1) -> str:
    fields = [number, submit, -1, run, 1, -1, -1, 1, run, -1, 1, 1, 1, 1, 1, vo, before, think]
    return " ".join(map(str, fields))


LOG = [
    line(1, 0, 100, 1),
    line(2, 5, 10, 1, "1", think=20),
    line(3, 6, 10, 2, "2", think=0),
    # One whose predecessor is not there, one that names itself, and one that names a later job.
    line(4, 50, 10, 2, "99", think=7),
    line(5, 60, 10, 2, "5"),
    line(6, 70, 10, 2, "7"),
    line(7, 500, 10, 1, "3", think=1),
    line(8, 501, 10, 1, "1&7,99", think=2),
]


def log_scenario(folder: Path, **workload: Any) -> dict[str, Any]:
    log = folder / "log.swf"
    log.write_text("\n".join(LOG) + "\n")
    of_log = {"trace": str(log), "route": "partition", "waits_for_predecessors": True, **workload}
    return scenario({}, cpus=4, workload=of_log)


def test_jobs_of_a_log_are_submitted_their_think_time_after_their_predecessors(
    tmp_path: Path,
) -> None:
    run = grid.run(log_scenario(tmp_path))
    found = {number: one for (_, number), one in outcomes(run).items()}
    # The Resource Manager, the Local Scheduler and the users are notified of an end.
    assert found[2][0] == found[1][2] + 3 * D + 20 * S
    # Users of another VO are notified over the link between both.
    assert found[3][0] == found[2][2] + 2 * D + BETWEEN
    assert found[7][0] == found[3][2] + 2 * D + BETWEEN + S
    assert found[8][0] == found[7][2] + 3 * D + 2 * S
    assert [found[number][0] for number in (1, 4, 5, 6)] == [0, 50 * S, 60 * S, 70 * S]
    assert run.metrics["grid"]["jobs_completed"] == 8
    # The path has the jobs 1, 2, 3, 7 and 8, and their think times.
    assert run.metrics["grid"]["critical_path_mean"] == 140 + 23


def test_deadlines_move_with_the_jobs(tmp_path: Path) -> None:
    deadline = {"deadline": {"least": 2, "most": 2}}
    run = grid.run(log_scenario(tmp_path, attributes=deadline))
    slack = run.results.deadline_us - run.results.submit_us
    assert (slack == 2 * run.results.estimate_us).all()
