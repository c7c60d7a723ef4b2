"""Waits for answers that no answer can come in: a mistake, for the option would do nothing."""

from __future__ import annotations

from typing import Any

import pytest

import grid
from grid.model.errors import InputError

NETWORK = {"latency_s": 5, "local_latency_s": 0.5}
RULE = "protocol.forwarding.settings.wait_s"
PROBES = "protocol.information.settings.timeout_s"
ASKING = ("auction", "reserve", "delegated")


def scenario(protocol: dict[str, Any], network: dict[str, Any], vos: int = 2) -> dict[str, Any]:
    """The first VO is full when its second job comes; any other is idle."""
    full = [{"submit_s": 20, "run_s": 1000}, {"submit_s": 50, "run_s": 1000}]
    first = {"name": "a", "clusters": [{"cpus": 1}], "workload": {"jobs": full}}
    others = [{"name": name, "clusters": [{"cpus": 1}]} for name in "bc"[: vos - 1]]
    return {"network": network, "protocol": protocol, "vos": [first, *others]}


def rule(name: str, wait_s: float) -> dict[str, Any]:
    return {"forwarding": {"name": name, "settings": {"wait_s": wait_s}}}


def probes(timeout_s: float) -> dict[str, Any]:
    return {"information": {"name": "probes", "settings": {"timeout_s": timeout_s}}}


def refusal(*given: Any) -> str:
    with pytest.raises(InputError) as caught:
        grid.load_scenario(scenario(*given))
    (error,) = caught.value.errors
    return f"{error.field}: {error.found}, {error.expected}"


@pytest.mark.parametrize("name", ASKING)
def test_a_wait_in_which_no_bid_can_come_is_refused(name: str) -> None:
    said = refusal(rule(name, 11), NETWORK)
    assert said.startswith(f"{RULE}: 11, more than 11 s: a call and the bid")


@pytest.mark.parametrize("protocol", [*(rule(name, 11.000001) for name in ASKING), probes(10)])
def test_the_shortest_wait_that_is_accepted_takes_effect(protocol: dict[str, Any]) -> None:
    jobs = grid.run(scenario(protocol, NETWORK)).jobs()
    assert jobs["executed_vo"].tolist() == ["a", "b"]


def test_probes_that_cannot_be_answered_in_time_are_refused() -> None:
    assert refusal(probes(9.99), NETWORK).startswith(f"{PROBES}: 9.99, at least 10 s: a probe")


@pytest.mark.parametrize(
    ("protocol", "latency_s", "where"),
    [({"forwarding": "reserve"}, 20, RULE), ({"information": "probes"}, 1, PROBES)],
)
def test_so_is_a_default_that_is_too_short(
    protocol: dict[str, Any], latency_s: float, where: str
) -> None:
    said = refusal(protocol, {"latency_s": latency_s})
    assert said.startswith(where) and ", the default, " in said


def test_a_rule_of_one_vo_is_looked_at_as_well() -> None:
    given = scenario({}, NETWORK)
    given["vos"][1] |= rule("auction", 3)
    with pytest.raises(InputError, match=r"vos\.1\.forwarding\.settings\.wait_s: found 3"):
        grid.load_scenario(given)


def test_one_link_that_is_fast_enough_will_do() -> None:
    slow, fast = 100, {"between": ["c", "b"], "latency_s": 1}
    grid.load_scenario(scenario(rule("reserve", 30), {"latency_s": slow, "links": [fast]}, vos=3))


def test_where_all_are_linked_the_default_latency_counts_for_nothing() -> None:
    links = [{"between": ["a", "b"], "latency_s": 20}]
    refusal(rule("reserve", 30), {"latency_s": 1, "links": links})
    network = {"latency_s": 1, "links": links}
    grid.load_scenario(scenario(rule("reserve", 30), network, vos=3))


def test_a_grid_of_one_vo_waits_for_nobody() -> None:
    grid.load_scenario(scenario(rule("reserve", 1), NETWORK, vos=1))


def test_a_setting_of_that_name_of_a_part_of_others_is_theirs() -> None:
    def mine(question: Any, *, wait_s: float = 1.0) -> None:
        """A rule that waits for something else."""

    given = scenario({"forwarding": "mine"}, NETWORK)
    grid.load_scenario(given, forwarding={"mine": mine})
