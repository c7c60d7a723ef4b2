"""Faults break no rule, and each planted bug breaks one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from grid.runtime.chaos import attempt, run_chaos
from tests.runtime.planted_bugs import BUGS, FINDINGS, SCENARIOS, broken_rules, subject

SEEDS = int(os.environ.get("GRID_CHAOS_SEEDS", "40"))
"""Of all scenarios together. The thorough tests have a thousand."""

NAMES = sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


@pytest.mark.parametrize("decisions", [False, True], ids=["as written", "decisions drawn"])
@pytest.mark.parametrize("name", NAMES)
def test_no_faults_break_a_rule(name: str, decisions: bool) -> None:
    seeds = range(SEEDS // len(NAMES) // 2)
    assert run_chaos(subject(name, decisions), seeds, in_process=True) == []


@pytest.mark.parametrize(
    "bug",
    # The run of this one does not end for minutes.
    [pytest.param(bug, marks=pytest.mark.thorough) if bug == "no_order" else bug for bug in BUGS],
)
def test_each_planted_bug_breaks_its_rule_at_a_recorded_seed(bug: str) -> None:
    """`scripts/nightly` searches for seeds; see `tests.runtime.planted_bugs`."""
    finding = FINDINGS[bug]
    broken = broken_rules(bug, finding.scenario, finding.seed)
    assert any(re.search(finding.rule, line) for line in broken), broken


def test_a_run_that_has_much_to_send_again_until_it_heals_has_not_failed() -> None:
    """80 times the messages of a run without faults, most of them before all is healed."""
    assert attempt(subject("mixed"), 5582).broken == []


def test_a_failing_seed_is_printed_with_its_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS["ttl_not_lowered"](monkeypatch)
    path = str(SCENARIOS / "mixed.yaml")
    command = ["chaos", path, "--set", "protocol.ttl=2", "--in-process", "--seeds", "20"]
    many = CliRunner().invoke(app, command)
    assert many.exit_code == 1
    lines = many.stdout.splitlines()
    finding, replay = lines[0], lines[1].split()
    assert replay[:2] == ["grid", "chaos"]
    alone = CliRunner().invoke(app, replay[1:])
    assert alone.exit_code == 1
    assert alone.stdout.splitlines()[0] == finding
    assert "between_vos:" in alone.stdout


FAULTY = """
from grid.policies.interface import Plan

class Faulty:
    def plan(self, view, now):
        if len(view.queue) == 0 or not view.free[0]:
            return Plan()
        if now > 1_000_000:
            raise KeyError("too late")
        return Plan(start=[(int(view.queue[0]), 0)])
"""

SMALL = """
vos:
  - name: a
    clusters: [{cpus: 1, policy: "faulty.py:Faulty"}]
    workload: {jobs: [{run_s: 5}]}
"""


def test_a_plugin_that_fails_under_faults_is_one_line_and_its_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job arrives within a second, unless a fault delays it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faulty.py").write_text(FAULTY)
    (tmp_path / "small.yaml").write_text(SMALL)
    command = ["chaos", "small.yaml", "--in-process", "--seeds", "20", "--traceback"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    found = [line for line in lines if line.startswith("seed ")]
    error = "faulty.py:9: policy faulty.py:Faulty: plan raised KeyError: 'too late'"
    assert found and all(line.endswith(error) for line in found)
    frame = f'  File "{tmp_path / "faulty.py"}", line 9, in plan'
    assert [line for line in lines if line.startswith("  File ")] == [frame] * len(found)
