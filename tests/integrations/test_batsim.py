"""Policies as external schedulers of Batsim, driven by the policy `batsim`."""

from __future__ import annotations

from typing import Any

import pytest

from grid.integrations.batsim import ProtocolError, Server, serve
from grid.model.errors import InputError
from grid.policies.registry import make_policy
from tests.policies.batsim.asked_functions import asked, drawn_jobs, event, schedule


def server(name: str, **settings: Any) -> Server:
    return Server(make_policy(name, settings), name)


@pytest.mark.parametrize("name", ["fcfs", "edf", "easy", "conservative", "flexible"])
def test_a_served_policy_schedules_as_in_a_run(name: str) -> None:
    for seed in range(2):
        jobs = drawn_jobs(150, seed)
        assert schedule(asked(server(name).answer), jobs) == schedule(make_policy(name, {}), jobs)


def test_a_job_that_is_too_wide_is_rejected_and_a_walltime_may_be_missing() -> None:
    served = server("fcfs")
    begin = {"nb_compute_resources": 4}
    served.answer({"now": 0, "events": [event(0, "SIMULATION_BEGINS", begin)]})
    jobs = [
        event(5.0, "JOB_SUBMITTED", {"job_id": "w!wide", "job": {"res": 5, "walltime": 10}}),
        event(5.0, "JOB_SUBMITTED", {"job_id": "w!a", "job": {"res": 3}}),
        event(5.0, "JOB_SUBMITTED", {"job_id": "w!b", "job": {"res": 2, "walltime": -1}}),
    ]
    assert served.answer({"now": 5.0, "events": jobs}) == {
        "now": 5.0,
        "events": [
            event(5.0, "REJECT_JOB", {"job_id": "w!wide"}),
            event(5.0, "EXECUTE_JOB", {"job_id": "w!a", "alloc": "0-2"}),
        ],
    }
    ended = {"now": 7.0, "events": [event(7.0, "JOB_COMPLETED", {"job_id": "w!a"})]}
    started = event(7.0, "EXECUTE_JOB", {"job_id": "w!b", "alloc": "0-1"})
    assert served.answer(ended)["events"] == [started]
    served.answer({"now": 9.0, "events": [event(9.0, "SIMULATION_ENDS", {})]})
    assert served.is_over


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (3, "found 3, expected an object"),
        ({"now": 0}, "expected an object with now and events"),
        ({"now": -1, "events": []}, "found now -1, expected seconds"),
        ({"now": 0, "events": [7]}, "found the event 7"),
        ({"now": 0, "events": [event(0, "JOB_COMPLETED", {})]}, "expected SIMULATION_BEGINS first"),
        (
            {"now": 0, "events": [event(0, "SIMULATION_BEGINS", {"nb_compute_resources": 0})]},
            "found 0 resources",
        ),
    ],
)
def test_invalid_messages_are_rejected(message: Any, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        server("fcfs").answer(message)


@pytest.mark.parametrize(
    ("now", "kind", "data", "said"),
    [
        (9, "JOB_SUBMITTED", {"job_id": "w!1", "job": {"res": 1}}, "found the job 'w!1' again"),
        (
            9,
            "JOB_SUBMITTED",
            {"job_id": "w!2", "job": {"res": 1, "walltime": "3"}},
            "found walltime '3', expected seconds",
        ),
        (9, "SIMULATION_BEGINS", {"nb_compute_resources": 4}, "found a second SIMULATION_BEGINS"),
        (4, "REQUESTED_CALL", {}, r"found now 4, expected 5.0 on"),
    ],
)
def test_unexpected_events_are_rejected(now: float, kind: str, data: Any, said: str) -> None:
    served = server("fcfs")
    begin = event(0, "SIMULATION_BEGINS", {"nb_compute_resources": 4})
    job = event(5, "JOB_SUBMITTED", {"job_id": "w!1", "job": {"res": 1}})
    served.answer({"now": 5, "events": [begin, job]})
    with pytest.raises(ProtocolError, match=said):
        served.answer({"now": now, "events": [event(now, kind, data)]})


def test_policies_that_cannot_serve_are_refused() -> None:
    with pytest.raises(
        InputError, match="a policy that schedules the queue of one pool without preemption"
    ):
        server("afcfs")
    with pytest.raises(
        InputError, match="a policy that schedules the queue of one pool without preemption"
    ):
        server("batsim", endpoint="tcp://localhost:1")


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:99999", "tcp://127.0.0.1:x", "nothing"])
def test_unreachable_endpoints_are_refused(endpoint: str) -> None:
    pytest.importorskip("zmq")
    with pytest.raises(InputError, match=rf"endpoint: found {endpoint}.*, expected an endpoint "):
        serve(server("fcfs"), endpoint)
