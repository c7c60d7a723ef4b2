"""`grid trace`: what it says of a log, what it makes of one, and of what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from grid.cli.app import app

# Number, submitted, wait, run, allocated, CPU, memory, requested, time, memory, status, user, ...
JOBS = """\
; Computer: Made up
; MaxProcs: 10
1 0 -1 100 4 -1 -1 4 200 -1 1 7 1 -1 1 -1 -1 -1
2 50 -1 10.5 -1 -1 -1 2 60 -1 0 8 1 -1 1 -1 -1 -1

3 100 -1 0 1 -1 -1 1 60 -1 5 7 1 -1 1 -1 -1 -1
"""
SWF_LINE = "1 0 -1 100 4 -1 -1 4 200 -1 1 7 1 -1 1 -1 -1 -1"


def trace(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["trace", *map(str, arguments)])


def made(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_what_is_in_a_log(tmp_path: Path) -> None:
    """4 * 100 + 2 * 10.5 processor seconds of 10 * 100: 42.1 %."""
    result = trace(made(tmp_path, "made.swf", JOBS))
    assert result.exit_code == 0
    said = {line[:24].strip(): line[24:] for line in result.output.splitlines() if line.strip()}
    assert said["computer"] == "Made up"
    assert (said["jobs"], said["users"], said["blank lines"]) == ("3", "2", "1")
    assert said["offered load"] == "42.1% of 10 CPUs"
    assert said["longest gaps (s)"] == "50 after 0; 50 after 50"
    assert said["jobs up to a size"] == "1: 1, 2: 1, 4: 1"
    assert said["skipped"] == "1 no run time"
    assert said["unknown values"].startswith("all wait time, 1 allocated processors, ")
    assert said["statuses"] == "1 failed, 1 completed, 1 cancelled"


def test_a_log_is_not_replaced_by_a_part_of_itself(tmp_path: Path) -> None:
    log = made(tmp_path, "made.swf", JOBS)
    result = trace(log, "--to", log, "--user", 7)
    assert result.exit_code == 2
    assert result.output == f"--to: found {log}, the log itself, expected another file\n"
    assert log.read_text() == JOBS


def test_parts_of_a_log(tmp_path: Path) -> None:
    log = made(tmp_path, "made.swf", JOBS)
    for options, jobs in (
        (["--user", 7], 2),
        (["--status", 0, "--status", 5], 2),
        (["--from-s", 50, "--before-s", 100], 1),
        (["--min-cpus", 2], 2),
        (["--max-cpus", 1], 1),
        (["--user", 99], 0),
    ):
        result = trace(log, "--json", *options)
        assert result.exit_code == 0, result.output
        said = json.loads(result.output)
        assert (said["jobs"], said["left_out"]["filtered"]) == (jobs, 3 - jobs)
    said = json.loads(trace(log, "--json", "--interarrival-factor", 2.5).output)
    assert said["span_s"] == 250.0
    assert trace(log, "--interarrival-factor", 0).exit_code == 2
    first_s = said["first_submit_s"]
    moved = json.loads(trace(log, "--json", "--shift-s", 30).output)
    assert (moved["first_submit_s"], moved["span_s"]) == (first_s + 30, 100.0)
    early = trace(log, "--shift-s", -first_s - 1)
    assert early.exit_code == 2
    assert f"--shift-s: found {-first_s - 1}, expected at least" in early.output
    assert trace(log, "--shift-s", 1e13).exit_code == 2


@pytest.mark.parametrize("ending", ("gwf", "gwf.gz", "parquet", "swf.gz"))
def test_there_and_back(tmp_path: Path, ending: str) -> None:
    """Through any format, all that SWF tells of these jobs comes back; and the command says so."""
    log = made(tmp_path, "made.swf", JOBS)
    other, again = tmp_path / f"other.{ending}", tmp_path / "again.swf"
    result = trace(log, "--to", other)
    assert result.exit_code == 0 and f"written to {other}" in result.output
    assert trace(other, "--to", again).exit_code == 0
    assert again.read_text() == JOBS.replace("\n\n", "\n")
    first, last = (json.loads(trace(path, "--json").output) for path in (log, again))
    assert first | {"blank_lines": 0} == last


def test_what_a_run_would_leave_out_and_what_it_would_not(tmp_path: Path) -> None:
    lines = [SWF_LINE, SWF_LINE.replace("1 0", "2 -5", 1), SWF_LINE.replace(" 200 ", " -7 ")]
    result = trace(made(tmp_path, "made.swf", "\n".join(lines)))
    assert "skipped                 1 negative submit time\n" in result.output
    assert "kept with warnings      1 negative requested time\n" in result.output
