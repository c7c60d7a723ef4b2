"""Inputs and outputs of plugins, field by field, for the reference."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from key_words import MADE, markdown

from grid.model.job import Job, JobOutcome, JobRequest, dtypes
from grid.model.job_results import JobPlacement, JobResults
from grid.model.messages import Bid
from grid.model.platform import Distances
from grid.model.resources import ResourceColumns, ResourceTable
from grid.policies.features import FEATURES
from grid.policies.interface import ClusterView, JobColumns, MachineColumns, Plan, Policy
from grid.protocol.admission import Request
from grid.protocol.forwarding import Ask, Award, Destination, Question
from grid.protocol.selection import Choice
from grid.results.machines import ClusterEntry, Directory

LEAD = """A [forwarding policy](../tutorials/own-plugin.md#a-forwarding-policy) receives a
`Question`, a [selection](../tutorials/own-plugin.md#a-selection) chooses a row of a `ResourceTable`
for a `Job`, and an admission policy receives a `Request`. Values whose names end in `_us` are in
microseconds of virtual time, and so is `now`. VOs and resources are numbered in the order of the
scenario. Plugins must not change their inputs. A [local
policy](../tutorials/own-plugin.md#a-local-policy) is a class with the methods of `Policy`: it
receives a `ClusterView` and returns a `Plan`. A [metric](../tutorials/own-plugin.md#metrics)
receives `JobResults` and the `Directory` of the grid; a cluster metric also receives the number of
the cluster and the edges of the intervals."""

_OF_JOBS = {one.name: one.metadata["key"] for one in fields(JobRequest)} | {
    "number": "Its number within the VO.",
    "vo": "Name of the VO of its user.",
    "submit_us": "When the user submitted it.",
    "processors": "CPUs that it holds from start to end.",
    "estimate_us": "Estimated run time on a CPU of `reference_mips`. A local policy receives the "
    "value that `estimates` of its cluster defines.",
    "run_us": "Actual run time on this CPU. Plugins should not use it.",
    "deadline_us": "Deadline; if there is none, a time that no run reaches.",
    "cancel_us": (
        "Time at which its user cancels it if it has not started. Plugins should not use it."
    ),
    "predicted_us": "Expected run time at the same speed, instead of the estimate; 0: none.",
    "reference_mips": "Speed of the CPU to which `estimate_us` and `run_us` refer, in MIPS.",
    "licenses": "Bit mask of the licenses that it needs.",
    "resources": "Pairs of a resource, including memory (`ram_mb`), and the amount that it holds.",
    "sizes": "Sizes of a moldable job, the requested one first.",
    "requirements": "Requirements with their options and utilities.",
    "data": "Pairs of a VO and the megabytes of predecessors' output that it reads from there.",
}

_OF_TABLES = {name: _OF_JOBS[name] for name in dtypes(JobRequest)} | {
    "deadline_us": "Deadline; NEVER of `grid.model.time` if there is none.",
    "resources": "Amounts that it holds of each resource, shape (resources, slots).",
}

METHODS: Mapping[Any, tuple[str, ...]] = {
    Policy: ("plan",),
    ClusterView: ("fits", "fastest", "take", "give_back"),
}
"""Methods that are listed, with their docstrings."""

INPUTS: Mapping[Any, Mapping[str, str]] = {
    Question: {
        "job": "The job to place, a `Job`.",
        "choice": "The best resources according to this VO's selection, a `Choice`.",
        "table": "Known resources of the grid, a `ResourceTable`.",
        "vo": "Number of the VO of this Local Scheduler.",
        "origin": "Number of the VO where the user submitted the job.",
        "ttl": "Remaining TTL.",
        "hops": "Number of times that it was forwarded.",
        "own_only": "Whether it must stay in this VO.",
        "now": "Virtual time, in microseconds.",
        "barred": "Numbers of the VOs that it must avoid: those that did not admit it and, with "
        "`avoid_loops`, those that it left. `table` excludes their resources.",
        "distances": "Latencies and bandwidth from this VO to others, a `Distances`.",
        "selection": "The selection of this VO. `question.utilities()` gives the utility of each "
        "resource, `question.local_choice()` the best local ones.",
        "rng": "The random stream of this Local Scheduler, a NumPy `Generator`.",
        "asked": "After an `Ask`: numbers of the VOs that were called for this job.",
        "bids": "After an `Ask`: the replies, each a `Bid`, in order of arrival.",
        "pending": "After an `Ask`: number of calls without a reply.",
    },
    Choice: {
        "free": "Row of the best resource that is free according to the known state; -1 if none.",
        "anywhere": "Row of the best resource, free or not; -1 if none is eligible.",
        "own": "Row of the VO's own best resource, free or not; -1 if none is eligible.",
        "others": "Row of the best resource of other VOs, free or not; -1 if none is eligible.",
    },
    Destination: {
        "row": "Row of `table` for the job; -1 ends the job.",
        "wait": (
            "Whether it queues there if the resource is busy; otherwise the scheduler there "
            "decides."
        ),
        "late": "Whether another VO can still pull a locally queued job.",
    },
    Ask: {
        "vos": "Numbers of the VOs to call for bids, possibly including this one.",
        "wait_us": "Time to wait for replies; None: until all have arrived.",
        "enough": "Number of bids with a free resource after which the call ends; 0: no limit.",
        "lease_us": "Duration of the reservation by each bidder; 0: none.",
        "queue": "Whether bidders queue the request, and reply when it reaches the head.",
    },
    Award: {"bid": "Index in `question.bids` of the bid that gets the job."},
    Bid: {
        "call": "Number of the call.",
        "vo": "Number of the VO that bids.",
        "resource": "Number of its best eligible resource; -1 if there is none.",
        "utility": "Utility of that resource for the job, 0 to 1.",
        "free": "Whether it is free.",
        "held": "Whether it is reserved for the job.",
        "finish_us": "Expected time to completion there, without the transfer.",
    },
    Request: {
        "job": "The job of another VO, a `Job`.",
        "jobs": "Jobs of that VO here: running, queued, or with a reservation.",
        "processors": "CPUs that they hold or request.",
        "assigned": "Assigned CPUs of this VO, for jobs of all VOs.",
        "cpus": "CPUs of this VO.",
        "now": "Virtual time, in microseconds.",
    },
    ResourceTable: {
        "columns": "Static properties, a `ResourceColumns`.",
        "assigned_cpus": "CPUs assigned to running and queued jobs. inf: no status; NaN: the job "
        "may not go there.",
        "backlog_s": "Remaining CPU seconds of these jobs, as estimated; NaN unless a plugin "
        "needs it.",
        "observed_at_us": "Time of this status; -inf: none yet.",
        "confirmed_us": "Time up to which the assigned CPUs are known not to have changed.",
        "held": "Amounts of resources assigned to jobs, by name.",
        "now": "Time of the table. `table.age_us` is the age of each status.",
        "has_own_dispatches": "Whether the assigned CPUs include jobs that this VO has sent since.",
    },
    ResourceColumns: {
        "vo": "Number of its VO.",
        "number": "Number of the resource in its VO.",
        "cluster": "Number of its cluster in the VO.",
        "machine": "Number of the machine in the cluster; -1 for a whole cluster.",
        "cpus": "Its CPUs.",
        "widest": "Maximum CPUs of one job.",
        "mips": "Speed of a CPU, in million instructions per second.",
        "operating_system": "Index in the list of operating systems.",
        "architecture": "Index in the list of architectures.",
        "ram_mb": "Memory, in MB.",
        "disk_mb": "Disk space, in MB.",
        "licenses": "Bit mask of the licenses of its cluster available there.",
        "resources": "Maximum amount per job, by name, including memory (`ram_mb`).",
        "totals": "Total amount that jobs there may hold, by name.",
    },
    Distances: {
        "vo": "Number of the VO from which distances are measured.",
        "latency_us": "Latency to each VO that is not in `links`.",
        "links": "Pairs of a VO and its latency, if different.",
        "bandwidth_mbps": "Megabits per second for a job's input; None: no limit. "
        "`distances.hops_us(vos, megabytes, data)` is the transfer time of a job.",
    },
    Job: _OF_JOBS,
    Policy: {
        "ignores": "Optional attribute: a tuple of features that it does not support, of "
        f" {', '.join(f'`{word}`' for word in FEATURES)}."
    },
    ClusterView: {
        "now": "Virtual time, in microseconds.",
        "machines": "The machines of the cluster, `MachineColumns`.",
        "free": "Free CPUs of each machine; 0 if it is down.",
        "jobs": "The jobs of the cluster by their slots, `JobColumns`.",
        "queue": "Slots of waiting jobs, including preempted ones, in order of arrival.",
        "running": "Slots of running jobs, by expected end.",
        "arrived": "Slots of jobs that arrived since the last plan; also in `queue`.",
        "ended": "Slots of jobs that ended since the last plan.",
        "license_copies_free": "Free copies of each license.",
        "license_users": "Running jobs of a machine that share its copy of a license; shape "
        "(machines, licenses).",
        "free_resources": "Free amounts, shape (resources, machines); inf: no limit.",
    },
    JobColumns: _OF_TABLES
    | {
        "serial": "Order of arrival at this cluster. Identifies a job, as slots are reused.",
        "arrival_us": "Arrival at this cluster.",
        "bound_machine": "Machine to which it is bound; -1: none.",
        "machine": "Machine where it runs, or ran before a preemption; -1: none.",
        "start_us": "Last start; NEVER of `grid.model.time` if none.",
        "expected_end_us": "Expected end of a running job.",
        "done_us": "Completed part of its estimate as of its last start or preemption. "
        "Negative if it has exceeded its estimate.",
        "sizes": "Sizes of a moldable job until its first start, then -1; 0: it is rigid.",
        "requested_estimate_us": "`estimate_us` on the CPUs that it requests.",
        "size_table": "CPUs, factor of the run time and amounts of resources of each size.",
    },
    MachineColumns: {
        "cpus": "CPUs of each machine.",
        "mips": "Speed of each of its CPUs, in million instructions per second.",
        "licenses": "Bit mask of the licenses that it supports.",
        "cpu_type": "CPU type, for Convergent Scheduling.",
        "speed_order": "Machines in order of decreasing speed.",
        "resources": "Amounts, shape (resources, machines); inf: no limit.",
        "resource_names": "Names of the resources; those that all machines share come last.",
        "shared": "Number of resources that all machines share.",
        "windows": "Machine, start, end, CPUs and resource of each reservation.",
        "padding": "CPUs that `one_job_per_machine` adds to each machine, and to each job.",
    },
    Plan: {
        "start": "Pairs of a slot and a machine where the job starts.",
        "preempt": "Slots of running jobs to preempt.",
        "reject": "Slots of waiting jobs to reject.",
        "kill": "Slots of running jobs to kill.",
        "reserve": "Slot, machine and start of reservations, for information only.",
        "wake_us": "Time of the next plan if no event occurs before it.",
        "made": "False if there was nothing to do; such plans are timed separately.",
    },
    JobResults: _OF_TABLES
    | {
        "vo": "Number of the VO of its user.",
        "number": "Its number in that VO.",
        "requested": "CPUs that it requested.",
        "placement": "Placement, columns of a `JobPlacement`.",
        "outcome": "Outcome, columns of a `JobOutcome`.",
    },
    JobPlacement: {
        "assigned_us": "Assignment to the resource where it ran; -1 if it did not run.",
        "executed_vo": "Number of the VO where it ran; -1 if it did not.",
        "cluster": "Number of the cluster where it ran, among those of all VOs; -1 if it did not.",
        "hops": "Number of times that it was forwarded.",
        "utility": "Utility of the resource, 0 to 1; 0 if it did not run.",
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
        "outages": "Outages of its machines.",
        "external_scheduler": "Whether an external scheduler (Batsim) allocates the CPUs.",
    },
    JobOutcome: {
        "machine": "Number of the machine in its cluster; -1 if it never started.",
        "state": "Its final state, a `JobState` of `grid.model.job`.",
        "start_us": "First start; -1 if none.",
        "end_us": "Last end; -1 if it never started.",
        "preemptions": "Number of preemptions.",
        "restarts": "Number of restarts from zero.",
        "lost_us": "Part of `held_us` lost to restarts, preemptions and boots.",
        "held_us": "Time for which it held its CPUs.",
        "processors": "CPUs of a moldable job; 0: those requested.",
        "watts_busy": "Mean power of its CPUs when busy.",
        "watts_idle": "Mean power of its CPUs when idle.",
    },
}
"""Descriptions of fields by class.

Columns have the shape (resources,), (jobs,), (slots,) or (machines,)."""
_HIDDEN = ("tables", "_is_copied", "_held")
"""Fields that are for compiled code or for the class itself."""


def fields_of(kind: Any) -> list[str]:
    """The names of the fields of a class, in order."""
    if kind is Policy:
        return list(INPUTS[kind])
    if is_dataclass(kind):
        return [one.name for one in fields(kind) if one.name not in _HIDDEN]
    return list(kind._fields)


def inputs_page() -> str:
    """The page of all fields."""
    lines = [f"{MADE}# Inputs of plugins\n\n{LEAD}\n"]
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
