"""Stories and reasons of random jobs of a run, against its events and its table of jobs, slowly.

By hand, for any run with events: python -m tests.results.slow_history RUN [JOBS]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet

from grid.model.job import JobKey
from grid.model.records import DECISION, ClusterFacts, Event
from grid.results.events import EventFile
from grid.results.history import ClusterLog, WhyWaiting, job_history, why_waiting

MOMENTS = 3
"""Of each wait of a job."""
CAME = ("submit", "run_job", "move_gang")


@dataclass(frozen=True)
class There:
    """A job in a cluster, and where it runs; -1: it waits."""

    key: JobKey
    came: Event
    machine: int


@dataclass
class Found:
    """What was looked at, and a line for each thing that was wrong."""

    jobs: int = 0
    waits: int = 0
    lacks: int = 0
    behind: int = 0
    errors: list[str] | None = None


def looked_at(folder: Path, jobs: int, seed: int = 18) -> Found:
    """Look at so many random jobs of the run in `folder`."""
    file, draw = EventFile(folder), Random(seed)
    events = file.all()
    rows = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    found = Found(errors=[])
    assert found.errors is not None
    logs = {facts.entity: ClusterLog(facts, file.of_cluster(facts)) for facts in file.clusters}
    of_cluster: dict[str, list[Event]] = {entity: [] for entity in logs}
    for event in events:
        for entity in {event.entity, event.peer if event.event == "move_gang" else None}:
            if entity in of_cluster:
                of_cluster[entity].append(event)
    for row in draw.sample(rows, min(jobs, len(rows))):
        key = (row["vo"], int(row["job_id"]))
        mine = [one for one in events if (one.vo, one.job) == key]
        found.jobs += 1
        found.errors += [f"{key}: {line}" for line in of_story(key, mine, row)]
        for entity in dict.fromkeys(one.entity for one in mine if one.entity in logs):
            lines = of_waits(key, logs[entity], of_cluster[entity], draw, found)
            found.errors += [f"{key} in {entity}: {line}" for line in lines]
    return found


def of_story(key: JobKey, mine: list[Event], row: dict[str, Any]) -> Iterator[str]:
    """What a story lacks, or has wrong, by the job's events and its row of the table."""
    story = job_history(key, mine)
    words = [line.event.event for line in story]
    times = [line.time_us for line in story]
    if times != sorted(times):
        yield "steps that go back in time"
    if words[:1] not in (["submit"], ["submit_job"]):
        yield f"a story that begins with {words[:1]}"
    elif times[0] < round(row["submission_time"] * 1e6):
        yield "a submission before its time"
    told = [line.event for line in story if line.event.kind == DECISION]
    if told != [one for one in mine if one.kind == DECISION]:
        yield "decisions that are not told"
    if words.count("forward_job") != row["hops"]:
        yield f"{words.count('forward_job')} hops, not {row['hops']}"
    starts = [time for time, word in zip(times, words, strict=True) if word == "start"]
    if (row["starting_time"] is None) != (not starts):
        yield "a start, or none, against the table"
    elif starts and starts[0] != round(row["starting_time"] * 1e6):
        yield "another start"
    ends = [line for line in story if line.event.event in ("end", "give_up")]
    if len(ends) != 1 or ends[0].event.state != row["state"]:
        yield "another end"


def of_waits(
    key: JobKey, log: ClusterLog, events: list[Event], draw: Random, found: Found
) -> Iterator[str]:
    """What is wrong with the reasons why the job waits there, at moments of its wait."""
    stay = log.stays.get(key)
    # Some clusters are only asked how busy they are.
    if stay is None or stay.start_us - stay.came_us < 2:
        return
    for _ in range(MOMENTS):
        time_us = draw.randrange(stay.came_us, min(stay.start_us, stay.end_us))
        there = list(of_moment(events, time_us, log.facts.entity))
        why = why_waiting(key, log.at(time_us))
        found.waits += 1
        if why is None:
            yield f"at {time_us}: it waits, and is said not to"
            continue
        found.lacks += bool(why.lacks)
        found.behind += bool(why.ahead)
        yield from (f"at {time_us}: {line}" for line in of_reason(why, there, log.facts, time_us))


def of_moment(events: list[Event], time_us: int, entity: str) -> Iterator[There]:
    """The jobs in a cluster after all that happened by then, in the order in which they came."""
    there: dict[JobKey, There] = {}
    for event in events:
        if event.time_us > time_us or event.vo is None or event.job is None:
            continue
        key = (event.vo, event.job)
        if event.event == "move_gang" and event.peer == entity:
            there.pop(key, None)
        elif event.event in CAME:
            there.pop(key, None)
            there[key] = There(key, event, -1)
        elif event.event == "start":
            there[key] = There(key, there[key].came, event.machine or 0)
        elif event.event == "end":
            there.pop(key, None)
    yield from there.values()


def of_reason(
    why: WhyWaiting, there: list[There], facts: ClusterFacts, time_us: int
) -> Iterator[str]:
    """What a reason has wrong: whom the job is behind, and what is free on each machine."""
    waiting = [one for one in there if one.machine < 0]
    keys = [one.key for one in waiting]
    if list(why.ahead) != keys[: keys.index(why.job.key)]:
        yield "behind others than it says"
    job = next(one for one in waiting if one.key == why.job.key).came
    machines = range(len(facts.cpus))
    bound = -1 if job.machine is None else job.machine
    able = [m for m in machines if bound in (-1, m) and could(job, facts, m)]
    missing = {machine: set(lacking(job, there, facts, machine, time_us)) for machine in able}
    if not able:
        if why.machine >= 0:
            yield "a machine, where none could ever do"
        return
    if why.machine not in able:
        yield f"machine {why.machine}, which could not run it"
        return
    said = {one.what for one in why.lacks}
    if said != missing[why.machine]:
        yield f"it lacks {sorted(missing[why.machine])}, not {sorted(said)}"
    if said and not all(missing.values()):
        yield "another machine has all that it needs"
    runs = [one for one in there if one.machine >= 0]
    here = {one.key for one in runs if facts.gangs or one.machine == why.machine}
    if "machine" in said:
        here = set()
    if set(why.holders) != here:
        yield "others hold the machine than it says"
    if not why.sentences():
        yield "no words"


def could(job: Event, facts: ClusterFacts, machine: int) -> bool:
    """Whether that machine could run the job when nothing else is there."""
    if (job.processors or 1) > facts.cpus[machine]:
        return False
    if facts.gangs:
        return True
    memory = facts.ram_mb[machine] or math.inf
    licensed = not (job.licenses or 0) & ~facts.machine_licenses[machine]
    return licensed and (job.ram_mb or 0) <= memory


def lacking(
    job: Event, there: list[There], facts: ClusterFacts, machine: int, time_us: int
) -> Iterator[str]:
    """What of the job's needs is not free on that machine."""
    runs = [one for one in there if one.machine >= 0]
    here = [one for one in runs if facts.gangs or one.machine == machine]
    if any(which == machine and start <= time_us < end for which, start, end in facts.outages):
        yield "machine"
    else:
        yield from busy(job, here, facts, machine)
    for number, (name, copies) in enumerate(facts.licenses):
        if (job.licenses or 0) >> number & 1:
            users = {one.machine for one in runs if (one.came.licenses or 0) >> number & 1}
            if machine not in users and len(users) >= copies:
                yield f"license {name}"


def busy(job: Event, here: list[There], facts: ClusterFacts, machine: int) -> Iterator[str]:
    """What those who run there leave too little of."""
    held = sum(one.came.processors or 1 for one in here)
    is_taken = facts.one_job_a_machine and here
    if is_taken or facts.cpus[machine] - held < (job.processors or 1):
        yield "cpus"
    if not facts.gangs and facts.ram_mb[machine] and job.ram_mb:
        used = sum(math.ceil((one.came.ram_mb or 0) * 1024) for one in here)
        if used + math.ceil(job.ram_mb * 1024) > math.ceil(facts.ram_mb[machine] * 1024):
            yield "memory_mb"


if __name__ == "__main__":
    result = looked_at(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    for line in (result.errors or [])[:20]:
        print(line)
    print(
        f"{result.jobs} jobs, {result.waits} moments of waits ({result.lacks} with something "
        f"lacking, {result.behind} behind others): {len(result.errors or [])} mistakes"
    )
    sys.exit(bool(result.errors))
