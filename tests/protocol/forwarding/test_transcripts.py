"""Golden transcripts of the rules of forwarding: every message of a small grid, with its time.

Messages take 1 ms inside a VO and 50 ms between VOs; jobs run for ten seconds. No snapshots are
sent: what a VO knows of another is what it heard when that one joined, and that grows old.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grid.protocol.registry import FORWARDING
from tests.config.grids import grid_of, transcript, vo

TRANSCRIPTS = Path(__file__).parent / "transcripts"
SILENT = {
    "snapshot_period_s": None,
    "snapshot_load_limit": None,
    "snapshot_jobs_limit": None,
}
AS_OF_OLD = ("queue", "forward", "reject")
"""Rules whose transcripts are those of the protocol itself, in `tests.protocol.test_protocol`."""


def job(submit_s: float, **more: Any) -> dict[str, Any]:
    return {"submit_s": submit_s, "run_s": 10, **more}


def rule(name: str, **settings: Any) -> dict[str, Any]:
    return {**SILENT, "forwarding": {"name": name, "settings": settings}}


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


CASES: dict[str, dict[str, Any]] = {
    "never": {
        "protocol": rule("never"),
        "vos": [vo("a", 1, [job(1), job(2)]), vo("b", 1)],
    },
    "to_the_best": {
        "protocol": {**rule("to_the_best"), "ttl": 1},
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b")],
    },
    "when_nothing_free": {
        "protocol": {**rule("when_nothing_free"), "avoid_loops": True},
        "vos": [vo("a", 1, [job(1), job(2), job(3)]), vo("b", 1)],
    },
    "above_load": {
        "protocol": rule("above_load", load=2),
        "vos": [vo("a", 1, [job(1), job(2), job(3)]), vo("b", 1)],
    },
    "until_idle": {
        "protocol": rule("until_idle", hops=2),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b", "c")],
    },
    "reserve": {
        "protocol": rule("reserve", lease_s=5, wait_s=1),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b"), vo("c", 1)],
    },
    "redundant": {
        "protocol": rule("redundant", copies=3, lease_s=5),
        "vos": [vo("a", 1, [job(1), job(2)]), fast("b", job(1)), *busy_vos("c")],
    },
    "delegated": {
        "protocol": rule("delegated", children=2),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b", "c"), vo("d", 1)],
    },
    "pull": {
        "protocol": rule("pull", every_s=None),
        "vos": [vo("a", 1, [job(1), job(2), job(3)]), fast("b", job(2))],
    },
    "auction": {
        "protocol": rule("auction", wait_s=0.5),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b"), fast("c", job(1))],
    },
    "best_expected_finish": {
        "protocol": rule("best_expected_finish"),
        "network": {"bandwidth_mbps": 100},
        "vos": [vo("a", 1, [job(1), job(2, input_mb=1), job(3, input_mb=1000)]), vo("b", 1)],
    },
}


def guest_of(settings: dict[str, Any], **protocol: Any) -> dict[str, Any]:
    """b takes in by these settings; a sends it jobs 2 and 3, and c is further away than b."""
    return {
        "protocol": {**rule("when_nothing_free"), **protocol},
        "vos": [
            vo("a", 1, [job(1), job(2), job(3)]),
            vo("b", 2, admission={"name": "limited", "settings": settings}),
            vo("c", 1),
        ],
    }


ADMISSIONS: dict[str, dict[str, Any]] = {
    "refused_tries_next": guest_of({"jobs": 1}),
    "refused_goes_home": guest_of({"cpus_of": {"a": 1}}, when_refused="origin"),
    "refused_is_rejected": guest_of({"from_vos": ["c"]}, when_refused="reject"),
    "home_first": {
        "protocol": rule("when_nothing_free"),
        "vos": [
            vo("a", 1, [job(1), job(2)]),
            vo("b", 1, [job(1), job(3), job(4)], priority="local", forwarding="never"),
        ],
    },
}
MORE: dict[str, dict[str, Any]] = {
    "redundant_in_waves": {
        "protocol": rule("redundant", copies=3, wave=1, wave_s=1, lease_s=5),
        "vos": [vo("a", 1, [job(1), job(2)]), *busy_vos("b"), fast("c", job(1))],
    },
    "redundant_behind_a_wide_job": {
        "protocol": rule("redundant", copies=2, lease_s=5),
        "vos": [vo("a", 2, [job(1), job(2, cpus=2), job(3)]), vo("b", 1)],
    },
    "lease_over": {
        "protocol": rule("reserve", lease_s=5, wait_s=1),
        "network": {"bandwidth_mbps": 100},
        "vos": [
            vo("a", 1, [job(1), job(2, input_mb=125)]),
            vo("b", 1, [job(9)], forwarding="never"),
        ],
    },
}
ALL = CASES | ADMISSIONS | MORE


@pytest.mark.parametrize("name", ALL)
def test_messages_are_those_of_the_transcript(name: str) -> None:
    heard = [line.strip() for line in transcript(grid_of(**ALL[name]))]
    expected = (TRANSCRIPTS / f"{name}.txt").read_text().splitlines()
    assert heard == [line for line in expected if not line.startswith("#")]


def test_every_rule_has_a_transcript() -> None:
    assert sorted(CASES) == sorted(name for name in FORWARDING.own if name not in AS_OF_OLD)
