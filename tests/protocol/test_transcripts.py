"""Golden transcripts of the protocol: every message of a small grid, in order, with its time.

Messages take 1 ms inside a VO and 50 ms between VOs; jobs run for ten seconds. Each file of
`transcripts` begins with what it shows.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from grid.model.plugins.registry import Kind
from grid.protocol.registry import CLUSTER_CHOICES, FORWARDING, INFORMATION, SELECTIONS
from tests.config.grids import grid_of, transcript, vo

TRANSCRIPTS = Path(__file__).parent / "transcripts"
NO_SNAPSHOTS = {"snapshots": {}}
LINUX_OR_MACOS = [
    {
        "kind": "operating_system",
        "options": [{"value": "linux", "utility": 1.0}, {"value": "macos", "utility": 0.5}],
    }
]


def job(submit_s: float, **more: Any) -> dict[str, Any]:
    return {"submit_s": submit_s, "run_s": 10, **more}


def by(policy: str, **settings: Any) -> dict[str, Any]:
    return {**NO_SNAPSHOTS, "forwarding": {"name": policy, "settings": settings}}


def busy_vos(*names: str) -> list[dict[str, Any]]:
    """VOs of one CPU each, which run a job of their own from the beginning."""
    return [vo(name, 1, [job(1)]) for name in names]


def fast(name: str, *jobs: dict[str, Any]) -> dict[str, Any]:
    """A VO of one CPU that is four times as fast."""
    return {
        "name": name,
        "clusters": [{"name": "c", "machines": [{"cpus": 1, "mips": 4000.0}]}],
        "workload": {"jobs": list(jobs)},
    }


def dispatched(jobs: list[dict[str, Any]], *clusters: dict[str, Any]) -> list[dict[str, Any]]:
    """A VO with clusters x and y of two and four CPUs, after others."""
    pools = [{"name": "x", "cpus": 2, "resource": "cluster"}]
    pools += [{"name": "y", "cpus": 4, "resource": "cluster"}]
    return [{"name": "a", "clusters": [*clusters, *pools], "workload": {"jobs": jobs}}]


def guest_of(settings: dict[str, Any], **protocol: Any) -> dict[str, Any]:
    """b admits by these settings; a sends it jobs 2 and 3, and c is further away than b."""
    return {
        "protocol": {**by("when_nothing_free"), **protocol},
        "vos": [
            vo("a", 1, [job(1), job(2), job(3)]),
            vo("b", 2, admission={"name": "limited", "settings": settings}),
            vo("c", 1),
        ],
    }


POLICIES: dict[str, dict[str, Any]] = {
    "queue": {"protocol": NO_SNAPSHOTS, "vos": [vo("a", 1, [job(1), job(2)]), vo("b", 1)]},
    "forward": {
        "protocol": {**NO_SNAPSHOTS, "ttl": 1, "forwarding": "forward"},
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b")],
    },
    "reject": {"protocol": {"forwarding": "reject"}, "vos": [vo("a", 1, [job(1), job(2)])]},
    "never": {"protocol": by("never"), "vos": [vo("a", 1, [job(1), job(2)]), vo("b", 1)]},
    "to_the_best": {
        "protocol": {**by("to_the_best"), "ttl": 1},
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b")],
    },
    "when_nothing_free": {
        "protocol": {**by("when_nothing_free"), "avoid_loops": True},
        "vos": [vo("a", 1, [job(1), job(2), job(3)]), vo("b", 1)],
    },
    "above_load": {
        "protocol": by("above_load", load=2),
        "vos": [vo("a", 1, [job(1), job(2), job(3)]), vo("b", 1)],
    },
    "until_idle": {
        "protocol": by("until_idle", hops=2),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b", "c")],
    },
    "reserve": {
        "protocol": by("reserve", lease_s=5, wait_s=1),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b"), vo("c", 1)],
    },
    "redundant": {
        "protocol": by("redundant", copies=3, lease_s=5),
        "vos": [vo("a", 1, [job(1), job(2)]), fast("b", job(1)), *busy_vos("c")],
    },
    "delegated": {
        "protocol": by("delegated", children=2),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b", "c"), vo("d", 1)],
    },
    "pull": {
        "protocol": by("pull", every_s=None),
        "vos": [vo("a", 1, [job(1), job(2), job(3)]), fast("b", job(2))],
    },
    "auction": {
        "protocol": by("auction", wait_s=0.5),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b"), fast("c", job(1))],
    },
    "best_expected_finish": {
        "protocol": by("best_expected_finish"),
        "network": {"bandwidth_mbps": 100},
        "vos": [vo("a", 1, [job(1), job(2, input_mb=1), job(3, input_mb=1000)]), vo("b", 1)],
    },
}
OTHERS: dict[str, dict[str, Any]] = {
    "local": {"vos": [vo("a", 1, [job(1)]), vo("b", 1)]},
    "stale": {
        "protocol": NO_SNAPSHOTS,
        "vos": [
            vo("a", 1, [job(1), job(2, requirements=LINUX_OR_MACOS)], system="solaris"),
            vo("b", 1, [job(1)], system="linux"),
            vo("c", 1, system="macos"),
        ],
    },
    "queue_when_full": {"vos": [vo("a", 1, [job(1), job(2)])]},
    "least_load": {"vos": dispatched([job(1, cpus=2), job(2)])},
    "least_load_of_clusters": {
        "vos": dispatched([job(1, cpus=2)], {"name": "w", "machines": [{"cpus": 1}, {"cpus": 1}]})
    },
    "redundant_in_waves": {
        "protocol": by("redundant", copies=3, wave=1, wave_s=1, lease_s=5),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b"), fast("c", job(1))],
    },
    "redundant_behind_a_wide_job": {
        "protocol": by("redundant", copies=2, lease_s=5),
        "vos": [vo("a", 2, [job(1), job(2, cpus=2), job(3)]), vo("b", 1)],
    },
    "lease_expires": {
        "protocol": by("reserve", lease_s=5, wait_s=1),
        "network": {"bandwidth_mbps": 100},
        "vos": [
            vo("a", 1, [job(1), job(2, input_mb=125)]),
            vo("b", 1, [job(9)], forwarding="never"),
        ],
    },
    "not_admitted_next": guest_of({"jobs": 1}),
    "not_admitted_origin": guest_of({"cpus_of": {"a": 1}}, when_refused="origin"),
    "not_admitted_reject": guest_of({"from_vos": ["c"]}, when_refused="reject"),
    "local_priority": {
        "protocol": by("when_nothing_free"),
        "vos": [
            vo("a", 1, [job(1), job(2)]),
            vo("b", 1, [job(1), job(3), job(4)], priority="local", forwarding="never"),
        ],
    },
}
OVERLAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "all": ("all", {}),
    "none": ("none", {}),
    "ring": ("ring", {"reach": 1}),
    "random_regular": ("random_regular", {"degree": 1}),
    "small_world": ("small_world", {"reach": 1, "rewired": 1.0}),
    "tree": ("tree", {"children": 1}),
    "edges": ("edges", {"edges": [[2, 0]]}),
    "gossip_push": ("gossip", {"mode": "push", "period_s": 4}),
    "gossip_pull": ("gossip", {"mode": "pull", "period_s": 4}),
    "gossip_push_pull": ("gossip", {"mode": "push_pull", "period_s": 4}),
    "index": ("index", {"children": 1, "period_s": 2}),
    "probes": ("probes", {"count": 2, "timeout_s": 1}),
}
WITH_DIRECTORY = ("local",)
"""Transcripts with the messages to Information Services."""


def with_overlay(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Three VOs of one CPU; c is always busy. A job of a arrives at 7 s, when a is busy."""
    return {
        "protocol": {
            "information": {"name": name, "settings": settings},
            "forwarding": "when_nothing_free",
            "snapshots": {"period_s": 5},
        },
        "vos": [
            vo("a", 1, [{"submit_s": 1, "run_s": 8}, {"submit_s": 7, "run_s": 2}]),
            vo("b", 1),
            vo("c", 1, [{"submit_s": 1, "run_s": 9}], forwarding="never"),
        ],
    }


ALL = POLICIES | OTHERS | {case: with_overlay(*overlay) for case, overlay in OVERLAYS.items()}


@pytest.mark.parametrize("name", ALL)
def test_messages_equal_the_transcript(name: str) -> None:
    messages = transcript(grid_of(**ALL[name]), directory=name in WITH_DIRECTORY)
    expected = (TRANSCRIPTS / f"{name}.txt").read_text().splitlines()
    assert [one.strip() for one in messages] == [one for one in expected if one[0] != "#"]


def test_every_policy_and_overlay_has_a_transcript() -> None:
    assert set(POLICIES) == set(FORWARDING.own)
    assert {name for name, _ in OVERLAYS.values()} == set(INFORMATION.own)
    assert set(ALL) >= set(CLUSTER_CHOICES.own)


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        (FORWARDING, "forwarding.md"),
        (INFORMATION, "dissemination.md"),
        (SELECTIONS, "selections.md"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_each_plugin_is_in_the_table_of_its_page(kind: Kind, page: str) -> None:
    text = (Path(__file__).parents[2] / "docs" / "explanation" / page).read_text("utf-8")
    rows = re.findall(r"^\| (.*?) \|", text, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(kind.own) - {"pull"} <= named
