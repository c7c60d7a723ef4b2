"""Jobs of an interval are measured alike in every way to run: spooled, live, in an environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid
from grid.results.spool import StoredResults
from grid.runtime.outcome import RecordStore
from tests.results.test_measured_jobs import SERVERS

MEASURED = {"submitted_from_s": 1500, "submitted_until_s": 4000}
SOME_MEASURED: dict[str, Any] = SERVERS | {"metrics": MEASURED}
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
