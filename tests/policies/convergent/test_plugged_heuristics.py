"""A heuristic of another package, found by its entry point and weighed by a scenario."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from grid.config.load import load_scenario
from grid.model.errors import PluginFailed
from grid.model.plugins import registry
from grid.policies.registry import make_policy
from tests.policies.convergent.clusters import view_of, waiting

POLICIES: tuple[tuple[str, dict[str, str]], ...] = (
    ("cs2", {}),
    ("cs_i_p", {}),
    ("flexible", {"priority": "cs2007", "reservation": "kept"}),
)
MODULE = """
def narrow(matrix, weight):
    matrix.priority += weight / matrix.processors[:, None]

def nothing(matrix, weight):
    matrix.priority *= float("nan")

def another(matrix, weight):
    matrix.priority = matrix.priority + weight / matrix.processors[:, None]

def smaller(matrix, weight):
    matrix.priority = matrix.priority[:, :0]

def writes(matrix, weight):
    matrix.remaining_s[:] = 0.0

def turns(matrix, weight):
    matrix.priority *= -1.0

def exceeds(matrix, weight):
    matrix.priority[matrix.priority > -float("inf")] = float("inf")

def hides(matrix, weight):
    matrix.priority[:] = -float("inf")
"""
NAMES = (*re.findall(r"def (\w+)", MODULE), "missing")
ENTRY_POINTS = "\n".join(
    ["[grid.heuristics]", *(f"{name} = heuristics_of_a_user:{name}" for name in NAMES)]
)
SCENARIO = """
name: mine
vos:
  - name: farm
    clusters:
      - name: machines
        policy: {{name: cs2, settings: {{weights: {{{name}: 3}}}}}}
        machines: [{{count: 1}}]
    workload: {{jobs: [{{submit_s: 0, run_s: 1}}]}}
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What `pip install` leaves of a package."""
    site = tmp_path / "site"
    about = site / "heuristics_of_a_user-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: heuristics-of-a-user\nVersion: 1")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "heuristics_of_a_user.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(site))
    registry._entry_points.cache_clear()
    yield
    registry._entry_points.cache_clear()


@pytest.mark.parametrize("heuristic", ("narrow", "another"))
@pytest.mark.parametrize(("name", "settings"), POLICIES)
def test_its_weight_decides_who_gets_the_machine(
    name: str, settings: dict[str, str], heuristic: str
) -> None:
    """Also one that puts another array into the place of the priorities."""
    view = view_of(0, [waiting(processors=2), waiting()], [100.0], cpus=[2])
    assert make_policy(name, settings).plan(view, view.now).start == [(0, 0)]
    policy = make_policy(name, {**settings, "weights": {heuristic: 3}})
    for one in (policy, pickle.loads(pickle.dumps(policy))):
        assert one.plan(view, view.now).start[0] == (1, 0)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nothing", "it returned a priority that is not a number"),
        ("smaller", r"it returned priorities of shape \(2, 0\)"),
        ("writes", "it raised ValueError"),
        ("turns", "it returned a priority"),
        ("exceeds", "it returned a priority"),
        ("hides", "it returned a priority"),
    ],
)
def test_a_wrong_one_is_named(name: str, reason: str) -> None:
    # The second machine is too small for the jobs, of which only one can run at a time.
    view = view_of(0, [waiting(processors=2), waiting(processors=2)], [100.0, 100.0], cpus=[2, 1])
    with pytest.raises(PluginFailed, match=rf"of_a_user.py:\d+: heuristic {name}: {reason}"):
        make_policy("cs2", {"weights": {name: 1}}).plan(view, view.now)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("narow", "weights.narow: found 'narow', expected a heuristic .did you mean narrow"),
        (
            "missing",
            "weights.missing: found 'missing', expected a heuristic, and .* has no missing",
        ),
    ],
)
def test_what_is_wrong_with_it_is_said_by_a_check(tmp_path: Path, name: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(SCENARIO.format(name="narrow"))
    load_scenario(file, [])
    file.write_text(SCENARIO.format(name=name))
    with pytest.raises(Exception, match=message):
        load_scenario(file, [])
