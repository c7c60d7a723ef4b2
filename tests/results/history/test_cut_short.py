"""What is told of the jobs of a run that ended before they had."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.results.history import NOT_KEPT


def test_a_run_that_was_cut_short_gives_no_reasons(tmp_path: Path) -> None:
    """Events tell of the starts of jobs that have ended: the others may have been running."""
    jobs = [{"run_s": 5, "cpus": 2}, {"submit_s": 1, "run_s": 5, "cpus": 2}]
    vo = {"name": "a", "clusters": [{"name": "p", "cpus": 2}], "workload": {"jobs": jobs}}
    grid.run({"vos": [vo]}, out=tmp_path / "run", events=True)
    whole = CliRunner().invoke(app, ["job", str(tmp_path / "run"), "2"])
    assert "Why it waited" in whole.stdout and NOT_KEPT not in whole.stdout
    manifest = tmp_path / "run" / "manifest.json"
    told = json.loads(manifest.read_text()) | {"live": {"unfinished": 3}}
    manifest.write_text(json.dumps(told))
    for more in ([], ["--at", "2"]):
        cut = CliRunner().invoke(app, ["job", str(tmp_path / "run"), "2", *more])
        assert cut.exit_code == 0
        assert cut.stdout.endswith(f"{NOT_KEPT}\n") and "Why" not in cut.stdout
    later = CliRunner().invoke(app, ["job", str(tmp_path / "run"), "3"])
    assert later.exit_code == 2
    assert "expected one that was submitted before the run was cut short" in later.stderr
