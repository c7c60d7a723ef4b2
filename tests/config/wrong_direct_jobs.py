"""Scenarios in which jobs enter their clusters, with something that would then do nothing."""

from __future__ import annotations

from tests.config.wrong_scenarios import JOB, WRONG_SCENARIOS, Wrong

DIRECT = """\
name: direct
seed: 7
vos:
  - name: north
    clusters: [{name: farm, machines: [{count: 2}]}]
    workload:
      entry_point: cluster
      jobs:
        - run_s: 60
"""
"""Right, too: no job comes by a Local Scheduler, and so no entity sends a message."""
NEIGHBOUR = "  - {name: south, clusters: [{cpus: 2}], workload: {jobs: [{run_s: 60}]}}\n"
NO_MESSAGE = "no such setting, for all jobs enter their clusters directly, and no entity sends a"
PAST_SCHEDULER = "no such setting, for the VO's jobs enter its cluster directly, past its Local"


def direct(old: str, new: str, more: str = "") -> str:
    """The scenario of direct jobs with one place changed."""
    assert DIRECT.count(old) == 1, old
    return DIRECT.replace(old, new) + more


WRONG_FOR_DIRECT_JOBS = [
    Wrong("a TTL where no job is forwarded", direct("seed: 7", "protocol: {ttl: 9}"), 2,
        "protocol.ttl"),
    Wrong("no snapshots where there are none",
        direct("seed: 7", "protocol:\n  snapshot_period_s: null"), 3, "protocol.snapshot_period_s"),
    Wrong("a latency of no messages", direct("seed: 7", "network: {latency_s: 9}"), 2,
        "network.latency_s"),
    Wrong("--set of a latency of no messages", DIRECT, None, "network.latency_s",
        ("network.latency_s=9",)),
    Wrong("no message to lose between VOs",
        direct("seed: 7", "faults: {heal_s: 9, between_vos: {lost: 0.5}}"), 2,
        "faults.between_vos.lost"),
    Wrong("no message to lose within VOs",
        direct("seed: 7", "faults: {heal_s: 9, within_vos: {delayed: 0.5}}"), 2,
        "faults.within_vos.delayed"),
    *(
        Wrong(
            f"{key} of direct jobs beside a VO whose jobs are routed",
            direct("name: north", f"name: north\n    {key}: {value}", NEIGHBOUR),
            5,
            f"vos.0.{key}",
        )
        for key, value in {
            "selection": "random",
            "forwarding": "reject",
            "admission": "none",
            "priority": "local",
        }.items()
    ),
    Wrong("direct jobs bound to machines", direct("name: farm,", "name: farm, resource: machine,"),
        5, "vos.0.clusters.0.resource"),
    Wrong("a requirement of a direct job",
        direct("run_s: 60", "run_s: 60\n          requirements: [{kind: speed, options: [{value: 1}]}]"),  # noqa: E501
        10, f"{JOB}.requirements"),
    Wrong("requirements that direct jobs get",
        direct("entry_point: cluster", "entry_point: cluster\n      attributes: {requirements: [{kind: speed, options: [{value: 1}]}]}"),  # noqa: E501
        8, "vos.0.workload.attributes.requirements"),
]  # fmt: skip

ALL_WRONG = [*WRONG_SCENARIOS, *WRONG_FOR_DIRECT_JOBS]
