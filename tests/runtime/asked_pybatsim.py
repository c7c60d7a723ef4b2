"""Schedulers of pybatsim, run as its users run them: what they start, and what was said."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

from grid.model.job_table import JobTable
from grid.model.time import SECOND_US
from grid.policies.batsim.messages import mask_of
from grid.policies.batsim.policy import CLOCK_US, Batsim, Scheduler
from grid.runtime.schedulers import Conversation, SchedulerTime
from tests.policies.batsim.asked_functions import CPUS, schedule
from tests.runtime.explained_starts import Heard

PYBATSIM = shlex.quote(str(Path(sys.executable).with_name("pybatsim")))
KINDS = {"JOB_SUBMITTED": "submit", "JOB_COMPLETED": "end"}


class Asked(NamedTuple):
    """The starts of the jobs, by row; what was said; what each job ran on, as a mask; the cost."""

    starts: list[int]
    said: list[Heard]
    allocations: dict[int, int]
    time: SchedulerTime


def of_pybatsim(scheduler: str, jobs: JobTable, processors: int = CPUS) -> Asked:
    """What a scheduler of pybatsim's, by name or file, does with the jobs on so many processors."""
    command = f"{PYBATSIM} {scheduler} -s {{endpoint}} -t 0 -v error"
    reached = Scheduler(command, "", 600.0)
    conversation, policy = Conversation("tests/pool", reached), Batsim(reached)
    said: list[Heard] = []

    def converse(message: dict[str, Any]) -> Any:
        answer = conversation.ask(message)
        now = round(message["now"] * SECOND_US) - CLOCK_US
        events = [
            (KINDS[one["type"]], _row(one)) for one in message["events"] if one["type"] in KINDS
        ]
        started = [
            (_row(one), mask_of(one["data"]["alloc"], processors))
            for one in answer["events"]
            if one["type"] == "EXECUTE_JOB"
        ]
        said.append(Heard(now, events, started))
        return answer

    policy.connect(converse)
    try:
        starts, _, _ = schedule(policy, jobs, processors)
        conversation.say_farewell()
    finally:
        conversation.close()
    allocations = dict(one for heard in said for one in heard.started)
    return Asked(starts, said, allocations, conversation.time)


def _row(event: dict[str, Any]) -> int:
    return int(event["data"]["job_id"].partition("!")[2])
