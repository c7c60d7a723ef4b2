"""What is said of a log, and logs made from it."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.model.workload import TraceFilterSection
from grid.workload.logs import Log, SwfField
from grid.workload.trace import describe, filter_log, scale_interarrival

S = 1_000_000


def log_of(*jobs: dict[str, int], **header: str) -> Log:
    columns = np.full((len(jobs), len(SwfField)), -1)
    for row, job in enumerate(jobs):
        for name, value in ({"job_number": row + 1} | job).items():
            columns[row, SwfField[name.upper()]] = value
    return Log(Path("made"), columns, np.arange(1, len(jobs) + 1), header)


def job(submit_s: int, run_s: int, processors: int, **others: int) -> dict[str, int]:
    return {
        "submit_time": submit_s * S,
        "run_time": run_s * S,
        "allocated_processors": processors,
    } | others


def test_describe_by_hand() -> None:
    log = log_of(
        job(100, 10, 4, user=1, partition=7, status=1),
        job(110, 20, 1, user=2, partition=7, status=1, requested_time=30 * S),
        job(140, 0, 3, user=1, partition=8, status=5),
        job(200, 30, 5, user=1, partition=8, status=1, requested_processors=6),
        MaxProcs="8 (4 nodes of 2)",
    )
    found = describe(log)
    assert found["jobs"] == 4
    assert (found["users"], found["groups"], found["partitions"]) == (2, 0, 2)
    assert (found["first_submit_s"], found["last_submit_s"], found["span_s"]) == (100, 200, 100)
    assert found["max_processors"] == 8
    # (10 * 4 + 20 * 1 + 0 * 3 + 30 * 6) / (8 * 100)
    assert found["offered_load"] == pytest.approx(240 / 800)
    assert found["users_with_most_work"] == [
        {"user": 1, "jobs": 3, "share_of_work": pytest.approx(220 / 240)},
        {"user": 2, "jobs": 1, "share_of_work": pytest.approx(20 / 240)},
    ]
    assert found["processors"]["mean"] == 3.5
    assert found["processors"]["median"] == 3
    assert found["processors"]["powers_of_two"] == 2
    assert found["processors"]["jobs_by_most_processors"] == {"1": 1, "4": 2, "8": 1}
    assert found["run_time_s"]["max"] == 30
    assert found["requested_time_s"]["mean"] == 30
    assert found["interarrival_s"] == {
        "mean": pytest.approx(100 / 3),
        "min": 10,
        "median": 30,
        "p90": 60,
        "p99": 60,
        "max": 60,
    }
    assert found["longest_gaps"][0] == {"after_s": 140, "gap_s": 60}
    assert found["statuses"] == {"1": 3, "5": 1}
    assert found["missing"]["requested time"] == 3
    assert "user" not in found["missing"]
    assert found["left_out"] == {"no_run_time": 1, "allocated_not_requested": 1}
    assert json.loads(json.dumps(found)) == found


def test_parts_of_a_job_add_no_load_to_its_own() -> None:
    """SWF: a job that was swapped out has a line of its own beside those of its parts."""
    parts = [job(0, 10, 2, user=1, status=2), job(0, 30, 2, user=1, status=3)]
    log = log_of(job(0, 40, 2, user=1, status=1), *parts, job(100, 20, 1, user=2, status=1))
    found = describe(log, max_processors=1)
    assert found["offered_load"] == pytest.approx((40 * 2 + 20) / 100)
    assert [one["share_of_work"] for one in found["users_with_most_work"]] == [0.8, 0.2]


small = st.integers(-1, 6)


@given(
    st.lists(st.tuples(small, small, small, small, small), max_size=12),
    st.tuples(*[st.one_of(st.none(), small)] * 4),
    st.one_of(st.none(), st.sets(small)),
    st.one_of(st.none(), st.sets(small)),
)
def test_filter_keeps_what_a_plain_loop_keeps(
    rows: list[tuple[int, ...]],
    bounds: tuple[int | None, ...],
    users: set[int] | None,
    statuses: set[int] | None,
) -> None:
    names = ("submit_time", "requested_processors", "allocated_processors", "user", "status")
    log = log_of(*[dict(zip(names, row, strict=True)) for row in rows])
    start, end, fewest, most = bounds
    wanted = TraceFilterSection.model_construct(
        from_s=None if start is None else start / S,
        before_s=None if end is None else end / S,
        min_cpus=fewest,
        max_cpus=most,
        users=None if users is None else tuple(users),
        statuses=None if statuses is None else tuple(statuses),
    )
    kept = filter_log(log, wanted)
    expected = []
    for number, (submit, requested, allocated, user, status) in enumerate(rows, start=1):
        processors = requested if requested > 0 else allocated
        if (
            (start is None or submit >= start)
            and (end is None or submit < end)
            and (fewest is None or processors >= fewest)
            and (most is None or processors <= most)
            and (users is None or user in users)
            and (statuses is None or status in statuses)
        ):
            expected.append(number)
    assert kept[SwfField.JOB_NUMBER].tolist() == expected
    assert kept.lines.tolist() == expected


@given(
    st.lists(st.integers(-1, 10**15), min_size=1, max_size=8),
    st.fractions("1/1000", 50, max_denominator=1000),
)
def test_scaling_is_exact(times: list[int], factor: Fraction) -> None:
    log = log_of(*[{"submit_time": time} for time in times])
    scaled = scale_interarrival(log, factor)[SwfField.SUBMIT_TIME].tolist()
    known = [time for time in times if time >= 0]
    for before, after in zip(times, scaled, strict=True):
        if before < 0:
            assert after == before
        else:
            assert abs(after - min(known) - (before - min(known)) * factor) <= Fraction(1, 2)
    assert [scaled[i] for i in np.argsort(times, kind="stable")] == sorted(scaled)


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf"), 1e12])
def test_a_wrong_factor_is_a_value_error(factor: float) -> None:
    with pytest.raises(ValueError):
        scale_interarrival(log_of(job(0, 1, 1), job(10**6, 1, 1)), factor)
