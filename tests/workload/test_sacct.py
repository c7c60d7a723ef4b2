"""Records of sacct as logs."""

from __future__ import annotations

import json
import random
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from grid.model.errors import InputError
from grid.model.time import NEVER
from grid.workload.jobs import jobs_from_log
from grid.workload.logs import Log, SwfField, read_log

HEAD = "JobIDRaw|User|Submit|Start|End|AllocCPUS|ReqCPUS|Timelimit|State|Partition|ReqMem|NNodes"


def read(folder: Path, text: str) -> Log:
    path = folder / "sacct.txt"
    path.write_text(text)
    return read_log(path)


def column(log: Log, field: SwfField) -> list[int]:
    values: list[int] = log[field].tolist()
    return values


def test_records_become_a_log(tmp_path: Path) -> None:
    log = read(
        tmp_path,
        f"{HEAD}\n"
        "70|ann|2024-05-02T10:00:00|2024-05-02T10:00:30|2024-05-02T10:02:30|8|4|1-00:30:00|"
        "COMPLETED|batch|2Gc|1\n"
        "70.batch|||2024-05-02T10:00:30|2024-05-02T10:02:30|8|4||COMPLETED|||1\n"
        "71|bob|2024-05-02T10:00:05|None|2024-05-02T10:01:00|0|2|UNLIMITED|CANCELLED by 501|"
        "long|4000Mn|2\n"
        "72|ann|2024-05-02T10:00:09|2024-05-02T10:01:00|Unknown|2|2|Partition_Limit|RUNNING|"
        "batch|8G|1\n",
    )
    assert column(log, SwfField.JOB_NUMBER) == [70, 71, 72]
    assert column(log, SwfField.SUBMIT_TIME) == [0, 5_000_000, 9_000_000]
    assert column(log, SwfField.WAIT_TIME) == [30_000_000, 55_000_000, 51_000_000]
    assert column(log, SwfField.RUN_TIME) == [120_000_000, -1, -1]
    assert column(log, SwfField.ALLOCATED_PROCESSORS) == [8, -1, 2]
    assert column(log, SwfField.REQUESTED_PROCESSORS) == [4, 2, 2]
    assert column(log, SwfField.REQUESTED_TIME) == [88_200_000_000, -1, -1]
    assert column(log, SwfField.REQUESTED_MEMORY) == [2 * 1024**2, 4000 * 1024, 4 * 1024**2]
    assert column(log, SwfField.STATUS) == [1, 5, -1]
    assert column(log, SwfField.USER) == [1, 2, 1]
    assert log.header["Partition"] == "1 batch\n2 long"
    assert log.lines.tolist() == [2, 4, 5]
    assert log.remarks == {"job_steps": 1}
    assert "UnixStartTime" not in log.header


def test_arrays_and_heterogeneous_jobs_are_numbered_in_order(tmp_path: Path) -> None:
    rows = [
        f"{name}|2024-05-02T10:00:00+02:00|00:01:00|cpu=3,mem=6G,node=1|TIMEOUT|"
        for name in ("9_2", "9_1", "12+0", "12+1", "9_[3-7%2]", "15.0")
    ]
    log = read(tmp_path, "\n".join(["JobID|Submit|Elapsed|AllocTRES|State|", *rows]))
    assert column(log, SwfField.JOB_NUMBER) == [1, 2, 3, 4, 5]
    assert column(log, SwfField.ALLOCATED_PROCESSORS) == [3] * 5
    assert column(log, SwfField.STATUS) == [0] * 5
    assert log.header["UnixStartTime"] == "1714636800"


def test_earlier_attempts_of_a_requeued_job_are_parts(tmp_path: Path) -> None:
    text = (
        "JobIDRaw|Submit|ElapsedRaw|NCPUS|State\n5|1714636800|10|1|NODE_FAIL\n"
        "6|1714636801|5|1|COMPLETED\n5|1714636900|20|1|COMPLETED\n"
    )
    jobs, skipped = jobs_from_log(read(tmp_path, text))
    assert jobs.number.tolist() == [6, 5]
    assert jobs.run_us.tolist() == [5_000_000, 20_000_000]
    assert skipped == {"partial_execution": 1}


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("Submit", "yesterday", 2),
        ("Submit", "None", 2),
        ("Timelimit", "an hour", 2),
        ("State", "FINE", 2),
        ("AllocCPUS", "-3", 2),
        ("ReqMem", "lots", 2),
        ("JobID", "x", 2),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, name: str, value: str, line: int) -> None:
    record = {
        "JobID": "1", "Submit": "2024-05-02T10:00:00", "Elapsed": "00:01:00", "AllocCPUS": "1",
        "Timelimit": "10:00", "State": "FAILED", "ReqMem": "1G",
    } | {name: value}  # fmt: skip
    with pytest.raises(InputError) as caught:
        read(tmp_path, "|".join(record) + "\n" + "|".join(record.values()) + "\n")
    (wrong,) = caught.value.errors
    assert (wrong.line, wrong.field, value in wrong.found) == (line, name, True)


@pytest.mark.parametrize(
    "text",
    [
        "JobID,Submit,Elapsed,NCPUS,State\n1,2024-05-02T10:00:00,00:01:00,1,COMPLETED\n",
        "JobID  Submit  State\n------ ------- -----\n1 2024-05-02T10:00:00 COMPLETED\n",
        "JobID|Submit|Elapsed|State\n1|2024-05-02T10:00:00|00:01:00|COMPLETED\n",
        "JobID|Submit|Elapsed|NCPUS|State\n1|2024-05-02T10:00:00|00:01:00|COMPLETED\n",
        "JobID|Submit|Elapsed|NCPUS|State\n",
    ],
)
def test_other_forms_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert len(str(caught.value).splitlines()) == 1


MONTH_HEAD = (
    "JobID|User|Account|Submit|Start|End|Elapsed|AllocCPUS|ReqCPUS|Timelimit|State|Partition"
    "|ReqMem|NNodes"
)


def made_up_month(jobs: int) -> str:
    """Records with steps, arrays, heterogeneous, cancelled, requeued, pending and running jobs."""
    draw, now = random.Random(7), datetime(2024, 3, 1)
    rows = []
    for number in range(1, jobs + 1):
        now += timedelta(seconds=draw.randrange(0, 900))
        run, cpus = draw.randrange(1, 4000), draw.choice([1, 2, 4, 8])
        state = draw.choice(
            ["COMPLETED"] * 6 + ["FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "RUNNING"]
            + ["PENDING", "CANCELLED by 7", "CANCELLED"]
        )  # fmt: skip
        start, end = now + timedelta(seconds=30), now + timedelta(seconds=30 + run)
        text = [start.isoformat(), end.isoformat(), str(timedelta(seconds=run)).zfill(8)]
        if state.startswith("CANCELLED") and number % 2:
            text = [draw.choice(["None", "Unknown", end.isoformat()]), end.isoformat(), "00:00:00"]
        elif state in ("RUNNING", "PENDING"):
            text = [start.isoformat() if state == "RUNNING" else "Unknown", "Unknown", "00:00:00"]
        limit = draw.choice(["01:00:00", "1-00:00:00", "2-12", "UNLIMITED", "Partition_Limit", ""])
        name = draw.choice([f"{number}", f"{number}_3", f"{number}+0", f"{number}_[4-9%2]"])
        granted = 0 if text[2] == "00:00:00" else cpus * draw.choice([1, 1, 2])
        memory = draw.choice(["2Gc", "4000Mn", "8G", "1.5T", "0", ""])
        row = f"{name}|u{draw.randrange(9)}|a{number % 3}|{now.isoformat()}|{'|'.join(text)}"
        row += f"|{granted}|{cpus}|{limit}|{state}|p{draw.randrange(2)}|{memory}|{1 + number % 2}"
        rows += [row] * (2 if state == "NODE_FAIL" else 1)
        if number % 3 == 0:
            rows.append(f"{name}.batch||a|{now.isoformat()}|{'|'.join(text)}|1|1||{state}|||1")
        rows += [""] * (number % 1000 == 0)
    return "\n".join([MONTH_HEAD, *rows]) + "\n"


def test_the_documented_commands_make_a_report_of_a_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/tutorials/real-log.md").read_text()
    (commands,) = re.findall(r"```sh\n((?:grid .*\n){3})```", page)
    (tmp_path / "sacct.txt").write_text(made_up_month(5000))
    monkeypatch.chdir(tmp_path)
    for command in commands.splitlines():
        options = ["--set", "vos.0.workload.cancelled=wait"] * command.startswith("grid run")
        result = CliRunner().invoke(app, [*command.split()[1:], *options])
        assert result.exit_code == 0, result.output
    metrics = json.loads((tmp_path / "month" / "metrics.json").read_text())["grid"]
    assert metrics["jobs_submitted"] > 4000
    assert (tmp_path / "month" / "report.html").exists()


def test_jobs_cancelled_in_the_queue_wait_on_request(tmp_path: Path) -> None:
    text = (
        "JobID|Submit|Start|End|Elapsed|ReqCPUS|Timelimit|State\n"
        "1|2024-05-02T10:00:00|None|2024-05-02T10:01:00|00:00:00|2|10:00|CANCELLED by 5\n"
        "2|2024-05-02T10:00:05|2024-05-02T10:00:05|2024-05-02T10:01:00|00:00:55|2|10:00|COMPLETED\n"
    )
    log = read(tmp_path, text)
    jobs, skipped = jobs_from_log(log)
    assert (jobs.number.tolist(), skipped) == ([2], {"no_run_time": 1})
    jobs, skipped = jobs_from_log(log, keep_cancelled=True)
    assert jobs.number.tolist() == [1, 2] and not skipped
    assert jobs.cancel_us.tolist() == [60_000_000, NEVER]
    assert jobs.run_us.tolist() == [600_000_000, 55_000_000]
