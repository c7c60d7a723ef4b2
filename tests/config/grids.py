"""Small grids for tests, and transcripts of their messages."""

from __future__ import annotations

from typing import Any

from grid.config.build import Grid
from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.config.wrapped import entities_of
from grid.kernel.entity import Context
from grid.kernel.process import LogicalProcess
from grid.model import messages as m
from grid.model.job_results import JobResults, columns_of, in_order
from grid.model.time import NEVER


def grid_of(**scenario: Any) -> Grid:
    """The grid of a scenario that is given as in YAML."""
    scenario.setdefault("name", "test")
    return realize(Scenario.model_validate(scenario), "test.yaml")[0]


def vo(
    name: str,
    cpus: int,
    jobs: list[dict[str, Any]] | None = None,
    system: str = "linux",
    **more: Any,
) -> dict[str, Any]:
    """A VO of one machine with `cpus` CPUs, and the jobs of its users."""
    section: dict[str, Any] = {
        "name": name,
        "clusters": [{"name": "c", "machines": [{"cpus": cpus, "operating_system": system}]}],
        **more,
    }
    if jobs is not None:
        section["workload"] = {"jobs": jobs}
    return section


def run(grid: Grid) -> JobResults:
    """The job table of a run in one process."""
    process = LogicalProcess(
        entities_of(grid, grid.names), grid.network, grid.seed, grid.first_rows()
    )
    process.start()
    process.advance(NEVER)
    return in_order([columns_of(process.records)])


class _Overheard:
    """An entity whose received messages are recorded."""

    def __init__(self, name: str, entity: Any, lines: list[str], directory: bool) -> None:
        self.name, self.entity, self.lines, self.directory = name, entity, lines, directory

    def start(self, ctx: Context) -> None:
        self.entity.start(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if self.directory or not isinstance(
            message, (m.JoinVo, m.LeaveVo, m.LocalStatus, m.QueuedReservations)
        ):
            self.lines.append(f"{ctx.now:>9} {sender} -> {self.name}: {_words(message)}")
        self.entity.handle(ctx, sender, message)

    def timeout(self, ctx: Context, timer: str) -> None:
        self.entity.timeout(ctx, timer)


def transcript(grid: Grid, directory: bool = False) -> list[str]:
    """A line for each message: microseconds, sender, receiver, content.

    What concerns membership and a VO's own status only with `directory`.
    """
    lines: list[str] = []
    entities = {
        name: _Overheard(name, entity, lines, directory)
        for name, entity in entities_of(grid, grid.names).items()
    }
    process = LogicalProcess(entities, grid.network, grid.seed, grid.first_rows())
    process.start()
    process.advance(NEVER)
    return lines


_WORDS = {
    m.SubmitJob: "submit {job.number}",
    m.QueryResources: "what is free for {key[1]}?",
    m.Assigned: "assigned {key[1]}",
    m.Refused: "refused {key[1]}",
    m.RunJob: "run {job.number} on cluster {cluster} machine {machine}",
    m.QueryLoad: "load, for {job.number}?",
    m.ClusterChosen: "{key[1]} went to cluster {cluster}",
    m.JobEnded: "{key[1]} ended, state {outcome.state}",
    m.ForwardJob: "forward {job.number} to resource {resource}, ttl {ttl}",
    m.RequestReservation: "call {call[1]} of {call[0]}: a place for {job.number}?",
    m.ReleaseReservation: "call {call[1]}: not needed",
    m.LeaseExpired: "call {call[1]}: its lease is over",
    m.WithdrawJob: "give {key[1]} back",
    m.NotAdmitted: "{key[1]} is not taken in",
    m.JobDone: "{key[1]} done here, hops {placement.hops}",
    m.SubmissionFail: "{key[1]} failed, state {state}, hops {hops}",
    m.LeaveVo: "VO {vo} leaves",
    m.Probe: "probe {number}",
}


def _words(message: Any) -> str:  # noqa: PLR0911, PLR0912
    match message:
        case m.Resources(key, table):
            heard = ", ".join(
                f"{a:g}/{c:g}" for a, c in zip(table.assigned_cpus, table.columns.cpus, strict=True)
            )
            return f"for {key[1]}: assigned {heard}"
        case m.AssignJob(job, resource, wait):
            return f"assign {job.number} to {resource}" + ", queue it" * wait
        case m.Load(key, _, load, able):
            return f"load {load:g}" + ("" if able else f", cannot run {key[1]}")
        case m.CallForBids(job, call):
            lease = f", lease {message.lease_us} us" if message.lease_us else ""
            return f"call {call[1]}: bids for {job.number}{lease}" + ", in turn" * message.queue
        case m.Bid(call, _, resource):
            place = "held" if message.held else "free" if message.free else "busy"
            place = place if resource >= 0 else "no"
            return f"call {call[1]}: {place}, {message.finish_us} us"
        case m.ReservationReply(call):
            place = "held" if message.held else "free" if message.free else "busy"
            return f"call {call[1]}: {place if message.admitted else 'not admitted'}"
        case m.RequestWork(vo, table):
            return f"VO {vo} asks for work, assigned {table.assigned_cpus.tolist()}"
        case m.WorkReply(key):
            return f"{key[1]} comes" if key else "no work"
        case m.AdmissionQueueUpdate(key, waits):
            return f"{key[1]} waits" if waits else f"{key[1]} waits no longer"
        case m.WithdrawReply(key, given):
            return f"{key[1]} given back" if given else f"{key[1]} is not to be had"
        case m.ReturnJob(job):
            stay = ", to stay" * message.stay
            return f"{job.number} refused by VO {message.refused_by}, ttl {message.ttl}{stay}"
        case m.JoinVo(vo, resources):
            return f"VO {vo} joins with {len(resources)} resources"
        case m.LocalStatus(assigned):
            return f"assigned {assigned.tolist()}"
        case m.QueuedReservations(own, guests):
            return f"in line before own {own.tolist()}, before guests {guests.tolist()}"
        case m.StatusUpdate(entries, asks):
            return f"news of {[entry.vo for entry in entries]}" + ", and yours?" * asks
        case m.ProbeReply(number, entry):
            return f"probe {number}: VO {entry.vo} has {entry.rows[:, 0].tolist()}"
    return _WORDS[type(message)].format(**message._asdict())
