"""VOs that join and leave: who is not in the grid neither shares nor uses anything."""

from __future__ import annotations

from typing import Any

import pandas
import pytest

import grid
from grid.model.errors import InputError

RULES: list[Any] = [
    "queue", "forward", "to_the_best", "when_nothing_free", "above_load", "until_idle",
    "best_expected_finish", "reserve", "redundant", "auction", "delegated",
    {"name": "pull", "settings": {"every_s": 5.0}},
]  # fmt: skip
PROBES = {"name": "probes", "settings": {"count": 2, "timeout_s": 3.0}}
OVERLAYS = [
    "all",
    "gossip",
    "index",
    {"name": "probes", "settings": {"count": 2, "timeout_s": 5}},
    "none",
]


def two_vos(protocol: dict[str, Any] | None = None, **member: Any) -> dict[str, Any]:
    """Six jobs come to `a`, which has one CPU; `b` has four, and one small job of its own."""
    jobs = [{"submit_s": 10.0 * number, "run_s": 100.0} for number in range(1, 7)]
    one, four = ([{"name": "p", "cpus": size}] for size in (1, 4))
    small = {"jobs": [{"submit_s": 5.0, "run_s": 10.0}]}
    return {
        "name": "members",
        "network": {"latency_s": 1.0, "local_latency_s": 0.1},
        "protocol": {"ttl": 2, "snapshot_period_s": 5.0, **(protocol or {})},
        "vos": [
            {"name": "a", "clusters": one, "workload": {"jobs": jobs}},
            {"name": "b", "clusters": four, "workload": small, **member},
        ],
    }


def placed(scenario: dict[str, Any]) -> tuple[list[str], grid.Run]:
    """Where the jobs of `a` ran, in the order of their submission."""
    run = grid.run(scenario)
    jobs: pandas.DataFrame = run.jobs()
    return jobs[jobs.vo == "a"].executed_vo.tolist(), run


@pytest.mark.parametrize(
    ("member", "where"),
    [
        ({}, "abbbba"),
        ({"joins_s": 25.0}, "aabbbb"),
        ({"leaves_s": 25.0}, "abaaaa"),
        ({"joins_s": 15.0, "leaves_s": 45.0}, "abbbaa"),
    ],
)
def test_jobs_go_to_a_vo_while_it_is_in_the_grid(member: dict[str, float], where: str) -> None:
    """`a` decides 0.2 s after a submission, and hears of `b` 1 s after it joined or left."""
    assert placed(two_vos(**member))[0] == list(where)


@pytest.mark.parametrize(
    ("when_refused", "where", "hops", "state"),
    [
        ("next", "a", 1, "completed"),
        ("origin", "a", 1, "completed"),
        ("reject", None, 1, "rejected"),
    ],
)
def test_a_job_on_its_way_to_a_vo_that_leaves_is_turned_away(
    when_refused: str, where: str | None, hops: int, state: str
) -> None:
    """The job of 20 s is sent at 20.3 s, and comes at 21.4 s."""
    _, run = placed(two_vos({"when_refused": when_refused}, leaves_s=21.0))
    second = run.jobs().sort_values("submission_time").query("vo == 'a'").iloc[1]
    assert (second.hops, second.state) == (hops, state)
    assert where is None or second.executed_vo == where
    assert run.metrics["grid"]["not_admitted"] == 1


def test_users_of_a_vo_that_is_not_in_the_grid_have_its_own_resources_alone() -> None:
    scenario = two_vos()
    scenario["vos"][0] |= {"joins_s": 15.0, "leaves_s": 45.0}
    assert placed(scenario)[0] == list("abbbaa")


@pytest.mark.parametrize("overlay", ["all", {"name": "gossip", "settings": {"period_s": 30.0}}])
def test_a_vo_that_was_busy_before_it_joined_is_not_taken_for_idle(overlay: Any) -> None:
    """Its four CPUs are busy from 5 s to 205 s; no snapshot went out, and none is due."""
    scenario = two_vos({"snapshot_period_s": None, "information": overlay}, joins_s=15.0)
    scenario["vos"][1]["workload"]["jobs"] = [{"submit_s": 5.0, "run_s": 200.0, "cpus": 4}]
    where, run = placed(scenario)
    assert where == list("aaaaaa")
    assert run.metrics["grid"]["misjudged_arrivals"] == 0


@pytest.mark.parametrize("overlay", ["all", "gossip", "index", PROBES], ids=str)
def test_jobs_of_the_first_moment_go_to_others_as_later_ones_do(overlay: Any) -> None:
    """A job of two CPUs has a place in `b` alone, which is there from the beginning."""
    scenario = two_vos({"information": overlay})
    scenario["vos"][0]["workload"]["jobs"] = [{"run_s": 100.0, "cpus": 2}]
    where, run = placed(scenario)
    assert where == ["b"]
    assert run.jobs().query("vo == 'a'").starting_time.item() < 6.0


@pytest.mark.parametrize("overlay", OVERLAYS, ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_under_no_rule_and_no_overlay_does_a_job_go_to_who_has_left(
    rule: Any, overlay: Any
) -> None:
    """From 43 s on, everybody has heard it, and what was asked before is answered."""
    protocol = {"forwarding": rule, "information": overlay}
    where, run = placed(two_vos(protocol, leaves_s=41.0))
    assert where[4:] == ["a", "a"]
    assert run.metrics["grid"]["jobs_completed"] == 7


def test_where_resources_are_known_by_class_it_is_the_same() -> None:
    """A grid of so many resources is not looked at one by one as long as all VOs are in it."""
    machines = [{"name": "p", "machines": [{"count": 4, "cpus": 2}]}]
    jobs = [{"submit_s": 1.0 * number, "run_s": 30.0} for number in range(40)]
    for member, first, last in (({"leaves_s": 20.0}, 1, 0), ({"joins_s": 20.0}, 0, 1)):
        others = {"name": "v", "count": 40, "clusters": machines}
        own = {"name": "x", "clusters": machines, "workload": {"jobs": jobs}, **member}
        hops = grid.run({"vos": [others, own], "network": {"latency_s": 0.5}}).jobs().hops.tolist()
        assert min(max(hops[:20]), 1) == first
        assert min(*hops[25:], 1) == last


@pytest.mark.parametrize("entity", ["scheduler", "resources", "information"])
@pytest.mark.parametrize("at_s", [14.9, 24.9])
def test_a_crash_at_that_time_makes_no_difference_to_who_is_in_the_grid(
    entity: str, at_s: float
) -> None:
    scenario = two_vos(joins_s=15.0, leaves_s=25.0)
    crash = {"entity": f"b/{entity}", "at_s": at_s, "for_s": 3.0}
    where, run = placed(scenario | {"faults": {"heal_s": 100.0, "crashes": [crash]}})
    assert where[0] == "a" and where[3:] == ["a", "a", "a"]
    assert run.metrics["grid"]["jobs_completed"] == 7


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_it_is_the_same_on_ray_actors() -> None:
    scenario = two_vos(joins_s=15.0, leaves_s=45.0)
    alone, spread = grid.run(scenario), grid.run(scenario, ray=True, placement="entity")
    assert alone.manifest["digest"] == spread.manifest["digest"]
    assert alone.metrics == spread.metrics


@pytest.mark.parametrize(
    ("member", "mistake"),
    [
        ({"joins_s": 5.0, "leaves_s": 5.0}, "leaves_s: found 5, expected a time after it joins"),
        ({"leaves_s": 0.0}, "leaves_s: found 0.0, expected"),
    ],
)
def test_a_vo_leaves_after_it_has_joined(member: dict[str, float], mistake: str) -> None:
    with pytest.raises(InputError, match=mistake):
        grid.load_scenario(two_vos(**member))


def test_where_nobody_would_notice_it_is_refused() -> None:
    alone = two_vos()
    alone["vos"] = [{**alone["vos"][0], "leaves_s": 5.0}]
    with pytest.raises(InputError, match=r"leaves_s: found 5.0, expected none, for there is no"):
        grid.load_scenario(alone)
    direct = two_vos(leaves_s=5.0)
    direct["vos"][1]["workload"]["entry_point"] = "cluster"
    with pytest.raises(InputError, match=r"leaves_s: found 5.0, expected no such setting"):
        grid.load_scenario(direct)
