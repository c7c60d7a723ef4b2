"""Logs from practice through the commands: what is exported, and how jobs of one second are run."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

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
