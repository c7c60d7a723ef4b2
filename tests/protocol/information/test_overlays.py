"""Information overlays and corrections of stale status: by hand, and on small grids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grid
from grid.kernel.entity import random_stream
from grid.model.errors import InputError
from grid.model.messages import Entry
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.model.plugins.registry import Plugins
from grid.model.resources import (
    NOT_INCLUDED,
    UNKNOWN,
    ResourceTable,
    concatenate_resources,
    resources_of,
    status_rows,
    summary_of,
)
from grid.model.time import SECOND_US
from grid.protocol.information import GossipMessage, Overlay, View
from grid.protocol.known_state import KnownState
from grid.protocol.registry import DISCOUNTS, INFORMATION
from tests.config.grids import grid_of, transcript, vo

S = SECOND_US


def made(name: str, **settings: object) -> Overlay:
    overlay: Overlay = Plugins().make(INFORMATION, name, settings)
    return overlay


def subscribers(name: str, vos: int, seed: int = 1, **settings: object) -> list[tuple[int, ...]]:
    return [
        tuple(of) for of in made(name, **settings).subscribers(vos, random_stream(seed, "test"))
    ]


def test_graphs_by_hand() -> None:
    assert subscribers("all", 3) == [(1, 2), (0, 2), (0, 1)]
    assert subscribers("none", 3) == [(), (), ()]
    assert subscribers("ring", 5) == [(1, 4), (0, 2), (1, 3), (2, 4), (0, 3)]
    assert subscribers("ring", 5, reach=2) == subscribers("all", 5)
    assert subscribers("ring", 2) == [(1,), (0,)]
    assert subscribers("tree", 6) == [(1, 2), (0, 3, 4), (0, 5), (1,), (1,), (2,)]
    assert subscribers("edges", 4, edges=[(0, 2), (2, 0), (1, 9)]) == [(2,), (), (0,), ()]
    assert subscribers("ring", 1) == [()]


@pytest.mark.parametrize(("vos", "degree"), [(10, 3), (9, 4), (5, 2), (7, 3), (40, 5), (4, 9)])
def test_random_regular_graphs_are_regular(vos: int, degree: int) -> None:
    for seed in range(20):
        found = subscribers("random_regular", vos, seed, degree=degree)
        degrees = sorted(map(len, found))
        expected = min(degree, vos - 1)
        # Where VOs times degree is odd there is no such graph.
        assert degrees == [expected - (vos * expected % 2)] + [expected] * (vos - 1)
        assert all(one in found[other] for one, of in enumerate(found) for other in of)


def test_a_small_world_keeps_its_edges_and_moves_some() -> None:
    ring = subscribers("ring", 30, reach=2)
    assert subscribers("small_world", 30, rewired=0.0) == ring
    moved = subscribers("small_world", 30, rewired=0.3)
    assert sum(map(len, moved)) == sum(map(len, ring)) == 120
    kept = sum(len(set(one) & set(other)) for one, other in zip(ring, moved, strict=True))
    assert 60 <= kept <= 108


OWN = resources_of(VirtualOrganization("a", (Cluster("c", (Machine("m", 4),)),)), 0)
OTHERS = [
    resources_of(VirtualOrganization(f"v{i}", (Cluster("c", (Machine("m", 4),)),)), i)
    for i in range(4)
]


def entry(of: int, observed_s: float, assigned: float, confirmed_s: float | None = None) -> Entry:
    observed_at_us = int(observed_s * S)
    rows = status_rows(OTHERS[of], np.array([[assigned]]), NOT_INCLUDED, observed_at_us)
    confirmed_us = observed_at_us if confirmed_s is None else int(confirmed_s * S)
    return Entry(of, observed_at_us, confirmed_us, rows)


def known(view_size: int | None = None) -> KnownState:
    made = KnownState(0, OWN, [], (), view_size)
    for number in (2, 1, 3):
        made.join(number, OTHERS[number])
    return made


def assigned(status: KnownState) -> list[float]:
    return status.table(100 * S, None, (), 0).assigned_cpus.tolist()


def test_the_newest_entry_of_each_vo_counts() -> None:
    status = known()
    assert assigned(status) == [0, UNKNOWN, UNKNOWN, UNKNOWN]
    assert status.take(entry(2, 5, 3))
    assert status.take(entry(1, 4, 1))
    assert not status.take(entry(2, 4, 2))
    assert assigned(status) == [0, 1, 3, UNKNOWN]
    # The same status, confirmed later, is not new, but younger.
    assert not status.take(entry(2, 5, 3, confirmed_s=90))
    table = status.table(100 * S, None, (), 0)
    assert (table.age_us / S).tolist() == [0, 96, 10, np.inf]
    status.leave(1)
    assert status.peers == (2, 3)
    assert assigned(status) == [0, 3, UNKNOWN]
    assert not status.take(entry(1, 99, 1))


def test_a_full_view_drops_the_entry_confirmed_first() -> None:
    status = known(view_size=2)
    for of, at_s in ((1, 10), (2, 5), (3, 7)):
        status.take(entry(of, at_s, 1))
    assert assigned(status) == [0, 1, UNKNOWN, 1]
    # It is not new when it comes again: otherwise two VOs would exchange it forever.
    assert not status.take(entry(2, 5, 1, confirmed_s=50))
    assert assigned(status) == [0, 1, 1, UNKNOWN]


def test_resources_omitted_from_a_newer_summary_are_unknown() -> None:
    """Also if the table is laid out again, since a VO has joined."""
    machines = tuple(Machine(f"m{n}", 1, ram_mb=1.0) for n in range(3))
    three = resources_of(VirtualOrganization("b", (Cluster("c", machines),)), 1)
    status = KnownState(0, OWN, [], ())
    status.join(1, three)
    for at_s, busy in ((1, [0.0, 0.0, 0.0]), (2, [1.0, 0.0, 1.0]), (3, [1.0, 1.0, 0.0])):
        rows = status_rows(three, np.array([busy]), NOT_INCLUDED, at_s * S)
        status.take(Entry(1, at_s * S, at_s * S, rows if at_s == 1 else summary_of(rows, three)))
        expected = {1: [0, 0, 0], 2: [UNKNOWN, 0, UNKNOWN], 3: [UNKNOWN, UNKNOWN, 0]}[at_s]
        assert assigned(status) == [0, *expected]
    status.join(2, OTHERS[2])
    assert assigned(status) == [0, UNKNOWN, UNKNOWN, 0, UNKNOWN]


def corrected(discount: str, backlog_s: float = 8.0, **settings: object) -> list[float]:
    """Four CPUs each; 10 s ago 8 and 2 were assigned, with 60 and `backlog_s` of work.

    The own VO has 3 CPUs assigned; the status of the last one is unknown.
    """
    table = ResourceTable(
        concatenate_resources(OTHERS),
        np.array([3.0, 8.0, 2.0, UNKNOWN]),
        np.array([99.0, 60.0, backlog_s, np.nan]),
        np.array([0.0, 90.0 * S, 90.0 * S, -np.inf]),
        np.array([100.0 * S, 90.0 * S, 90.0 * S, -np.inf]),
        100 * S,
    )
    found: list[float] = Plugins().make(DISCOUNTS, discount, settings)(table, 0).tolist()
    return found


def test_corrections_by_hand() -> None:
    assert corrected("no_correction") == [3, 8, 2, UNKNOWN]
    # In 10 s four CPUs do 40 of 60 s: a third of the eight is left; two CPUs do all of the 8 s.
    assert corrected("drained") == pytest.approx([3, 8 / 3, 0, UNKNOWN])
    # Jobs that exceed their estimates should all have ended when that was observed.
    assert corrected("drained", backlog_s=0.0)[2] == 0
    assert corrected("drained", backlog_s=np.nan)[2] == 2
    # Both others together: 10 of 8 CPUs are assigned, 5 of 4 in the mean.
    trust = np.exp(-0.5)
    expected = [3, 5 + 3 * trust, 5 - 3 * trust, UNKNOWN]
    assert corrected("by_age", horizon_s=20.0) == pytest.approx(expected)


def job(submit_s: float, run_s: float = 10) -> dict[str, Any]:
    return {"submit_s": submit_s, "run_s": run_s}


def scenario(information: Any, jobs: int = 12, **more: Any) -> dict[str, Any]:
    mine = [job(2 * number) for number in range(jobs)]
    vos = [vo(f"v{number}", 1, mine if number == 0 else None) for number in range(6)]
    protocol = {
        "information": information, "snapshots": {"period_s": 5}, **more,
    }  # fmt: skip
    return {"name": "small", "vos": vos, "protocol": protocol}


def test_probes_without_a_reply_in_time_are_not_awaited() -> None:
    slow = {"name": "probes", "settings": {"count": 1, "timeout_s": 0.09}}
    built = grid_of(protocol={"information": slow}, vos=[vo("a", 1, [job(1), job(2)]), vo("b", 1)])
    assert [line.strip() for line in transcript(built) if ": resources key=2" in line] == [
        "2093000 a/information -> a/scheduler: resources key=2 table=1/1,inf/1"
    ]


def test_an_index_sends_its_subtree_up_and_the_rest_down() -> None:
    """VO 1 is the parent of 3 and 4, and a child of 0."""
    view = View(1, 0, (0, 2, 3, 4, 5), dict.fromkeys(range(6), 0))
    sent = list(made("index", children=2).every_period(view, random_stream(1, "")))
    assert sent == [
        GossipMessage(0, (1, 3, 4)),
        GossipMessage(3, (0, 1, 2, 4, 5)),
        GossipMessage(4, (0, 1, 2, 3, 5)),
    ]


@pytest.mark.parametrize("mode", ["push", "pull", "push_pull"])
def test_gossip_reaches_all_vos(mode: str) -> None:
    """A job keeps VO 0 busy from 1 s on; long after, all other VOs know that."""
    settings = {"mode": mode, "period_s": 1.0}
    late = [job(60 + number) for number in range(3)]
    vos = [vo("v0", 1, [job(1, 500)]), *(vo(f"v{n}", 1, late) for n in range(1, 6))]
    built = grid_of(protocol={"information": {"name": "gossip", "settings": settings}}, vos=vos)
    first = [line.strip() for line in transcript(built) if ": resources key=1" in line]
    assert len(first) == 6
    assert all("table=1/1," in line for line in first[1:])


STAR = """
from grid.protocol.information import GossipMessage, Overlay


class Star(Overlay):
    '''All send to VO 0, which sends to all.'''

    period_us = 1_000_000
    starts_known = True

    def __init__(self, *, centre: int = 0):
        self.centre = centre

    def rounds(self, peers):
        return 3

    def every_period(self, view, rng):
        if view.vo != self.centre:
            yield GossipMessage(self.centre, (view.vo,))
        else:
            for peer in view.peers:
                yield GossipMessage(peer, tuple(view.confirmed_us))
"""


def test_an_overlay_of_a_file_plugs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "star.py").write_text(STAR)
    monkeypatch.chdir(tmp_path)
    run = grid.run(scenario({"name": "star.py:Star", "settings": {"centre": 2}}))
    assert run.metrics["grid"]["jobs_completed"] == 12
    assert run.metrics["grid"]["jobs_forwarded"] > 0


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        ({"information": "gossips"}, "information: found 'gossips', expected .*gossip"),
        ({"information": {"name": "edges", "settings": {"edges": [[1, 1]]}}}, "two different VOs"),
        (
            {"discount": "as_told"},
            "discount: found 'as_told', expected the new name, no_correction",
        ),
    ],
)
def test_wrong_settings_name_the_field(protocol: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        grid.load_scenario(scenario(**{"information": "all", **protocol}))


@pytest.mark.thorough
@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_the_same_on_two_actors() -> None:
    """Gossip, and a selection in each VO that draws or takes turns: one digest.

    `tests/runtime/test_window.py` has all others, in windows without Ray.
    """
    gossip = {"name": "gossip", "settings": {"mode": "push_pull", "period_s": 2.0, "view_size": 3}}
    described = scenario(gossip, discount="by_age")
    selections = ("power_of_d", "random", "round_robin", "least_loaded", "earliest_completion")
    for one, selection in zip(described["vos"], selections, strict=False):
        one["selection"] = selection
        one["workload"] = {"jobs": [job(3 * number, 20) for number in range(6)]}
    alone, spread = grid.run(described), grid.run(described, ray=True, placement="2")
    for name in ("digest", "messages"):
        assert alone.manifest[name] == spread.manifest[name]
