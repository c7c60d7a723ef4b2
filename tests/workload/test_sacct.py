"""Records of sacct as logs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from grid.model.errors import InputError
from grid.workload.jobs import jobs_from_log
from grid.workload.logs import Log, SwfField, read_log, write_log

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
    assert column(log, SwfField.WAIT_TIME) == [30_000_000, -1, 51_000_000]
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


def test_jobs_of_one_second_keep_their_order(tmp_path: Path) -> None:
    rows = [
        f"{300 + n}|u|2024-05-02T10:00:0{n // 25}|2024-05-02T11:00:00|"
        f"2024-05-02T11:{n + 1:02}:00|1|1|60|COMPLETED|p||1"
        for n in range(50)
    ]
    log = read(tmp_path, "\n".join([HEAD.replace("Timelimit", "TimelimitRaw"), *rows]))
    jobs, _ = jobs_from_log(log)
    assert jobs.number.tolist() == list(range(300, 350))
    assert jobs.estimate_us.tolist() == [3_600_000_000] * 50


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
    (mistake,) = caught.value.errors
    assert (mistake.line, mistake.field, value in mistake.found) == (line, name, True)


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


def made_up_month(jobs: int) -> str:
    """Accounting records with steps, arrays, cancelled, requeued and running jobs."""
    draw = random.Random(7)
    rows, second = [], 1_714_600_000
    for number in range(1, jobs + 1):
        second += draw.randrange(0, 120)
        run, cpus = draw.randrange(1, 4000), draw.choice([1, 2, 4, 8])
        state = draw.choice(["COMPLETED"] * 6 + ["FAILED", "TIMEOUT", "CANCELLED by 7", "RUNNING"])
        never = state.startswith("CANCELLED") and draw.random() < 0.5
        start, end = ("None", second + 60) if never else (second + 30, second + 30 + run)
        limit = draw.choice(["01:00:00", "1-00:00:00", "UNLIMITED", "Partition_Limit"])
        granted = cpus * draw.choice([1, 1, 2])
        rows.append(
            f"{number}|u{draw.randrange(9)}|{second}|{start}|{end}|{granted}|{cpus}|{limit}|{state}"
            f"|p{draw.randrange(2)}|{draw.choice(['2Gc', '4000Mn', '8G', ''])}|1"
        )
        if number % 3 == 0:
            rows.append(f"{number}.batch||{second}|{start}|{end}|{cpus}|{cpus}||{state}|||1")
    return "\n".join([HEAD, *rows]) + "\n"


def test_a_month_of_a_site_becomes_an_equal_swf_log(tmp_path: Path) -> None:
    log = read(tmp_path, made_up_month(5000))
    assert len(log) == 5000
    write_log(log, tmp_path / "month.swf")
    again = read_log(tmp_path / "month.swf")
    assert again.columns.tolist() == log.columns.tolist()
    assert again.header == log.header
