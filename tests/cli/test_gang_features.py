"""Settings of a gang cluster take effect in `grid run`, or `grid check` refuses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from typer.testing import CliRunner

from grid.cli.app import app

LICENSED: dict[str, Any] = {"machines": [{"cpus": 1, "count": 4, "licenses": ["x"]}]}
FEATURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no copies of a license": (LICENSED | {"licenses": [{"name": "x", "copies": 0}]}, {}),
    "licenses": (LICENSED | {"licenses": [{"name": "x", "copies": 1}]}, {}),
    "preemption costs": ({"preemption": {"suspend_s": 5, "resume_s": 5, "move_s": 5}}, {}),
    "one job per machine": ({"one_job_per_machine": True}, {}),
    "memory": ({"machines": [{"cpus": 1, "count": 4, "ram_mb": 100}]}, {"ram_mb": 1e9}),
    "memory that no machine tells of": ({}, {"ram_mb": 1e9}),
    "binding": ({"resource": "machine"}, {}),
    "exact estimates": ({"estimates": "exact"}, {}),
    "predicted estimates": ({"estimates": "average"}, {}),
    "longer estimates": ({"estimate_factor": 2.0}, {}),
    "overrunning jobs": ({"overrun": "extend"}, {}),
}  # fmt: skip
"""Settings of the cluster, and of each job."""


def digest(done: Any, folder: Path) -> str:
    assert done.exit_code == 0, done.output
    found: str = json.loads((folder / "manifest.json").read_text())["digest"]
    return found


@pytest.mark.parametrize("feature", FEATURES)
def test_it_takes_effect_or_is_refused(feature: str, tmp_path: Path) -> None:
    def invoke(name: str, cluster: dict[str, Any], job: dict[str, Any]) -> Any:
        gangs = {"name": "gangs", "policy": "afcfs", "machines": [{"cpus": 1, "count": 4}]}
        jobs = [
            {"submit_s": n, "run_s": 20, "estimate_s": 15, "cpus": 1 + n % 3, **job}
            for n in range(9)
        ]
        vo = {"name": "only", "clusters": [gangs | cluster], "workload": {"jobs": jobs}}
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"name": "gangs", "vos": [vo]}))
        run = ["run", str(path), "--in-process", "--quiet", "--out", str(tmp_path / name)]
        return CliRunner().invoke(app, ["check", str(path)]), CliRunner().invoke(app, run)

    checked, ran = invoke("asked", *FEATURES[feature])
    assert checked.exit_code == ran.exit_code
    if checked.exit_code:
        assert (checked.exit_code, checked.stderr) == (2, ran.stderr)
        lines = checked.stderr.splitlines()
        assert all(
            "does not support" in line or "machine of the grid has ram_mb" in line for line in lines
        )
        assert 1 <= len(lines) <= 5 and not (tmp_path / "asked").exists()
        return
    _, plain = invoke("plain", {}, {})
    assert digest(ran, tmp_path / "asked") != digest(plain, tmp_path / "plain")
