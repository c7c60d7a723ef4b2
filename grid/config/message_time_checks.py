"""What has to last longer than messages take, or it never takes effect: leases, waits for answers.

Only what fails between all VOs is a mistake. Where one link is fast enough, answers come over that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from grid.config.schema import Scenario
from grid.config.sections import PartSection, name_and_settings
from grid.model.errors import Path, Problem
from grid.model.fields import PartName
from grid.model.plugins.kind import Kind
from grid.model.plugins.registry import Parts
from grid.model.time import Time, from_seconds, to_seconds
from grid.protocol.registry import FORWARDING, INFORMATION

LEASE_MESSAGES = 5
"""From a held place to the job in it: to the Local Scheduler and, as a bid, to the one that called;
a look at the Information Service and back; then the job comes."""
LOCAL_MESSAGES_OF_A_BID = 2
"""Who is called asks its Information Service, and has its Resource Manager hold the place. These
are four. But who called asks its own Information Service when its wait is over, and a bid that
comes before the answer still counts: that makes up for two."""

Given = PartSection | PartName


class _Wait(NamedTuple):
    """A setting of our own parts of a kind: how long they wait for answers."""

    kind: Kind
    setting: str
    least_us: Time
    """With less no answer can come in time, as if nobody was asked."""
    expected: str


def message_time_problems(scenario: Scenario) -> Iterator[Problem]:
    rules: list[tuple[Path, Given]] = [(("protocol", "when_busy"), scenario.protocol.when_busy)]
    for v, vo in enumerate(scenario.vos or ()):
        if vo.when_busy is not None:
            rules.append((("vos", v, "when_busy"), vo.when_busy))
    local_us = from_seconds(scenario.network.local_latency_s)
    for path, rule in rules:
        yield from _lease(path, rule, to_seconds(local_us))
    if scenario.vos is not None and sum(len(vo.names) for vo in scenario.vos) == 1:
        # There is nobody to wait for.
        return
    there_and_back_us = 2 * _shortest_way_us(scenario)
    in_vain_us = there_and_back_us + LOCAL_MESSAGES_OF_A_BID * local_us
    so_long = "take so long even between the nearest VOs"
    expected = f"more than {to_seconds(in_vain_us):g} s: a call and the bid {so_long}"
    for_bids = _Wait(FORWARDING, "wait_s", in_vain_us + 1, expected)
    for path, rule in rules:
        yield from _too_short(for_bids, path, rule, scenario.parts)
    expected = f"at least {to_seconds(there_and_back_us):g} s: a probe and its answer {so_long}"
    for_probes = _Wait(INFORMATION, "timeout_s", there_and_back_us, expected)
    path = ("protocol", "information")
    yield from _too_short(for_probes, path, scenario.protocol.information, scenario.parts)


def _lease(path: Path, rule: Given, local_s: float) -> Iterator[Problem]:
    """A lease that is over before a job of the VO itself can come to the place that is held.

    The place would fall to the next in line, whose job comes too late as well, and so for ever.
    """
    lease_s = dict(name_and_settings(rule)[1]).get("lease_s")
    if isinstance(lease_s, int | float) and 0 < lease_s <= LEASE_MESSAGES * local_s:
        expected = f"more than {LEASE_MESSAGES * local_s:g} s: an offer, the answer to it and the "
        expected += f"job take {LEASE_MESSAGES} messages within the VO"
        yield (*path, "settings", "lease_s"), f"{lease_s:g}", expected


def _too_short(wait: _Wait, path: Path, given: Given, parts: Parts) -> Iterator[Problem]:
    name, settings = name_and_settings(given)
    part, is_set = parts.find(wait.kind, name), wait.setting in dict(settings)
    declared = part.declared.model.model_fields.get(wait.setting)
    # Parts of others may mean something else by a setting of that name.
    if not part.is_own or declared is None:
        return
    wait_s = dict(settings)[wait.setting] if is_set else declared.default
    if from_seconds(wait_s) < wait.least_us:
        found = f"{wait_s:g}" if is_set else f"{wait_s:g}, the default"
        yield (*path, "settings", wait.setting), found, wait.expected


def _shortest_way_us(scenario: Scenario) -> Time:
    """The least latency between two VOs."""
    network = scenario.network
    vos = sum(len(vo.names) for vo in scenario.vos or ())
    ways_us = {frozenset(link.between): from_seconds(link.latency_s) for link in network.links}
    if scenario.vos is None or len(ways_us) < vos * (vos - 1) // 2:
        ways_us[frozenset()] = from_seconds(network.latency_s)
    return min(ways_us.values())
