"""Why a job waits in a cluster: what it lacks there, and whom it is behind."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from grid.model.cluster_facts import ClusterFacts
from grid.model.job import JobKey
from grid.model.time import Time
from grid.results.history.cluster_log import ClusterState, Stay

NOT_KEPT = (
    "This run ended before all its jobs had: it is not kept which of the others were running, "
    "and so not what a job waited for."
)
NAMED = 3
"""So many jobs are named; the others are counted."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that the job needs and that is not free: `cpus`, `memory_mb`, `license NAME`,
    `machine`, which is down, or `cpus_up`: so many of the CPUs of a cluster for gangs are up."""

    what: str
    needed: float
    free: float


@dataclass(frozen=True, slots=True)
class WhyWaiting:
    """Why a job waits at a moment.

    `machine` comes closest to what it needs; -1 where no machine of the cluster could ever do.
    There it `lacks` something, or nothing: then it waits for its turn, by the policy's order or
    for what the policy keeps free for others. `holders` run on that machine, those that started
    first before others; nobody does while it is down. `ahead` came to the cluster before the job
    and wait, too: many policies do not start jobs in that order. Where the cluster runs `gangs`,
    all of it counts as one machine.
    """

    key: JobKey
    time_us: Time
    policy: str
    processors: int
    ram_mb: float
    licenses: tuple[str, ...]
    machine: int
    lacks: tuple[Lack, ...]
    holders: tuple[JobKey, ...]
    ahead: tuple[JobKey, ...]
    gangs: bool = False

    def sentences(self) -> list[str]:
        """The same in words."""
        where = "in the cluster" if self.gangs else "on one machine"
        place = "The cluster" if self.gangs else f"Machine {self.machine}"
        said = [f"It needs {listed(self._needs())} {where}."]
        if self.machine < 0:
            said.append("No machine of the cluster could ever run it.")
        elif self.lacks:
            closest = place if self.gangs else f"{place}, which comes closest,"
            said += [_in_words(one, self.machine, closest) for one in self.lacks]
        elif self.ahead:
            said.append(
                f"{place} has all of that free: policy {self.policy} keeps it for others, or did "
                "not look at this job yet."
            )
        else:
            said.append(
                f"{place} has all of that free, and nobody who waits came before: policy "
                f"{self.policy} keeps it for others, or plans at another moment."
            )
        if self.lacks and self.holders:
            runs = "runs" if len(self.holders) == 1 else "run"
            said.append(f"There {runs} {_named(self.holders)}.")
        if self.ahead:
            wait = "waits" if len(self.ahead) == 1 else "wait"
            said.append(
                f"J{_named(self.ahead)[1:]} came before it and {wait}, too; whose turn it is, "
                f"policy {self.policy} decides."
            )
        return said

    def _needs(self) -> list[str]:
        needs = [f"{self.processors} CPU{'' if self.processors == 1 else 's'}"]
        needs += [f"{self.ram_mb:g} MB of memory"] if self.ram_mb else []
        return [*needs, *(f"license {name}" for name in self.licenses)]


def why_waiting(key: JobKey, state: ClusterState) -> WhyWaiting | None:
    """Why the job waits in that cluster; None where it does not.

    Of several machines that could run it, the one that lacks fewest CPUs, then least memory, then
    the first one is looked at.
    """
    places = [place for place, one in enumerate(state.waiting) if one.key == key]
    if not places:
        return None
    place = places[0]
    job, facts = state.waiting[place], state.facts
    bound = range(len(facts.cpus)) if job.bound < 0 else (job.bound,)
    able = [machine for machine in bound if _could_run(job, facts, machine)]
    lacks = {machine: _lacks(job, state, machine) for machine in able}
    closest = min(able, key=lambda machine: _distance(lacks[machine]), default=-1)
    there = [one for one in state.running if facts.gangs or one.machine == closest]
    if state.is_down(closest) or state.cpus_down():
        # Events do not tell which gangs ran on the CPUs that are down.
        there = []
    return WhyWaiting(
        key,
        state.time_us,
        facts.policy,
        job.processors,
        0.0 if facts.gangs else job.ram_mb,
        tuple(name for bit, (name, _) in enumerate(facts.licenses) if job.licenses >> bit & 1),
        closest,
        lacks.get(closest, ()),
        tuple(one.key for one in sorted(there, key=lambda one: one.start_us)),
        tuple(one.key for one in state.waiting[:place]),
        facts.gangs,
    )


def _could_run(job: Stay, facts: ClusterFacts, machine: int) -> bool:
    """Whether the machine could run the job when nothing else runs."""
    if facts.gangs:
        return job.processors <= facts.cpus[machine]
    memory = facts.ram_mb[machine] == 0 or job.ram_mb <= facts.ram_mb[machine]
    licensed = job.licenses & ~facts.machine_licenses[machine] == 0
    return job.processors <= facts.cpus[machine] and memory and licensed


def _distance(lacks: tuple[Lack, ...]) -> tuple[float, ...]:
    amounts = {one.what: one.needed - one.free for one in lacks}
    rest = len([what for what in amounts if what not in ("cpus", "memory_mb")])
    return (rest, amounts.get("cpus", 0.0), amounts.get("memory_mb", 0.0))


def _lacks(job: Stay, state: ClusterState, machine: int) -> tuple[Lack, ...]:
    facts = state.facts
    if down := state.cpus_down():
        return (Lack("cpus_up", facts.cpus[machine], facts.cpus[machine] - down),)
    if state.is_down(machine):
        return (Lack("machine", 1, 0), *_missing_licenses(job, state, machine))
    here = [one for one in state.running if facts.gangs or one.machine == machine]
    found = []
    busy = sum(one.processors for one in here)
    if facts.one_job_a_machine and here:
        busy = facts.cpus[machine]
    free = max(0, facts.cpus[machine] - busy)
    if free < job.processors:
        found.append(Lack("cpus", job.processors, free))
    if job.ram_mb and not facts.gangs and facts.ram_mb[machine]:
        free_mb = _kilobytes(facts.ram_mb[machine]) - sum(_kilobytes(one.ram_mb) for one in here)
        if free_mb < _kilobytes(job.ram_mb):
            found.append(Lack("memory_mb", job.ram_mb, max(0.0, free_mb)))
    return (*found, *_missing_licenses(job, state, machine))


def _missing_licenses(job: Stay, state: ClusterState, machine: int) -> tuple[Lack, ...]:
    """Licenses of which no copy is free; a copy that its machine holds already can be shared."""
    found = []
    for number, (name, copies) in enumerate(state.facts.licenses):
        if job.licenses >> number & 1:
            users = {one.machine for one in state.running if one.licenses >> number & 1}
            if machine not in users and len(users) >= copies:
                found.append(Lack(f"license {name}", 1, 0))
    return tuple(found)


def _kilobytes(megabytes: float) -> float:
    """Megabytes to the next whole kilobyte, as clusters count them."""
    return ceil(megabytes * 1024) / 1024


def _named(jobs: tuple[JobKey, ...]) -> str:
    """The first of the jobs by name, and how many there are besides."""
    named = [f"job {number} of {vo}" for vo, number in jobs[:NAMED]]
    more = len(jobs) - len(named)
    return f"{', '.join(named)}{f' and {more} more' if more else ''}"


def listed(things: list[str]) -> str:
    """The things in words: a, b and c."""
    *most, last = things
    return f"{', '.join(most)} and {last}" if most else last


def _in_words(lack: Lack, machine: int, closest: str) -> str:
    if lack.what == "machine":
        return f"{closest} is down."
    if lack.what == "cpus_up":
        return f"Of its {lack.needed:g} CPUs, {lack.free:g} are up."
    if lack.what == "cpus":
        return f"{closest} has {lack.free:g} CPU{'' if lack.free == 1 else 's'} free."
    if lack.what == "memory_mb":
        return f"It needs {lack.needed:g} MB; machine {machine} has {lack.free:g} MB free."
    return f"No copy of {lack.what} is free."
