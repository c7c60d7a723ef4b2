"""The policy `batsim`: its messages, what it makes of answers, and what it does not take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grid.model.errors import InvalidPlugin, PluginFailed
from grid.model.job import JobState
from grid.model.job_table import JobTable
from grid.model.time import SECOND_US
from grid.policies.queue import fcfs
from grid.policies.registry import make_policy
from tests.policies.batsim.asked_functions import CPUS, InTurn, asked, drawn_jobs, event, schedule

S = SECOND_US


def few(*rows: tuple[float, float, int], **columns: Any) -> JobTable:
    """Jobs of (submission, run time, processors), in seconds, with estimates of 100 s."""
    submit, run, processors = (np.array(column) for column in zip(*rows, strict=True))
    return JobTable.of(
        number=np.arange(1, len(rows) + 1),
        submit_us=submit * S,
        run_us=run * S,
        processors=processors,
        **{"estimate_us": np.full(len(rows), 100 * S), **columns},
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_scheduler_in_turn_schedules_as_our_own(seed: int) -> None:
    jobs = drawn_jobs(200, seed)
    assert schedule(asked(InTurn()), jobs) == schedule(fcfs(), jobs)


def test_messages_to_a_scheduler() -> None:
    log: list[dict[str, Any]] = []
    schedule(asked(InTurn(), log), few((0, 30, CPUS), (5, 100, 1)))
    assert [message["now"] for message in log] == [0.0, 1.0, 6.0, 31.0, 131.0]
    kinds = [[one["type"] for one in message["events"]] for message in log]
    assert kinds == [
        ["SIMULATION_BEGINS"],
        ["JOB_SUBMITTED"],
        ["JOB_SUBMITTED"],
        ["JOB_COMPLETED"],
        ["JOB_COMPLETED"],
    ]
    assert log[2]["events"][0]["data"] == {
        "job_id": "grid!1",
        "job": {"id": "grid!1", "profile": "grid!1", "res": 1, "subtime": 6.0, "walltime": 100.0},
        "profile": {"type": "delay", "delay": 100.0},
    }
    ended = [message["events"][0]["data"] for message in log[3:]]
    assert ended[0] == {
        "job_id": "grid!0",
        "job_state": "COMPLETED_SUCCESSFULLY",
        "return_code": 0,
        "alloc": f"0-{CPUS - 1}",
    }
    assert ended[1]["job_state"] == "COMPLETED_WALLTIME_REACHED"


class InTurnWithGpus(InTurn):
    """Also counts GPUs, by the fields of the configuration and of jobs."""

    gpus, asks = 0, dict[str, int]()

    def __call__(self, message: dict[str, Any]) -> dict[str, Any]:
        for one in message["events"]:
            data = one["data"]
            if one["type"] == "SIMULATION_BEGINS":
                self.gpus = data["config"]["resources"]["gpus"]
            elif one["type"] == "JOB_SUBMITTED":
                self.asks[data["job_id"]] = data["job"].get("resources", {}).get("gpus", 0)
            elif one["type"] == "JOB_COMPLETED":
                self.gpus += self.asks[data["job_id"]]
        return super().__call__(message)

    def starts(self) -> list[tuple[str, dict[str, Any]]]:
        waiting, started = self.queue, []
        while waiting and self.asks[waiting[0][0]] <= self.gpus:
            self.queue = waiting[:1]
            started += super().starts()
            if self.queue:
                break
            self.gpus -= self.asks[waiting[0][0]]
            waiting = waiting[1:]
        self.queue = waiting
        return started


@pytest.mark.parametrize("seed", range(3))
def test_a_scheduler_that_counts_gpus_schedules_as_our_own(seed: int) -> None:
    jobs = drawn_jobs(100, seed)
    held = np.random.default_rng(seed).integers(0, 5, len(jobs)) // 2.0
    jobs = replace(jobs, resources={"gpus": held})
    expected = schedule(fcfs(), jobs, gpus=2)
    assert expected != schedule(fcfs(), jobs, gpus=100)
    assert schedule(asked(InTurnWithGpus()), jobs, gpus=2) == expected


def test_a_scheduler_that_ignores_gpus_breaks_its_plan() -> None:
    jobs = few((0, 30, 1), (5, 30, 1), resources={"gpus": [2.0, 1.0]})
    with pytest.raises(PluginFailed, match="lacks free gpus"):
        schedule(asked(InTurn()), jobs, gpus=2)


def test_a_scheduler_is_not_told_true_run_times() -> None:
    def told_before_an_end(run_s: float) -> list[dict[str, Any]]:
        log: list[dict[str, Any]] = []
        schedule(asked(InTurn(), log), few((0, run_s, 2), (1, run_s, 3), (2, run_s, 1)))
        return [message for message in log if message["now"] < 10]

    assert told_before_an_end(20) == told_before_an_end(90)


def test_a_scheduler_that_thinks_hears_the_news_when_it_is_ready() -> None:
    log: list[dict[str, Any]] = []
    scheduler = InTurn(delay_s=4.0)
    start, _, _ = schedule(asked(scheduler, log), few((0, 30, 1), (5, 30, 1), (6, 30, 1)))
    # The beginning is heard a second before; then each round takes four.
    assert [message["now"] for message in log] == [0.0, 4.0, 8.0, 38.0, 42.0]
    assert start == [7 * S, 11 * S, 11 * S]
    assert [len(message["events"]) for message in log] == [1, 1, 2, 1, 2]


class Caller(InTurn):
    """Starts nothing but when it is called, every 25 seconds."""

    def __call__(self, message: dict[str, Any]) -> dict[str, Any]:
        called = any(one["type"] == "REQUESTED_CALL" for one in message["events"])
        answer = super().__call__({**message, "events": message["events"]})
        now = message["now"]
        if not called:
            for one in answer["events"]:
                name = one["data"]["job_id"]
                self.free = sorted(self.free + self.held.pop(name))
                self.queue.append((name, 1))
            answer["events"] = []
        if called or message["events"][0]["type"] == "SIMULATION_BEGINS":
            answer["events"].append(event(now, "CALL_ME_LATER", {"timestamp": now + 25.0}))
        return answer


def test_calls_come_when_they_were_asked_for_and_let_a_run_end() -> None:
    log: list[dict[str, Any]] = []
    start, _, _ = schedule(asked(Caller(), log), few((30, 10, 1), (31, 1, 1), (200, 10, 1)))
    assert start == [49 * S, 49 * S, 224 * S]
    calls = [m["now"] for m in log if m["events"][0]["type"] == "REQUESTED_CALL"]
    # Those of the time without jobs come too, and with the times at which they were asked for.
    assert calls == [25.0 * n for n in range(1, 10)]


class Killer(InTurn):
    """Kills the first job when the second comes."""

    def __call__(self, message: dict[str, Any]) -> dict[str, Any]:
        heard = message["events"]
        for one in heard:
            if one["type"] == "JOB_KILLED":
                for name in one["data"]["job_progress"]:
                    self.free = sorted(self.free + self.held.pop(name))
        answer = super().__call__(message)
        if any(one["data"].get("job_id") == "grid!1" for one in heard):
            kill = {"job_ids": ["grid!0"]}
            answer["events"].insert(0, event(message["now"], "KILL_JOB", kill))
        return answer


def test_a_job_that_is_killed_fails_and_gives_way_at_once() -> None:
    log: list[dict[str, Any]] = []
    jobs = few((0, 80, CPUS), (20, 10, CPUS))
    start, end, state = schedule(asked(Killer(), log), jobs)
    assert start == [0, 20 * S]
    assert end == [20 * S, 30 * S]
    assert state == [JobState.FAILED, JobState.COMPLETED]
    killed = {"job_ids": ["grid!0"], "job_progress": {"grid!0": {"profile": "grid!0"}}}
    killed["job_progress"]["grid!0"]["progress"] = 0.2
    kills = [m for m in log if m["events"][0]["type"] == "JOB_KILLED"]
    assert kills[0]["now"] == 21.0
    assert kills[0]["events"][0]["data"] == killed
    # It kills again when the second has ended, and there is nothing left to kill.
    assert kills[1]["events"][0]["data"] == {"job_ids": ["grid!0"], "job_progress": {}}


def test_a_job_that_is_rejected() -> None:
    def rejects(message: dict[str, Any]) -> dict[str, Any]:
        data = message["events"][0]["data"]
        events = []
        if "job" in data:
            events = [event(message["now"], "REJECT_JOB", {"job_id": data["job_id"]})]
        return {"now": message["now"], "events": events}

    start, end, state = schedule(asked(rejects), few((0, 80, 1), (20, 10, 1)))
    assert (start, end) == ([-1, -1], [0, 20 * S])
    assert state == [JobState.REJECTED] * 2


def answers(kind: str, **data: Any) -> Any:
    """A scheduler that answers one thing to the first job."""

    def scheduler(message: dict[str, Any]) -> dict[str, Any]:
        is_job = message["events"][0]["type"] == "JOB_SUBMITTED"
        events = [event(message["now"], kind, data)] if is_job else []
        return {"now": message["now"], "events": events}

    return scheduler


def twice(message: dict[str, Any]) -> dict[str, Any]:
    """Starts the first two jobs on the same resources."""
    events = [
        event(message["now"], "EXECUTE_JOB", {"job_id": one["data"]["job_id"], "alloc": "0-3"})
        for one in message["events"]
        if one["type"] == "JOB_SUBMITTED"
    ]
    return {"now": message["now"], "events": events}


def calls_for_ever(message: dict[str, Any]) -> dict[str, Any]:
    later = {"timestamp": message["now"] + 1.0}
    return {"now": message["now"], "events": [event(message["now"], "CALL_ME_LATER", later)]}


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        (lambda _: None, "replied None, expected an object"),
        (lambda _: [1], r"replied \[1\], expected an object"),
        (lambda _: {"now": 0}, "replied with events None, expected a list"),
        (lambda _: {"now": "x", "events": []}, "replied with now 'x', expected seconds"),
        (lambda _: {"now": float("nan"), "events": []}, "replied with now nan, expected seconds"),
        (lambda _: {"now": 1e300, "events": []}, "expected seconds of virtual time"),
        (lambda m: {"now": m["now"] - 0.5, "events": []}, "which is in the past|expected seconds"),
        (lambda m: {"now": m["now"], "events": [3]}, "replied with the event 3"),
        (answers("DANCE"), "replied with 'DANCE', expected one of EXECUTE_JOB"),
        (answers("SET_RESOURCE_STATE"), "replied with 'SET_RESOURCE_STATE'"),
        (answers("EXECUTE_JOB"), "names the job None"),
        (answers("EXECUTE_JOB", job_id="grid!7", alloc="0"), "which is not waiting here"),
        (answers("EXECUTE_JOB", job_id="grid!0"), "on None, expected text"),
        (answers("EXECUTE_JOB", job_id="grid!0", alloc="0-2"), "on 3 resources, expected 4"),
        (answers("EXECUTE_JOB", job_id="grid!0", alloc="14-17"), "expected numbers from 0 to 15"),
        (answers("KILL_JOB", job_ids=["grid!0"]), "kills job grid!0, which is waiting"),
        (answers("KILL_JOB", job_ids="grid!0"), "expected a list of strings"),
        (answers("CALL_ME_LATER", timestamp=0.5), "which is in the past"),
        (answers("NOTIFY", type="continue_registration"), "sent NOTIFY of 'continue_registration'"),
        (twice, "starts job grid!1 on resources 0-3, which are busy"),
    ],
)
def test_nonsense_is_one_line_that_names_the_scheduler(scheduler: Any, said: str) -> None:
    with pytest.raises(PluginFailed, match=said) as failed:
        schedule(asked(scheduler), few((0, 80, 4), (20, 10, 4)))
    assert str(failed.value).startswith("the scheduler 'tcp://nowhere:1' ")
    assert "\n" not in str(failed.value)


def test_a_scheduler_that_only_wants_to_be_called_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("grid.policies.batsim.policy.MOST_IDLE_CALLS", 50)
    with pytest.raises(PluginFailed, match="50 calls in a row, but starts none of 1 waiting jobs"):
        schedule(asked(calls_for_ever), few((0, 80, 4)))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "found neither, expected a command or an endpoint"),
        ({"command": "x {endpoint}", "endpoint": "tcp://x:1"}, "both a command and an endpoint"),
        ({"command": "pybatsim fcfs"}, r"a command with \{endpoint\}"),
        ({"endpoint": "http://x"}, "tcp://HOST:PORT"),
        ({"endpoint": "tcp://x:1", "patience_s": 0}, "greater than 0|above 0"),
    ],
)
def test_wrong_settings(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidPlugin, match=said):
        make_policy("batsim", settings)
