"""Values of decisions, by hand."""

from __future__ import annotations

from typing import Any

import pytest

import grid
from grid.model.records import VoFigure
from grid.results.metrics import decision_metrics, fixed_numbers, sums_of

SILENT: dict[str, Any] = {"snapshots": {}}


def vo(name: str, *jobs: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "clusters": [{"cpus": 1}], "workload": {"jobs": list(jobs)}}


def run(*vos: dict[str, Any], **protocol: Any) -> Any:
    network = {"local_latency_s": 0.001, "latency_s": 1}
    scenario = {"name": "g", "vos": vos, "network": network, "protocol": SILENT | protocol}
    return grid.run(scenario).metrics


def job(submit_s: float, run_s: float = 100, **more: Any) -> dict[str, Any]:
    return {"submit_s": submit_s, "run_s": run_s, **more}


def test_a_herd_of_two_by_hand() -> None:
    """a and b each send a job to c, idle for all they know; the second is late."""
    solaris = {"kind": "operating_system", "options": [{"value": "solaris"}]}
    asking = {"requirements": [solaris]}
    long = job(0.5, 1000)
    c_only = {
        "name": "c", "clusters": [{"machines": [{"cpus": 1, "operating_system": "solaris"}]}]
    }  # fmt: skip
    found = run(
        vo("a", long, job(10, input_mb=5, **asking)),
        vo("b", long, job(11, input_mb=7, **asking)),
        c_only,
        ttl=2,
    )
    whole, (a, b, c) = found["grid"], found["vos"].values()
    assert whole["jobs_forwarded"] == 2
    assert (c["herd_mean"], c["herd_largest"]) == (2, 2)
    assert (c["misjudged_arrivals"], c["refusals"], c["not_admitted"]) == (1, 1, 0)
    # The first came to a free CPU, as was believed; the second, to one with one job.
    assert c["information_error_mean"] == 0.5
    # c was idle at 0; the own latencies to the decision are 2 ms.
    assert a["information_age_mean"] == pytest.approx(10.003, abs=0.002)
    assert (a["input_sent_mb"], b["input_sent_mb"], whole["input_wasted_mb"]) == (5, 7, 0)
    assert a["reservation_messages_per_job"] == 0
    # a: one job of two handed on. c: two ends reported. Nobody says anything of resources.
    assert a["job_messages_per_job"] == 0.5
    assert a["information_messages_per_job"] == 0
    assert c["messages_per_job"] is None
    assert whole["messages_per_job"] == (2 + 2) / 4


@pytest.mark.parametrize(("forwarding", "sent", "wasted"), [("forward", 15, 15), ("queue", 15, 10)])
def test_input_sent_to_a_vo_where_the_job_does_not_run_is_wasted(
    forwarding: str, sent: float, wasted: float
) -> None:
    """Nothing is free. A job of a's goes to b, a, b and fails, or queues there."""
    found = run(
        vo("a", job(0.5, 1000), job(10, input_mb=5)),
        vo("b", job(0.5, 900)),
        forwarding=forwarding,
        ttl=3,
    )
    assert found["grid"]["jobs_failed"] == (wasted == 15)
    assert found["grid"]["input_sent_mb"] == sent
    assert found["grid"]["input_wasted_mb"] == wasted


def test_leases_and_cancelled_reservations_are_counted_at_their_vo() -> None:
    rule = {"name": "redundant", "settings": {"copies": 3}}
    busy = [job(0.5, 1000)]
    found = run(
        vo("a", *busy, job(10)), vo("b", job(0.5, 300)), vo("c", *busy), forwarding=rule, ttl=1
    )
    # The copy in b's queue wins; those of a and c are cancelled.
    assert [one["leases"] for one in found["vos"].values()] == [0, 1, 0]
    assert [one["reservations_cancelled"] for one in found["vos"].values()] == [1, 0, 1]
    assert found["grid"]["leases_lost"] == 0
    assert found["vos"]["a"]["reservation_messages_per_job"] > 0


def test_sums_do_not_depend_on_the_order_of_counts() -> None:
    counted = [VoFigure(0, "age.sum", 0.1), VoFigure(1, "age.sum", 1e16), VoFigure(2, "age.sum", 3)]
    counted += [VoFigure(0, "herd.most", 3.0), VoFigure(1, "herd.most", 2.0)]
    assert sums_of(counted) == sums_of(counted[::-1])
    assert sums_of(counted)["herd.most"] == 3


def test_bytes_are_eight_for_each_number() -> None:
    assert fixed_numbers()["Probe"] == 1
    assert fixed_numbers()["SubmissionFail"] == 4  # The key of a job is two.
    sums = {"messages.Probe": 3, "messages.Snapshot": 2, "cells.Snapshot": 10}
    found = decision_metrics(sums, 4)
    assert found["message_bytes_per_job"] == 8 * (3 + 10) / 4
    assert found["information_messages_per_job"] == 5 / 4


@pytest.mark.parametrize("latency_s", [1, 4, 11])
def test_age_of_information_over_different_links(latency_s: float) -> None:
    """Snapshots are due every 10 s. That b had nothing new to say by 20 s is known when its word
    could have come, however slow the link to c is.

    A job comes at that time. Its scheduler decides three local latencies later.
    """
    links = [{"between": ["a", "b"], "latency_s": latency_s}]
    network = {"local_latency_s": 0.5, "latency_s": 30, "links": links}
    submit_s = 20 + latency_s
    vos = [vo("a", job(0.5, 1000), job(submit_s, 1)), vo("b"), vo("c")]
    protocol = {"snapshots": {"period_s": 10}, "ttl": 1}
    scenario = {"name": "g", "vos": vos, "network": network, "protocol": protocol}
    found = grid.run(scenario).metrics["vos"]["a"]
    assert found["jobs_forwarded"] == 1
    assert found["information_age_mean"] == pytest.approx(latency_s + 1.5, abs=1e-3)
