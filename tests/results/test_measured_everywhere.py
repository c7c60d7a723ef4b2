"""Jobs of an interval are measured alike in every way to run: spooled, live, in an environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.results.spool import StoredResults
from grid.runtime.outcome import RecordStore
from tests.results.test_measured_jobs import SERVERS

MEASURED = {"submitted_from_s": 1500, "submitted_until_s": 4000}
SOME_MEASURED: dict[str, Any] = SERVERS | {"metrics": MEASURED}
LIVE = """\
name: live
metrics: {submitted_from_s: 1, submitted_until_s: 2.5}
vos:
  - name: vo
    clusters: [{cpus: 4, policy: fcfs}]
    workload:
      jobs: [{submit_s: 0.5, run_s: 1}, {submit_s: 1, run_s: 1}, {submit_s: 2, run_s: 1},
             {submit_s: 2.5, run_s: 1}]
"""
# The second job comes 50 s after the first one has ended, at 150 s; the third 1,000 s after that.
FOLLOWING = """\
1 0 -1 100 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1
2 5 -1 100 1 -1 -1 1 100 -1 1 1 1 1 1 1 1 50
3 9 -1 100 1 -1 -1 1 100 -1 1 1 1 1 1 1 2 1000
"""


def test_a_spooled_run(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = grid.run(SOME_MEASURED)
    monkeypatch.setattr(RecordStore, "JOBS_IN_MEMORY", 50)
    spooled = grid.run(SOME_MEASURED)
    assert isinstance(spooled.results, StoredResults)
    assert 0 < whole.manifest["measured"]["jobs"] < 400
    assert spooled.manifest["measured"] == whole.manifest["measured"]
    assert spooled.metrics == whole.metrics


def test_an_environment_whose_agent_serves_in_order() -> None:
    pytest.importorskip("gymnasium", reason="needs the extra `learning`")
    pytest.importorskip("greenlet", reason="needs the extra `learning`")
    from grid.integrations.learning.environments import ClusterEnv

    env, over = ClusterEnv(SOME_MEASURED), False
    _, info = env.reset(seed=1)
    while not over:
        _, _, over, _, info = env.step(np.int64(np.flatnonzero(info["action_mask"])[0]))
    figures, expected = env.metrics()["grid"], grid.run(SOME_MEASURED).metrics["grid"]
    for name in ("jobs_submitted", "wait_mean", "response_time_mean", "utilization"):
        assert figures[name] == expected[name], name


def test_a_job_that_waits_for_another_counts_by_when_it_comes(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(FOLLOWING)
    workload = {"trace": str(tmp_path / "log.swf"), "waits_for_predecessors": True}
    cluster = {"name": "server", "cpus": 1, "policy": "fcfs"}
    described = {
        "name": "following",
        "vos": [{"name": "vo", "clusters": [cluster], "workload": workload}],
    }
    counted = {
        (from_s, until_s): grid.run(
            described,
            set={"metrics.submitted_from_s": from_s, "metrics.submitted_until_s": until_s},
        ).manifest["measured"]["jobs"]
        for from_s, until_s in ((1, 149), (149, 152), (152, 1249), (1249, 1252))
    }
    assert list(counted.values()) == [0, 1, 0, 1], counted


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_live_run(tmp_path: Path) -> None:
    (tmp_path / "live.yaml").write_text(LIVE)
    out = tmp_path / "out"
    command = ["run", str(tmp_path / "live.yaml"), "--live", "--speedup", "4", "--out", str(out)]
    done = CliRunner().invoke(app, [*command, "--placement", "vo", "--quiet"])
    assert done.exit_code == 0, done.output
    # When a job is submitted is its scenario's, however late the machine is.
    expected = {"jobs": 2, "submitted_from_s": 1.0, "submitted_until_s": 2.5}
    assert json.loads((out / "manifest.json").read_text())["measured"] == expected
    assert json.loads((out / "metrics.json").read_text())["grid"]["jobs_submitted"] == 2
