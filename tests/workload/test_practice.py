"""Logs from practice through the commands: what is exported, and how jobs of one second are run."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

import grid
from grid.cli.app import app

HEAD = """; MaxJobs: 2
; UnixStartTime: 1000000000
; TimeZoneString: US/Pacific
; MaxProcs: 8
1 0 -1 100 4 -1 -1 4 120 -1 1 1 1 1 1 1 -1 -1
2 110 -1 50 8 -1 -1 8 60 -1 1 2 1 1 1 1 -1 -1
"""


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


def test_an_export_claims_no_origin_in_time(tmp_path: Path) -> None:
    """Times of a run begin at 0, which is no Unix time."""
    log, run = tmp_path / "head.swf", tmp_path / "run"
    log.write_text(HEAD)
    invoke("run", "trace-replay", "--in-process", "--set", f"trace={log}", "--set", "cpus=8",
           "--out", run)  # fmt: skip
    invoke("export", run, "--to", "swf")
    lines = (run / "schedule.swf").read_text().splitlines()
    assert not [line for line in lines if "UnixStartTime" in line or "TimeZone" in line]
    assert [line.split()[:4] for line in lines if line[0] != ";"] == [
        ["1", "0", "0", "100"], ["2", "110", "0", "50"],
    ]  # fmt: skip


def test_array_tasks_of_one_second_keep_their_order_in_swf(tmp_path: Path) -> None:
    head = "JobIDRaw|User|Submit|Start|End|AllocCPUS|TimelimitRaw|State\n"
    rows = [
        f"{1000 + n}|u{n % 3}|2024-03-01T08:00:0{int(n < 20)}|2024-03-01T09:00:00|"
        f"2024-03-01T09:00:{n + 1:02}|1|60|COMPLETED\n"
        for n in range(40)
    ]
    (tmp_path / "ties.txt").write_text(head + "".join(rows))
    invoke("trace", tmp_path / "ties.txt", "--to", tmp_path / "ties.swf")
    lines = (tmp_path / "ties.swf").read_text().splitlines()
    runs = [int(line.split()[3]) for line in lines if line[0] != ";"]
    assert runs == [*range(21, 41), *range(1, 21)]


def test_a_pool_of_ten_million_cpus_backfills() -> None:
    jobs = [
        {"run_s": 100, "cpus": 7_630_848},
        {"submit_s": 1, "run_s": 50, "cpus": 7_630_848},
        {"submit_s": 2, "run_s": 10, "cpus": 2_000_000},
    ]
    clusters = [{"cpus": 10_000_000, "policy": "easy"}]
    workload = {"entry_point": "cluster", "jobs": jobs}
    run = grid.run({"vos": [{"name": "large", "clusters": clusters, "workload": workload}]})
    assert (run.results.outcome.start_us // 1_000_000).tolist() == [0, 100, 2]
