"""Histories of random jobs and reasons why they wait, checked slowly against events and tables.

By hand, for any run with events: python -m tests.results.slow_history RUN [JOBS]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow.parquet

from grid.model.job import JobKey
from grid.model.records import DECISION, ClusterFacts, Event, resources_of
from grid.results.events import EventFile
from grid.results.history import ClusterLog, WhyWaiting, job_history, why_waiting

MOMENTS = 3
"""Of each wait of a job."""
ARRIVALS = ("submit", "run_job", "move_gang")


class There(NamedTuple):
    """A job in a cluster, its arrival, and the machine where it runs; -1: it waits."""

    key: JobKey
    came: Event
    machine: int


@dataclass
class Found:
    """Numbers of checked jobs and moments of waits, and a line for each error."""

    jobs: int = 0
    waits: int = 0
    errors: list[str] = field(default_factory=list)


def checked(folder: Path, jobs: int, seed: int = 18) -> Found:
    """Check `jobs` random jobs of the run in `folder`."""
    file, draw, found = EventFile(folder), Random(seed), Found()
    events = file.all()
    rows = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    logs = {facts.entity: ClusterLog(facts, file.of_cluster(facts)) for facts in file.clusters}
    of_cluster: dict[str, list[Event]] = {entity: [] for entity in logs}
    for event in events:
        left = event.peer if event.event == "move_gang" else None
        for entity in dict.fromkeys((event.entity, left)):
            if entity in of_cluster:
                of_cluster[entity].append(event)
    for row in draw.sample(rows, min(jobs, len(rows))):
        key = (row["vo"], int(row["job_id"]))
        mine = [one for one in events if (one.vo, one.job) == key]
        found.jobs += 1
        found.errors += [f"{key}: {line}" for line in errors_of_history(key, mine, row)]
        for entity in dict.fromkeys(one.entity for one in mine if one.entity in logs):
            lines = errors_of_waits(key, logs[entity], of_cluster[entity], draw, found)
            found.errors += [f"{key} in {entity}: {line}" for line in lines]
    return found


def errors_of_history(key: JobKey, mine: list[Event], row: dict[str, Any]) -> Iterator[str]:
    """Differences of a history from the job's events and its row of the table."""
    history = job_history(key, mine)
    words = [line.event.event for line in history]
    times = [line.time_us for line in history]
    if times != sorted(times):
        yield "times decrease"
    if words[:1] not in (["submit"], ["submit_job"]):
        yield f"the first step is {words[:1]}"
    elif times[0] < round(row["submission_time"] * 1e6):
        yield "submitted too early"
    decisions = [line.event for line in history if line.event.kind == DECISION]
    if decisions != [one for one in mine if one.kind == DECISION]:
        yield "decisions are missing"
    if words.count("forward_job") != row["hops"]:
        yield f"{words.count('forward_job')} hops, not {row['hops']}"
    starts = [time for time, word in zip(times, words, strict=True) if word == "start"]
    if (row["starting_time"] is None) != (not starts):
        yield "a start in the history or in the table only"
    elif starts and starts[0] != round(row["starting_time"] * 1e6):
        yield "another start"
    ends = [line for line in history if line.event.event in ("end", "give_up")]
    if len(ends) != 1 or ends[0].event.state != row["state"]:
        yield "another end"


def errors_of_waits(
    key: JobKey, log: ClusterLog, events: list[Event], draw: Random, found: Found
) -> Iterator[str]:
    """Errors in the reasons why the job waits there, at moments of its wait."""
    stay = log.stays.get(key)
    # Some clusters are only asked for their load.
    if stay is None or stay.start_us - stay.came_us < 2:
        return
    for _ in range(MOMENTS):
        time_us = draw.randrange(stay.came_us, min(stay.start_us, stay.end_us))
        there = list(jobs_at(events, time_us, log.facts.entity))
        why = why_waiting(key, log.at(time_us))
        found.waits += 1
        lines = errors_of_reason(why, there, log.facts, time_us) if why else ["no reason"]
        yield from (f"at {time_us}: {line}" for line in lines)


def jobs_at(events: list[Event], time_us: int, entity: str) -> Iterator[There]:
    """The jobs in a cluster after all events by then, in order of arrival."""
    there: dict[JobKey, There] = {}
    for event in events:
        if event.time_us > time_us or event.vo is None or event.job is None:
            continue
        key = (event.vo, event.job)
        has_left = event.event == "move_gang" and event.peer == entity
        if has_left or event.event in ("end", *ARRIVALS):
            there.pop(key, None)
        if event.event in ARRIVALS and not has_left:
            there[key] = There(key, event, -1)
        elif event.event == "start":
            there[key] = There(key, there[key].came, event.machine or 0)
    yield from there.values()


def errors_of_reason(
    why: WhyWaiting, there: list[There], facts: ClusterFacts, time_us: int
) -> Iterator[str]:
    """Errors in a reason: the jobs ahead, and what is free on each machine."""
    key = why.job.key
    waiting = [one for one in there if one.machine < 0]
    keys = [one.key for one in waiting]
    if list(why.ahead) != keys[: keys.index(key)]:
        yield "other jobs are ahead"
    job = next(one for one in waiting if one.key == key).came
    bound = -1 if job.machine is None else job.machine
    able = [m for m in range(len(facts.cpus)) if bound in (-1, m) and can_run(job, facts, m)]
    missing = {machine: set(lacking(job, there, facts, machine, time_us)) for machine in able}
    if not able:
        if why.machine >= 0:
            yield "no machine can run it"
        return
    if why.machine not in able:
        yield f"machine {why.machine} cannot run it"
        return
    lacks = {one.what for one in why.lacks}
    if lacks != missing[why.machine]:
        yield f"it lacks {sorted(missing[why.machine])}, not {sorted(lacks)}"
    if lacks and not all(missing.values()):
        yield "another machine has all that it needs"
    runs = [one for one in there if one.machine >= 0]
    here = {one.key for one in runs if facts.gangs or one.machine == why.machine}
    if set(why.holders) != (set() if "machine" in lacks else here):
        yield "other jobs hold the machine"
    if not why.sentences():
        yield "no text"


def can_run(job: Event, facts: ClusterFacts, machine: int) -> bool:
    """Whether that machine can run the job when no other job is there."""
    if (job.processors or 1) > facts.cpus[machine]:
        return False
    held = resources_of(job.resources)
    enough = all(amount <= most(facts, name, machine) for name, amount in held.items())
    licensed = facts.gangs or not (job.licenses or 0) & ~facts.machine_licenses[machine]
    return licensed and enough


def most(facts: ClusterFacts, name: str, machine: int) -> float:
    """How much of a resource a machine has."""
    given = facts.resources.get(name)
    absent = math.inf if name == "ram_mb" else 0.0
    return absent if given is None or given[machine] < 0 else given[machine]


def lacking(
    job: Event, there: list[There], facts: ClusterFacts, machine: int, time_us: int
) -> Iterator[str]:
    """What the job needs and is not free on that machine."""
    runs = [one for one in there if one.machine >= 0]
    here = [one for one in runs if facts.gangs or one.machine == machine]
    if any(which == machine and start <= time_us < end for which, start, end in facts.outages):
        yield "machine"
    else:
        held = sum(one.came.processors or 1 for one in here)
        is_taken = facts.one_job_per_machine and here
        if is_taken or facts.cpus[machine] - held < (job.processors or 1):
            yield "cpus"
        for name, amount in resources_of(job.resources).items():
            used = sum(
                math.ceil(resources_of(one.came.resources).get(name, 0) * 1024) for one in here
            )
            if used + math.ceil(amount * 1024) > most(facts, name, machine) * 1024:
                yield name
    for number, (name, copies) in enumerate(facts.licenses):
        if (job.licenses or 0) >> number & 1:
            users = {one.machine for one in runs if (one.came.licenses or 0) >> number & 1}
            if machine not in users and len(users) >= copies:
                yield f"license {name}"


if __name__ == "__main__":
    result = checked(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    print("\n".join(result.errors[:20]))
    print(f"{result.jobs} jobs, {result.waits} moments of waits: {len(result.errors)} errors")
    sys.exit(bool(result.errors))
