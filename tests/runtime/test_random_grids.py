"""Random grids of all features together: what a run's folder records breaks no documented rule.

The scenarios are mappings as users write them, and the checker reads only the files of a run.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

import grid
from tests.examples import examples

SEEDS = range(examples(300))
RIGID = (
    "fcfs", "sjf", "edf", "easy", "flexible", "multifactor", "slurm", "conservative", "selective",
    "eg_edf",
)  # fmt: skip
MOLDABLE = ("easy", "easy_sjbf", "conservative")
FORWARDING = (
    "queue", "when_nothing_free", "until_idle", "reserve", "redundant", "auction", "delegated",
    "pull",
)  # fmt: skip


def scenario(seed: int) -> dict[str, Any]:
    """A grid of one to three VOs whose users want more than there is for a while."""
    draw = Random(seed)
    policies = MOLDABLE if draw.random() < 0.3 else RIGID
    names = [f"v{number}" for number in range(draw.randint(1, 3))]
    vos = [_vo(draw, name, names, policies) for name in names]
    before: list[tuple[str, int]] = []
    for vo in vos:
        vo["workload"] = {"jobs": [_job(draw, n, policies) for n in range(1, draw.randint(10, 30))]}
        for job in vo["workload"]["jobs"]:
            if before and draw.random() < 0.2:
                other, number = draw.choice(before)
                state, data = draw.choice(["ok", "any"]), draw.choice([0, 50])
                job["after"] = [{"vo": other, "job": number, "state": state, "data_mb": data}]
            before.append((vo["name"], job["number"]))
    protocol = {
        "forwarding": draw.choice(FORWARDING), "ttl": draw.randint(0, 3),
        "discount": draw.choice(["no_correction", "own_dispatches"]),
        "snapshots": {"period_s": 10},
    }  # fmt: skip
    protocol |= draw.choice([{}, {"recall_after_s": 20}, {"lost_after_s": 30}])
    outage = {"vo": "v0", "cluster": "c", "at_s": draw.randint(0, 99), "for_s": draw.randint(1, 50)}
    faults = {"heal_s": 200, "machine_outages": [outage]}
    faults |= draw.choice([{}, {"between_vos": {"lost": 0.2}, "crashes": [_crash(draw)]}])
    network = {"latency_s": 0.5, "bandwidth_mbps": 100}
    whole = {"seed": seed, "network": network, "protocol": protocol, "vos": vos}
    return whole | draw.choice([{}, {"faults": faults}])


def _crash(draw: Random) -> dict[str, Any]:
    return {"entity": "v0/scheduler", "at_s": draw.randint(0, 99), "for_s": draw.randint(1, 50)}


def _vo(draw: Random, name: str, names: list[str], policies: tuple[str, ...]) -> dict[str, Any]:
    machines = [
        {
            "name": f"m{number}", "cpus": draw.randint(4, 8), "mips": draw.choice([1000, 2000]),
            "resources": {"gpus": draw.randint(2, 4)},
        }
        for number in range(draw.randint(1, 3))
    ]  # fmt: skip
    policy: Any = draw.choice(policies)
    if policy in ("multifactor", "slurm"):
        policy = {"name": policy, "settings": {"max_running_jobs": 3, "max_cpus": 6}}
    cluster = {"name": "c", "machines": machines, "resources": {"bb": 3}, "policy": policy}
    cluster["resource"] = draw.choice(["machine", "cluster"])
    if "slurm" not in str(policy):
        cluster["one_job_per_machine"] = draw.random() < 0.2
    if draw.random() < 0.6:
        start = draw.randint(0, 100)
        reserved = {"from_s": start, "to_s": start + draw.randint(1, 60)}
        reserved |= draw.choice([{}, {"cpus": 2}])
        cluster["reservations"] = [
            reserved | draw.choice([{}, {"users": [1]}, {"vos": [draw.choice(names)]}])
        ]
    priority = draw.choice(["none", "local", "remote"])
    return {"name": name, "clusters": [cluster], "priority": priority}


def _job(draw: Random, number: int, policies: tuple[str, ...]) -> dict[str, Any]:
    run_s = draw.randint(1, 30)
    job = {
        "number": number, "user": draw.randint(1, 3), "submit_s": draw.randint(0, 100),
        "cpus": draw.randint(1, 4), "run_s": run_s,
        "estimate_s": run_s * draw.choice([1.0, 1.0, 2.0, 0.5]),
        "resources": {"gpus": draw.randint(0, 2), "bb": draw.choice([0, 0, 2])},
    }  # fmt: skip
    if policies is MOLDABLE and draw.random() < 0.5:
        job["moldable"] = {"cpus": [1, 2, 8], "serial_fraction": draw.choice([0.0, 0.2])}
    if draw.random() < 0.2:
        job["cancel_after_s"] = draw.randint(1, 60)
    return job


def broken(given: dict[str, Any], folder: Path) -> list[str]:
    """What the files of a run have that the scenario or the documentation rules out."""
    rows = {}
    for row in csv.DictReader((folder / "jobs.csv").read_text().splitlines()):
        assert (row["vo"], int(row["job_id"])) not in rows
        rows[row["vo"], int(row["job_id"])] = row
    jobs = {
        (vo["name"], job["number"]): job for vo in given["vos"] for job in vo["workload"]["jobs"]
    }
    wrong = [] if rows.keys() == jobs.keys() else ["each job has one row"]
    runs: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for key, row in rows.items():
        job, ran = jobs[key], row["starting_time"] != ""
        if row["state"] not in ("completed", "failed", "rejected", "cancelled"):
            wrong.append(f"{key} is {row['state']}")
        if ran == (row["state"] in ("rejected", "cancelled")):
            wrong.append(f"{key} is {row['state']} and ran: {ran}")
        if not ran:
            continue
        start, end = _us(row["starting_time"]), _us(row["finish_time"])
        if not _us(job["submit_s"]) <= _us(row["submission_time"]) <= start <= end:
            wrong.append(f"{key} has times out of order")
        for one in job.get("after", ()):
            other = rows[one["vo"], one["job"]]
            if one["state"] == "ok" and other["state"] != "completed":
                wrong.append(f"{key} ran although {one} did not complete")
            moved = other["executed_vo"] not in ("", row["executed_vo"])
            needed_us = one["data_mb"] * 8 * 10_000 if moved else 0
            if other["finish_time"] and start < _us(other["finish_time"]) + needed_us:
                wrong.append(f"{key} started before {one} had ended and sent its data")
        if row["preemptions"] == row["restarts"] == "0":
            held = {**job, "start": start, "end": end, "key": key, "cpus": int(row["cpus"])}
            runs[row["executed_vo"], int(row["machine"])].append(held)
    for vo in given["vos"]:
        wrong += _broken_limits(given, vo, runs)
    return wrong + _wrong_metrics(list(rows.values()), folder)


def _broken_limits(given: dict[str, Any], vo: dict[str, Any], runs: Any) -> list[str]:
    cluster, wrong = vo["clusters"][0], []
    every = [(n, one) for n in range(len(cluster["machines"])) for one in runs[vo["name"], n]]
    for at in sorted({one["start"] for _, one in every if one["start"] < one["end"]}):
        now = [(n, one) for n, one in every if one["start"] <= at < one["end"]]
        where = f"at {at} in {vo['name']}"
        if sum(one["resources"]["bb"] for _, one in now) > cluster["resources"]["bb"]:
            wrong.append(f"too much of bb {where}")
        if "settings" in cluster["policy"]:
            for user in (1, 2, 3):
                cpus = [one["cpus"] for _, one in now if one["user"] == user]
                wrong += [f"user {user} beyond limits {where}"] * (len(cpus) > 3 or sum(cpus) > 6)
        for number, machine in enumerate(cluster["machines"]):
            here = [one for n, one in now if n == number]
            if sum(one["cpus"] for one in here) > machine["cpus"]:
                wrong.append(f"too many CPUs of {number} {where}")
            if sum(one["resources"]["gpus"] for one in here) > machine["resources"]["gpus"]:
                wrong.append(f"too many GPUs of {number} {where}")
            if cluster.get("one_job_per_machine") and len(here) > 1:
                wrong.append(f"two jobs on {number} {where}")
            if any(_is_overrun(at, one, machine, here) for one in cluster.get("reservations", ())):
                wrong.append(f"others use reserved CPUs of {number} {where}")
    for one in given.get("faults", {}).get("machine_outages", ()):
        first, last = _us(one["at_s"]), _us(min(one["at_s"] + one["for_s"], 200))
        for n, run in every if one["vo"] == vo["name"] else ():
            if n == 0 and run["start"] < last and first < run["end"]:
                wrong.append(f"{run['key']} runs while its machine is down")
    return wrong


def _is_overrun(at: int, one: Any, machine: Any, here: list[dict[str, Any]]) -> bool:
    """Whether jobs that may not use reserved CPUs hold more than are left."""
    users, vos = one.get("users", ()), one.get("vos", ())
    others = [job["cpus"] for job in here if job["user"] not in users and job["key"][0] not in vos]
    left = machine["cpus"] - one.get("cpus", machine["cpus"])
    return _us(one["from_s"]) <= at < _us(one["to_s"]) and sum(others) > left


def _wrong_metrics(rows: list[dict[str, str]], folder: Path) -> list[str]:
    metrics = json.loads((folder / "metrics.json").read_text())["grid"]
    ran = [row for row in rows if row["starting_time"]]
    done = [row for row in ran if row["state"] == "completed"]
    first = min(float(row["submission_time"]) for row in rows)
    expected = {"jobs_submitted": len(rows), "jobs_completed": len(done)}
    if done:
        waits = [float(row["waiting_time"]) for row in ran]
        slow = [float(row["turnaround_time"]) / float(row["run_time"]) for row in done]
        expected |= {"wait_mean": sum(waits) / len(ran), "slowdown_mean": sum(slow) / len(done)}
        expected["makespan"] = max(float(row["finish_time"]) for row in ran) - first
    return [
        f"{name} is {metrics[name]}, not {value}"
        for name, value in expected.items()
        if metrics[name] != pytest.approx(value)
    ]


def _us(seconds: str | float) -> int:
    return round(float(seconds) * 1e6)


@pytest.mark.parametrize("first", range(0, len(SEEDS), 10))
def test_no_rule_is_broken(first: int, tmp_path: Path) -> None:
    for seed in SEEDS[first : first + 10]:
        given = scenario(seed)
        grid.run(given, out=tmp_path, force=True)
        assert broken(given, tmp_path) == [], seed


@pytest.mark.ray
@pytest.mark.thorough
@pytest.mark.usefixtures("ray_session")
def test_the_digest_is_the_same_on_actors() -> None:
    for seed in range(10):
        runs = [grid.run(scenario(seed)), grid.run(scenario(seed), ray=True, placement="2")]
        assert len({run.manifest["digest"] for run in runs}) == 1, seed


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("starting_time", "0.0", "times out of order"),
        ("cpus", "99", "too many CPUs"),
        ("state", "lost", "is lost"),
        ("waiting_time", "1e6", "wait_mean"),
    ],
)
def test_the_checker_finds_errors(column: str, value: str, message: str, tmp_path: Path) -> None:
    given = scenario(0)
    grid.run(given, out=tmp_path)
    with (tmp_path / "jobs.csv").open() as file:
        rows = list(csv.DictReader(file))
    ran = [row for row in rows if row["preemptions"] == "0" and row["starting_time"]]
    ran[-1][column] = value
    with (tmp_path / "jobs.csv").open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert any(message in line for line in broken(given, tmp_path))
