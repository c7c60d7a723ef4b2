"""The events of a run: all of them, the same on every placement, small, and at no other cost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet

from grid.config.load import load_scenario
from grid.model.records import MESSAGE
from grid.results.definitions import FILES, message_names
from grid.results.events import EventFile
from grid.runtime.run import execute, save

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def test_events_are_complete_and_change_nothing(tmp_path: Path) -> None:
    settings = ["snapshot_period=5", "workload.settings.jobs_per_user=8", "vos.0.count=4"]
    scenario = load_scenario(SCENARIOS / "partial-utility.yaml", settings)
    quiet = execute(scenario, "small", in_process=True)
    run = execute(scenario, "small", in_process=True, events=True)
    assert run.manifest["digest"] == quiet.manifest["digest"]
    save(run, tmp_path / "run")
    path = tmp_path / "run" / "events.parquet"
    table = pyarrow.parquet.read_table(path)
    assert table.column_names == list(FILES["events"].columns)
    kinds = Counter(table["kind"].to_pylist())
    words = Counter(table["event"].to_pylist())
    assert kinds[MESSAGE] == run.manifest["messages"]
    assert words["publish"] == run.manifest["snapshots"]
    assert not words.keys() - {*message_names(), *FILES["decisions"].columns}
    ran = int((run.results.outcome.start_us >= 0).sum())
    assert words["start"] == words["end"] == ran
    assert words["forward"] == int(run.results.placement.hops.sum())
    times = table["time_us"].to_pylist()
    assert times == sorted(times)
    if len(table) > 10_000:
        assert path.stat().st_size <= 60 * len(table)


def test_faults_leave_every_event_once(tmp_path: Path) -> None:
    """Lost, duplicated and retransmitted messages: each handled message is recorded once."""
    scenario = load_scenario(
        {
            "name": "bad",
            "seed": 3,
            "vos": [
                {
                    "name": name,
                    "clusters": [{"name": "c", "cpus": 2, "policy": "fcfs"}],
                    "workload": {"jobs": [{"submit_s": s, "run_s": 9} for s in range(12)]},
                }
                for name in ("a", "b")
            ],
            "faults": {
                "heal_s": 500,
                "between_vos": {"lost": 0.2, "doubled": 0.2},
                "within_vos": {"lost": 0.1, "doubled": 0.1},
            },
        },
        [],
    )
    run = execute(scenario, "bad", in_process=True, events=True)
    quiet = execute(scenario, "bad", in_process=True)
    assert run.manifest["digest"] == quiet.manifest["digest"]
    save(run, tmp_path / "run")
    words = Counter(one.event for one in EventFile(tmp_path / "run").all())
    assert words["submit_job"] == words["start"] == words["end"] == 24
    assert words["forward"] == words["forward_job"] == int(run.results.placement.hops.sum())
    assert words["admit"] == words["assigned"] == words["run_job"]
