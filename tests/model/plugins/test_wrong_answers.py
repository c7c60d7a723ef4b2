"""Parts that answer wrongly, fail in odd ways or write into what they are given: one line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.model.plugins.wrong_parts import WRONG_PARTS

import grid
from grid.model.errors import InputError, RunFailed
from grid.policies import registry


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(WRONG_PARTS)
    monkeypatch.chdir(tmp_path)


JOBS = {"jobs": [{"run_s": 10}, {"run_s": 10}]}
PLACES: dict[str, tuple[str, bool]] = {
    "policy": ("vos.0.clusters.0.policy", False),
    "selection": ("vos.0.selection", False),
    "rule": ("protocol.when_busy", False),
    "overlay": ("protocol.information", False),
    "jobs": ("vos.0.workload", False),
    "machines": ("vos.0.clusters.0.machines", False),
    "job": ("metrics.job", True),
    "vo": ("metrics.vo", True),
    "cluster": ("metrics.cluster", True),
}
"""Where a part is named, and whether in a list."""


def run(place: str, name: str) -> None:
    """Two VOs of one machine each, busy for a while, and `name` in that place."""
    vos: list[dict[str, Any]] = []
    for number in range(2):
        jobs = [{"submit_s": 5 + s + number, "run_s": 10} for s in range(3)]
        clusters = [{"machines": [{"cpus": 1}]}]
        vos.append({"name": f"vo{number}", "clusters": clusters, "workload": {"jobs": jobs}})
    path, is_list = PLACES[place]
    part: Any = f"mine.py:{name}"
    if place == "jobs":
        part = {"generator": part}
    if place == "machines":
        part = {"generator": part, "count": 2}
    grid.run({"name": "small", "vos": vos}, set={path: [part] if is_list else part})


@pytest.mark.parametrize(
    ("place", "name", "said"),
    [
        ("policy", "Exits", "plan raised SystemExit: 0"),
        ("policy", "Cancels", "plan raised CancelledError: enough"),
        ("policy", "Unreadable", "plan raised Odd: with a message that cannot be read"),
        ("policy", "FarSlot", "gave slot 1000000 in `start`, expected one of the view's queue"),
        ("policy", "KillsFarSlot", "gave slot -1 in `kill`"),
        ("policy", "FarMachine", "gave a start on machine 99, expected one below 1"),
        ("policy", "TakesForItself", "read-only"),
        ("policy", "TakesFromQueue", "read-only"),
        ("policy", "WritesMachines", "read-only"),
        ("policy", "WritesJobs", "read-only"),
        ("policy", "WritesMegabytes", "read-only"),
        ("policy", "MadePerhaps", "gave a plan that is none (`made` is array("),
        ("selection", "Short", "found 1 utilities, expected one for each of the 2 resources"),
        ("selection", "NoNumber", "raised ValueError: found a utility that is not a number"),
        ("selection", "Words", "raised ValueError: could not convert string to float: 'good'"),
        ("selection", "Ties", "found ties 'lucky', expected one of own_vo"),
        ("selection", "Writes", "raised ValueError: assignment destination is read-only"),
        ("rule", "writes", "raised ValueError: assignment destination is read-only"),
        ("rule", "half_a_microsecond", "asks with wait_us = 10.5, expected a whole number"),
        ("rule", "before_now", "asks with wait_us = -1, expected a whole number"),
        ("rule", "no_time", "asks with wait_us = nan, expected a whole number"),
        ("rule", "some", "asks with enough = 'some', expected a whole number"),
        ("rule", "lease", "asks with lease_us = 5000000.0, expected a whole number"),
        ("rule", "one_vo", "asks 1, expected a tuple of numbers of VOs"),
        ("rule", "half_a_bid", "gave bid 0.0, expected one of [0]"),
        ("rule", "waits_perhaps", "gave wait = 'perhaps', expected True or False"),
        ("rule", "AsksAgain", "again, which has just had no work"),
        ("overlay", "Halves", "gave (0.5,) for VO 0, expected a tuple of numbers of VOs"),
        ("overlay", "Arrays", "gave array([1]) for VO 0, expected a tuple of numbers of VOs"),
        ("overlay", "Nobody", "subscribers gave None, expected a list or another iterable"),
        ("overlay", "OneEntry", "gave a letter of 7, expected a tuple of numbers of VOs"),
        ("overlay", "HalfAVo", ".0, expected one of the view's peers"),
        ("overlay", "Probes", "probes gave [1.0], expected different ones of the view's peers"),
        ("jobs", "negative", "gave jobs of vo0 with estimate_us.0: found -1, expected at least 1"),
        ("jobs", "no_column", "with run_us: found 5, expected an array of 3 values of int64"),
        ("jobs", "no_number", "with run_us: found an array of shape (3,) of float64, expected"),
        ("jobs", "mixed", "gave tables of ['vo0', 3], expected a table of jobs by the name"),
        ("jobs", "one_more", "raised AttributeError: 'tuple' object has no attribute 'append'"),
        ("machines", "no_cpus", "gave machines.0.cpus: found 0, expected at least 1"),
        ("machines", "no_speed", "gave machines.0.mips: found nan, expected a finite number"),
        ("machines", "unknown_license", "machines.0.licenses.0: found 'other', expected a license"),
        ("machines", "two_of_a_name", "licenses.1.name: found 'one' again, expected a name of"),
        ("job", "ends_now", "raised ValueError: assignment destination is read-only"),
        ("job", "imaginary", "gave complex numbers, expected an array of 6 numbers"),
        ("job", "endless", "gave an infinite number, expected an array of 6 numbers"),
        ("job", "words", "gave ndarray of <U3, expected an array of 6 numbers"),
        ("vo", "submits_now", "raised ValueError: assignment destination is read-only"),
        ("vo", "matrix", "gave array([[0., 0., 0., ..., 0., 0., 0.], [0., 0., 0., ..., 0.,…, ex"),
        ("vo", "beyond", "its metric gave 101, expected at most 100, by its bounds"),
        ("vo", "below", "its metric gave -1, expected at least 0, by its bounds"),
        ("cluster", "no_edges", "raised ValueError: assignment destination is read-only"),
    ],
)
def test_a_wrong_answer_ends_the_run_with_a_line_that_names_the_part(
    place: str, name: str, said: str
) -> None:
    with pytest.raises(RunFailed) as failed:
        run(place, name)
    line = str(failed.value)
    assert said in line
    assert f" mine.py:{name}: " in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("place", "name", "said"),
    [
        ("policy", "Ignores", "a policy whose `ignores` is a tuple of some of several machines"),
        ("policy", "IgnoresText", "', ignores = 'memory', expected a policy whose `ignores` is"),
        ("policy", "IgnoresNumber", "', ignores = 3, expected a policy whose `ignores` is a tuple"),
        ("policy", "GangsIgnore", "', ignores = ('nonsense',), expected a policy whose `ignores`"),
        ("policy", "Ignored", "expected ignores instead of ignored, which nobody asks for"),
        ("policy", "Waits", "), expected def plan: a plan is made at once"),
        ("policy", "Gangs", "a gang policy whose __init__ calls super().__init__()"),
        ("policy", "Ranks", "expected rank instead of ranks, which nobody asks for"),
        ("vo", "odd", "bounds = (1, 0), expected a metric whose `bounds` are the least and"),
        ("overlay", "Backwards", "whose period_us is a whole number of at least 1"),
    ],
)
def test_what_is_wrong_with_a_made_part_is_wrong_input(place: str, name: str, said: str) -> None:
    with pytest.raises(InputError) as failed:
        run(place, name)
    assert said in str(failed.value)
    assert f"'mine.py:{name}'" in str(failed.value)


def test_bounds_hold_with_settings_too() -> None:
    vos = [{"name": "one", "clusters": [{"machines": [{"cpus": 1}]}], "workload": JOBS}]
    metrics = {"vo": [{"name": "mine.py:below", "settings": {"figure": -2}}]}
    with pytest.raises(RunFailed, match="its metric gave -2, expected at least 0, by its bounds"):
        grid.run({"vos": vos, "metrics": metrics})


def test_a_policy_that_only_wakes_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MOST_IDLE_WAKES", 50)
    said = r"mine.py:Restless: plan asked 50 times in a row to be woken, and changed nothing while"
    with pytest.raises(RunFailed, match=said):
        run("policy", "Restless")


def test_a_policy_may_wake_while_anything_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MOST_IDLE_WAKES", 8)
    farm = [{"machines": [{"cpus": 1}], "policy": "mine.py:Patient"}]
    # It wakes four times a second for ten seconds, and another job comes every second.
    jobs = [{"run_s": 10}, *({"submit_s": number, "run_s": 1} for number in range(1, 10))]
    work = {"jobs": jobs, "enters": "cluster"}
    whole = {"vos": [{"name": "a", "clusters": farm, "workload": work}]}
    assert grid.run(whole).jobs()["state"].tolist() == ["completed"] * 10


@pytest.mark.parametrize("name", ["StartsAsArray", "StartsInTurn", "RejectsAsArray"])
def test_a_plan_may_be_of_arrays_and_of_what_is_read_once(name: str) -> None:
    farm = [{"machines": [{"cpus": 1}]}]
    whole = {"vos": [{"name": "a", "clusters": farm, "workload": JOBS}]}
    key = "vos.0.clusters.0.policy"
    jobs = grid.run(whole, set={key: f"mine.py:{name}"}).jobs()
    if name == "RejectsAsArray":
        assert jobs["state"].tolist() == ["rejected"] * 2
    else:
        assert jobs.equals(grid.run(whole, set={key: "fcfs"}).jobs())


def test_a_gang_policy_may_ignore_what_a_cluster_then_cannot_ask_for(tmp_path: Path) -> None:
    (tmp_path / "gangs.py").write_text(
        "from grid.policies.gang_policy import GangPolicy\n\n\n"
        "class Unmoved(GangPolicy):\n    ignores = ('machine outages',)\n"
    )
    policy = f"{tmp_path / 'gangs.py'}:Unmoved"
    faults = {"heal_s": 9, "machine_outages": [{"vo": "a", "at_s": 5, "for_s": 1}]}
    vos = [{"name": "a", "clusters": [{"processors": 1, "policy": policy}], "workload": JOBS}]
    with pytest.raises(InputError, match=r"gangs.py:Unmoved does not support machine outages"):
        grid.load_scenario({"vos": vos, "faults": faults})
