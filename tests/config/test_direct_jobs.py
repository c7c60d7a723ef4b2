"""If all jobs enter their clusters directly, each setting has an effect or is refused."""

from __future__ import annotations

from typing import Any

import pytest

import grid
from grid.config.faults import FaultsSection
from grid.config.schema import NetworkSection, ProtocolSection
from grid.model.errors import InputError
from grid.model.fields import keys_of
from grid.model.platform import VirtualOrganization
from grid.runtime.run import Run

OTHER: dict[str, dict[str, Any]] = {
    "network": {
        "latency_s": 50.0,
        "local_latency_s": 5.0,
        "bandwidth_mbps": 0.01,
        "links": [{"between": ["a", "b"], "latency_s": 90.0}],
        "latency_matrix_s": {"a": {"b": 90.0}},
    },
    "protocol": {
        "ttl": 0,
        "forwarding": {"name": "pull", "settings": {"every_s": 1.0}},
        "avoid_loops": True,
        "when_refused": "reject",
        "information": "ring",
        "discount": "drained",
        "snapshot_detail": "summary",
        "snapshots": {"load_above": 0.0, "jobs_above": 1},
        "lost_after_s": 100.0,
        "recall_after_s": 100.0,
    },
    "faults": {
        "heal_s": 60.0,
        "between_vos": {"lost": 0.5},
        "within_vos": {"lost": 0.5},
        "partitions": [{"one": ["a"], "other": ["b"], "at_s": 0, "for_s": 500}],
        "machine_outages": [{"vo": "b", "at_s": 10, "for_s": 400}],
        "random_machine_outages": [{"up_s": 20, "down_s": 50}],
    },
    "vos": {
        "selection": "random",
        "forwarding": "reject",
        "admission": "none",
        "priority": "remote",
        "joins_s": 5.0,
        "leaves_s": 50.0,
    },
}
"""A value of each key other than its default and that of `scenario`."""
OF_LIVE_RUNS = {"faults": {"seed", "crashes", "random_crashes", "vo_outages"}}
"""Entities that are down delay the reports of completions in live runs only. The seed of faults has
no effect if none is drawn."""
DESCRIBED = {
    "vos": {"name", "count", "clusters", "workload", "cluster_choice"},
    "protocol": {"stall_after_s"},
}
"""Keys that describe a VO, and stall detection."""
SECTIONS = {
    "network": NetworkSection,
    "protocol": ProtocolSection,
    "faults": FaultsSection,
    "vos": VirtualOrganization,
}


def scenario() -> dict[str, Any]:
    """Two VOs with jobs that wait, are too long, and are interrupted."""
    jobs = [{"submit_s": 7 * n, "run_s": 40 + n, "estimate_s": 50} for n in range(20)]
    vos = [
        {
            "name": name,
            "clusters": [{"machines": [{"count": 2}]}],
            "workload": {"entry_point": "cluster", "jobs": jobs},
        }
        for name in "ab"
    ]
    outage = {"vo": "a", "at_s": 30, "for_s": 100}
    return {"name": "direct", "vos": vos, "faults": {"heal_s": 999, "machine_outages": [outage]}}


def changed(section: str, key: str, value: Any) -> dict[str, Any]:
    whole = scenario()
    part = whole["vos"][0] if section == "vos" else whole.setdefault(section, {})
    part[key] = value
    return whole


@pytest.fixture(scope="module")
def plain() -> Run:
    return grid.run(scenario())


def test_every_key_is_covered() -> None:
    for section, model in SECTIONS.items():
        known = {*OTHER[section]}
        for others in (OF_LIVE_RUNS, DESCRIBED):
            known |= others.get(section, set())
        assert known == set(keys_of(model)), section


@pytest.mark.parametrize(
    ("section", "key"), [(section, key) for section, keys in OTHER.items() for key in keys]
)
def test_each_has_an_effect_or_is_refused(plain: Run, section: str, key: str) -> None:
    given = changed(section, key, OTHER[section][key])
    try:
        run = grid.run(given)
    except InputError as refused:
        (problem,) = refused.errors
        where = "vos.0" if section == "vos" else section
        assert problem.field.startswith(f"{where}.{key}")
        assert " directly" in problem.expected
    else:
        assert run.manifest["digest"] != plain.manifest["digest"]
        assert run.metrics["grid"] != plain.metrics["grid"]
