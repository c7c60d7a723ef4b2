"""Golden transcripts of who knows what of whom: every message of a small grid, with its time.

Three VOs of one CPU; `c` is busy from the beginning. A job of `a` comes at 7 s, when `a` is busy:
what `a` knows of the others then is in the answer to its question. Messages take 1 ms inside a VO
and 50 ms between VOs. Snapshots themselves are no messages between entities.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grid.protocol.registry import INFORMATION
from tests.config.grids import grid_of, transcript, vo

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
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


def grid(name: str, settings: dict[str, Any]) -> Any:
    return grid_of(
        protocol={
            "information": {"name": name, "settings": settings},
            "forwarding": "when_nothing_free",
            "snapshot_period_s": 5,
        },
        vos=[
            vo("a", 1, [{"submit_s": 1, "run_s": 8}, {"submit_s": 7, "run_s": 2}]),
            vo("b", 1),
            vo("c", 1, [{"submit_s": 1, "run_s": 9}], forwarding="never"),
        ],
    )


@pytest.mark.parametrize("case", CASES)
def test_messages_are_those_of_the_transcript(case: str) -> None:
    heard = [line.strip() for line in transcript(grid(*CASES[case]))]
    expected = (TRANSCRIPTS / f"{case}.txt").read_text().splitlines()
    assert heard == [line for line in expected if not line.startswith("#")]


def test_every_overlay_has_a_transcript() -> None:
    assert {name for name, _ in CASES.values()} == set(INFORMATION.own)
