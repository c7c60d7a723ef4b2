"""What parts are given and what they answer, field by field, for the reference."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from key_words import MADE, markdown

from grid.model.distances import Distances
from grid.model.job import Job, JobOutcome
from grid.model.job_results import JobPlacement, JobResults
from grid.model.messages import Bid
from grid.model.resources import ResourceColumns, ResourceTable
from grid.policies.interface import FEATURES, ClusterView, JobColumns, MachineColumns, Plan, Policy
from grid.protocol.admission import Request
from grid.protocol.forwarding import Ask, Award, Destination, Question
from grid.protocol.selection import Choice
from grid.results.machines import ClusterEntry, Directory

LEAD = """A [rule of forwarding](../tutorials/own-parts.md#a-rule-of-forwarding) is a function of a
`Question`, a [selection](../tutorials/own-parts.md#a-selection) chooses for a `Job` among the rows
of a `ResourceTable`, a rule of admission is a function of a `Request`. Names that end in `_us` are
in microseconds: points in time since the beginning of virtual time, or durations; so is `now`. VOs
and resources are numbers, in the order of the scenario. Parts read what they are given, and change
none of it. A [local policy](../tutorials/own-parts.md#a-local-policy) is a class as `Policy` says:
it is given a `ClusterView` and makes a `Plan`. A [metric](../tutorials/own-parts.md#a-metric) is
given `JobResults` and the `Directory` of the grid; one of a cluster over time also the number of
the cluster and the edges of the intervals."""

_OF_JOBS = {
    "number": "Its number; with `vo` it names the job.",
    "vo": "Name of the VO of its user.",
    "user": "Number of the user within the VO; -1: no user is named.",
    "submit_us": "When the user submitted it.",
    "cpus": "CPUs that it holds from start to end.",
    "estimate_us": "How long the user says that it runs, on a CPU of `reference_mips`. A local "
    "policy sees what `estimates` of its cluster tells it.",
    "run_us": "How long it truly runs there. A fair rule or selection does not look at it.",
    "deadline_us": "When it should have ended; a time that no run reaches if it has no deadline.",
    "reference_mips": "Speed of the CPU that `estimate_us` and `run_us` are for, in MIPS.",
    "licenses": "Bit mask of the licenses that it needs.",
    "input_mb": "Input that travels with it from VO to VO, in MB.",
    "ram_mb": "Memory of its machine that it holds, in MB.",
    "checkpointable": "Whether it keeps what it has done when it goes on on another machine.",
    "power": "Factor of the watts that a busy CPU draws.",
    "requirements": "What the user asks of the resource, each with its options and utilities.",
}

_OF_RESULTS = {
    name: _OF_JOBS[name] for name in ("user", "submit_us", "processors", "estimate_us", "power")
} | {"deadline_us": "When it should have ended; NEVER of `grid.model.time`: it has no deadline."}

_OF_WAITING_JOBS = _OF_RESULTS | {
    name: _OF_JOBS[name]
    for name in ("reference_mips", "licenses", "input_mb", "ram_mb", "checkpointable")
}

METHODS: Mapping[Any, tuple[str, ...]] = {
    Policy: ("plan",),
    ClusterView: ("fits", "fastest", "take", "give_back"),
}
"""What is called on them, or is to be written; the sentences are their docstrings."""

INPUTS: Mapping[Any, Mapping[str, str]] = {
    Question: {
        "job": "The job that is to be placed, a `Job`.",
        "choice": "What the selection of this VO takes for the best, a `Choice`.",
        "table": "What this VO knows of the resources of the grid, a `ResourceTable`.",
        "vo": "Number of the VO whose Local Scheduler asks.",
        "origin": "Number of the VO where the user submitted the job.",
        "ttl": "How many more times the job may be forwarded.",
        "hops": "How often it was sent from one VO to another.",
        "own_only": "Whether it has to stay in this VO.",
        "now": "Virtual time, in microseconds.",
        "barred": "Numbers of the VOs where it may not go: those that did not admit it and, where "
        "the protocol avoids loops, those that it left. `table` knows nothing of their resources.",
        "distances": "Latencies and bandwidth from this VO to others, a `Distances`.",
        "selection": "The selection of this VO. `question.utilities()` gives the utility of each "
        "resource, `question.local_choice()` which of the VO's own are best.",
        "rng": "The random stream of this Local Scheduler, a NumPy `Generator`: all chance.",
        "asked": "After an `Ask`: numbers of the VOs that were called about this job so far.",
        "bids": "After an `Ask`: the answers, each a `Bid`, in the order in which they came.",
        "pending": "After an `Ask`: how many calls may still be answered.",
    },
    Choice: {
        "free": "Row of the best resource that is free as far as is known; -1: there is none.",
        "anywhere": "Row of the best resource, free or not; -1: none will do.",
        "own": "Row of the best of the VO's own, free or not; -1: none will do.",
        "others": "Row of the best of other VOs, free or not; -1: none will do.",
    },
    Destination: {
        "row": "Row of `table` that gets the job; -1: none, and the job ends here.",
        "wait": "Whether it queues there if the resource is busy. If not, it is looked at anew.",
        "late": "Whether a job that queues at home can still be given to a VO that asks for work.",
    },
    Ask: {
        "vos": "Numbers of the VOs that are called for bids; the own one may be among them.",
        "wait_us": "How long to wait for answers; None: until all are there.",
        "enough": "It is over, too, when so many of them have something free; 0: that does not "
        "count.",
        "lease_us": "For how long who can holds a place for the job; 0: nobody does.",
        "queue": "Whether the others put the job in a queue, and answer when its turn has come.",
    },
    Award: {"bid": "Place in `question.bids` of the bid that gets the job, from 0."},
    Bid: {
        "call": "The call that it answers.",
        "vo": "Number of the VO that bids.",
        "resource": "Number of its best resource; -1: none will do, or the job is not admitted.",
        "utility": "What that resource is worth to the job, 0 to 1.",
        "free": "Whether it is free.",
        "held": "Whether it is held for the job.",
        "finish_us": "After how long the job is expected to end there, its way there not counted.",
    },
    Request: {
        "job": "The job of another VO that shall be assigned a resource of this one, a `Job`.",
        "jobs": "How many jobs of that VO are here: running, waiting, or with a place held.",
        "processors": "How many CPUs these have or ask for.",
        "assigned": "How many CPUs of this VO are promised to jobs of any VO.",
        "cpus": "How many CPUs this VO has.",
        "now": "Virtual time, in microseconds.",
    },
    ResourceTable: {
        "columns": "What does not change, a `ResourceColumns`.",
        "assigned_cpus": "CPUs that are promised to jobs, queued ones included. inf: no status has "
        "come; NaN: the job may not go there.",
        "backlog_s": "CPU seconds that these jobs still need, by their estimates; NaN where no "
        "selection or rule asks for it.",
        "observed_at_us": "The time that this status was told for; -inf: none has come.",
        "confirmed_us": "Nothing that happened up to then has changed the assigned CPUs.",
        "now": "When the table was made. `table.age_us` is how old each status is by then.",
    },
    ResourceColumns: {
        "vo": "Number of the VO that has the resource.",
        "number": "Number of the resource in its VO.",
        "cluster": "Number of its cluster in the VO.",
        "machine": "Number of the machine in the cluster; -1: the cluster as a whole.",
        "cpus": "Its CPUs.",
        "widest": "The most CPUs that one job may hold there.",
        "mips": "Speed of a CPU, in million instructions a second.",
        "operating_system": "Its place in the list of operating systems.",
        "architecture": "Its place in the list of architectures.",
        "ram_mb": "Memory, in MB.",
        "disk_mb": "Disk space, in MB.",
        "most_ram_mb": "The most memory that a job may hold there, in MB; inf: there is no limit.",
        "licenses": "Bit mask of the licenses of its cluster that a job may use there.",
    },
    Distances: {
        "vo": "Number of the VO that they are from.",
        "latency_us": "How long a message takes to each VO that is not in `links`.",
        "links": "Pairs of a VO and its latency, where that is another one.",
        "bandwidth_mbps": "Megabits a second for a job's input; None: no limit. "
        "`distances.hops_us(vos, megabytes)` adds both up.",
    },
    Job: _OF_JOBS,
    Policy: {
        "ignores": "An attribute that it need not have: a tuple of what it takes no account of, of "
        f"these words: {', '.join(f'`{word}`' for word in FEATURES)}.",
    },
    ClusterView: {
        "now": "Virtual time, in microseconds.",
        "machines": "The machines of the cluster, `MachineColumns`.",
        "free": "Free CPUs of each machine; none of one that is down.",
        "jobs": "The jobs of the cluster by their slots, `JobColumns`.",
        "queue": "Slots of jobs that wait, preempted ones included, in order of arrival.",
        "running": "Slots of jobs that run, in order of their expected ends.",
        "arrived": "Slots of jobs that came since the last plan; all of them are in `queue`.",
        "ended": "Slots of jobs that ended since the last plan, with their columns as they were.",
        "license_copies_free": "How many copies of each license are left.",
        "license_users": "How many running jobs of a machine use its copy of a license, of shape "
        "(machines, licenses).",
        "free_ram_mb": "Free memory of each machine, in MB; inf where there is no limit.",
    },
    JobColumns: _OF_WAITING_JOBS
    | {
        "serial": "Order of arrival at this cluster. It names a job; slots are used again.",
        "arrival_us": "When it came to this cluster.",
        "bound_machine": "The only machine where it may run; -1: any.",
        "machine": "Where it runs, or ran before it was preempted; -1: it never ran.",
        "start_us": "When it was last started; NEVER of `grid.model.time`: it never was.",
        "expected_end_us": "When a running job ends if its estimate is right.",
        "done_us": "How much of its estimate is behind it and kept, as of its last start or "
        "preemption. Below 0: it has outlived its estimate, and is expected to need more.",
    },
    MachineColumns: {
        "cpus": "CPUs of each machine.",
        "mips": "Speed of each of its CPUs, in million instructions a second.",
        "licenses": "Bit mask of the licenses whose software it can run.",
        "cpu_type": "Number of its type, as scenarios of Convergent Scheduling have it.",
        "speed_order": "All machines, the fastest first.",
        "ram_mb": "Memory, in MB; inf where there is no limit.",
    },
    Plan: {
        "start": "Pairs of a slot and a machine: these jobs start there.",
        "preempt": "Slots of running jobs that stop and wait again.",
        "reject": "Slots of waiting jobs that are rejected.",
        "kill": "Slots of running jobs that fail now.",
        "reserve": "Slot, machine and time of starts that were promised, for the record only.",
        "wake_us": "When to be asked again, even if nothing happens before.",
        "made": "False: there was nothing to do. Such plans are timed apart.",
    },
    JobResults: _OF_RESULTS
    | {
        "vo": "Number of the VO of its user.",
        "number": "Its number in that VO.",
        "placement": "Where it was sent, columns of a `JobPlacement`.",
        "outcome": "How it ended, columns of a `JobOutcome`.",
    },
    JobPlacement: {
        "assigned_us": "When it was assigned to the resource where it ran; -1: it did not run.",
        "executed_vo": "Number of the VO where it ran; -1: it did not.",
        "cluster": "Number of the cluster where it ran, among those of all VOs; -1: it did not.",
        "hops": "How often it was sent from VO to VO.",
        "utility": "What the resource is worth to it, 0 to 1; 0 if it did not run.",
    },
    Directory: {
        "vos": "Names of the VOs, by their numbers.",
        "clusters": "All clusters of the grid, each a `ClusterEntry`, by their numbers.",
    },
    ClusterEntry: {
        "vo": "Number of its VO.",
        "name": "Its name in the VO.",
        "cpus": "CPUs of each of its machines.",
        "gangs": "Whether it runs gangs.",
        "machines": "Its machines: `cpus`, `mips`, `watts_busy`, `watts_idle` and others.",
        "outages": "When which of its machines were down.",
        "external_scheduler": "Whether an external scheduler (Batsim) allocates the CPUs.",
    },
    JobOutcome: {
        "machine": "Number of the machine in its cluster; -1: it never started.",
        "state": "Its final state, a `JobState` of `grid.model.job`.",
        "start_us": "Its first start; -1: it never started.",
        "end_us": "Its last end; -1: it never started.",
        "preemptions": "How often it was preempted.",
        "restarts": "How often it began again from nothing.",
        "lost_us": "How much of `held_us` was lost to restarts, preemptions and boots.",
        "held_us": "How long it held its CPUs, over all its runs.",
        "watts_busy": "Mean watts of a busy CPU among those that it held.",
        "watts_idle": "Mean watts of an idle CPU among those that it held.",
    },
}
"""What each field means, by class.

Columns have the shape (resources,), (jobs,), (slots,) or (machines,)."""
_HIDDEN = ("tables", "_is_copied")
"""Fields that are for compiled code or for the class itself."""


def fields_of(kind: Any) -> list[str]:
    """The names of the fields of a class, in order."""
    if kind is Policy:
        return list(INPUTS[kind])
    if is_dataclass(kind):
        return [one.name for one in fields(kind) if one.name not in _HIDDEN]
    return list(kind._fields)


def inputs_page() -> str:
    """Every field of what parts are given and what they answer."""
    lines = [f"{MADE}# What parts are given\n\n{LEAD}\n"]
    for kind, known in INPUTS.items():
        name = kind.__name__
        about = inspect.getdoc(kind) or ""
        lines.append(f"(input-{name.lower()})=\n## {name}\n\n{markdown(about)}\n")
        lines += [f"`{field}`\n: {known[field]}\n" for field in fields_of(kind)]
        for method in METHODS.get(kind, ()):
            about = " ".join((inspect.getdoc(getattr(kind, method)) or "").split())
            lines.append(f"`{_called(kind, method)}`\n: {markdown(about)}\n")
    return "\n".join(lines)


def inputs() -> Iterator[tuple[str, str]]:
    """Each field with its sentence."""
    for kind, known in INPUTS.items():
        for name in fields_of(kind):
            yield f"{kind.__name__} {name}", known.get(name, "")
        for name in METHODS.get(kind, ()):
            yield f"{kind.__name__} {name}", inspect.getdoc(getattr(kind, name)) or ""


def _called(kind: Any, method: str) -> str:
    """How the method is called, and what it gives: `fits(slot, machine) -> bool`."""
    signature = inspect.signature(getattr(kind, method))
    given = [name for name in signature.parameters if name != "self"]
    return f"{method}({', '.join(given)}) -> {signature.return_annotation}"
