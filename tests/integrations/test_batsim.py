"""Policies as external schedulers of Batsim, driven by the policy `batsim`."""

from __future__ import annotations

from typing import Any

import pytest

from grid.integrations.batsim import ProtocolError, Server, serve
from grid.model.errors import InputError, PluginFailed
from grid.model.time import Time
from grid.policies.interface import ClusterView, Plan
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


def test_a_job_id_cannot_be_reused_while_its_job_is_known() -> None:
    """The policy has not seen the first of the two when the second comes."""
    begin = event(0, "SIMULATION_BEGINS", {"nb_compute_resources": 4})
    job = event(0, "JOB_SUBMITTED", {"job_id": "w!1", "job": {"res": 1}})
    with pytest.raises(ProtocolError, match="found the job 'w!1' again"):
        server("fcfs").answer({"now": 0, "events": [begin, job, job]})


def test_the_end_of_a_job_that_does_not_run_is_rejected() -> None:
    served = server("easy")
    begin = {"nb_compute_resources": 4}
    served.answer({"now": 0, "events": [event(0, "SIMULATION_BEGINS", begin)]})
    with pytest.raises(
        ProtocolError, match="found the end of 'w!9', expected that of a running job"
    ):
        served.answer({"now": 1, "events": [event(1, "JOB_COMPLETED", {"job_id": "w!9"})]})


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
    with pytest.raises(InputError, match=rf"endpoint: found {endpoint}.*, expected one "):
        serve(server("fcfs"), endpoint)


class Preempting:
    """Preempts whatever runs when something comes."""

    def plan(self, view: ClusterView, now: Time) -> Plan:
        if len(view.running):
            return Plan(preempt=view.running.tolist())
        return Plan(start=[(int(slot), 0) for slot in view.queue[:1]])


def test_a_policy_that_preempts_fails() -> None:
    served = Server(Preempting(), "mine")
    begin = {"nb_compute_resources": 1}
    served.answer({"now": 0, "events": [event(0, "SIMULATION_BEGINS", begin)]})
    first, second = ({"job_id": f"w!{n}", "job": {"res": 1}} for n in (1, 2))
    served.answer({"now": 1, "events": [event(1, "JOB_SUBMITTED", first)]})
    with pytest.raises(
        PluginFailed, match="policy mine preempts jobs, which the protocol does not support"
    ):
        served.answer({"now": 2, "events": [event(2, "JOB_SUBMITTED", second)]})
