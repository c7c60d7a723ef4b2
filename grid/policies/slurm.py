"""Slurm's main scheduler and backfill scheduler, by the documentation of slurm.conf (22.05)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field, Strict

from grid.model.arrays import Bools, Floats, Ints
from grid.model.time import NEVER, SECOND_US, Time
from grid.policies.interface import ClusterView, JobColumns, MachineColumns, Plan
from grid.policies.multifactor import Multifactor, MultifactorSettings, Weight

MINUTE_US = 60 * SECOND_US
CHECK_US = SECOND_US // 2
"""Once a second, at this part of it, slurmctld looks whether the main scheduler is due. Backfill's
iterations begin with a second: in a real slurmctld both loops drift."""
WINDOW_US = 30 * SECOND_US
"""The ends of running jobs that backfill counts as one at first, as of `bf_window_linear`."""
ROUNDING = 1e-6
"""A CPU for which this share of its resources is missing can be used."""
Count = Annotated[int, Strict()]


class SlurmSettings(MultifactorSettings):
    """Parameters of slurm.conf (SchedulerParameters) under their names, in its units."""

    age_weight: Weight = 0.0
    """PriorityWeightAge"""
    fair_share_weight: Weight = 0.0
    """PriorityWeightFairshare"""
    default_queue_depth: Annotated[Count, Field(ge=0)] = 100
    """jobs that the main scheduler tests after an event"""
    sched_interval: Annotated[Count, Field(ge=1)] = 60
    """seconds between runs of the main scheduler over the whole queue"""
    batch_sched_delay: Annotated[Count, Field(ge=0)] = 3
    """minimum seconds between two such runs"""
    sched_min_interval: Annotated[Count, Field(ge=0)] = 2
    """minimum microseconds between two runs of the main scheduler"""
    cpus_per_node: Annotated[Count, Field(ge=1)] = 1
    """CPUs of each node; backfill reserves whole nodes for jobs"""
    bf_interval: Annotated[Count, Field(ge=1, le=10_800)] = 30
    """seconds between backfill iterations"""
    bf_window: Annotated[Count, Field(ge=1, le=43_200)] = 1440
    """minutes into the future for which backfill plans"""
    bf_resolution: Annotated[Count, Field(ge=1, le=3600)] = 60
    """resolution of planned starts and ends, in seconds"""
    bf_max_job_test: Annotated[Count, Field(ge=1, le=1_000_000)] = 500
    """jobs that a backfill iteration tests"""
    bf_max_job_start: Annotated[Count, Field(ge=0)] = 0
    """jobs that a backfill iteration starts; 0: no limit"""
    bf_max_job_user: Annotated[Count, Field(ge=0)] = 0
    """jobs of a user that a backfill iteration tests; 0: no limit"""
    bf_min_age_reserve: Annotated[Count, Field(ge=0, le=2_592_000)] = 0
    """seconds that a job must have waited to get a reservation"""
    bf_job_part_count_reserve: Annotated[Count, Field(ge=0, le=100_000)] = 0
    """number of jobs that get a reservation, by priority; 0: all"""


class Nodes:
    """The nodes of a cluster, with what running jobs leave of their CPUs and resources.

    Each has its share by CPUs of the resources of its machine. Jobs take resources in proportion to
    their CPUs.
    """

    def __init__(self, machines: MachineColumns, cpus_per_node: int) -> None:
        sizes = [
            [*[cpus_per_node] * (cpus // cpus_per_node), *filter(None, [cpus % cpus_per_node])]
            for cpus in machines.cpus.tolist()
        ]
        self.cpus: Ints = np.concatenate(sizes).astype(np.int64)
        self.machine = np.repeat(np.arange(len(sizes)), [len(one) for one in sizes])
        self.own = len(machines.resources) - machines.shared
        """How many resources are those of machines, the first ones."""
        share = self.cpus / machines.cpus[self.machine]
        self.amounts = machines.resources[: self.own, self.machine] * share
        """Of each resource on each node, shape (resources, nodes)."""
        self.free, self.left = self.cpus.copy(), self.amounts.copy()
        """The free CPUs of each node, shape (nodes,), and of the `amounts`."""
        self.held: dict[int, Ints] = {}
        """The CPUs of each running job on each node, by slot."""
        self._per_cpu: dict[int, Floats] = {}
        self.windows = [(*one, self._last(*one[::3])) for one in machines.windows.tolist()]

    def _last(self, machine: int, cpus: int) -> Bools:
        """The last nodes of a machine, up to that many CPUs."""
        own = self.machine == machine
        after = np.cumsum((self.cpus * own)[::-1])[::-1] - self.cpus
        last: Bools = own & (after < cpus)
        return last

    def reserved(self, jobs: JobColumns, slot: int, start: Time, end: Time) -> tuple[Bools, Time]:
        """The nodes that are reserved for other jobs in that time, and the first end of these."""
        found, until = np.zeros(len(self.cpus), np.bool_), NEVER
        for _, first, last, _, resource, nodes in self.windows:
            if first < end and start < last and (resource < 0 or jobs.resources[resource, slot]):
                found, until = found | nodes, min(until, last)
        return found, until

    def per_cpu(self, jobs: JobColumns, slot: int) -> Floats:
        amounts: Floats = jobs.resources[: self.own, slot] / jobs.processors[slot]
        return amounts

    def run(self, slot: int, cpus: Ints, jobs: JobColumns) -> None:
        self.held[slot], self._per_cpu[slot] = cpus, self.per_cpu(jobs, slot)
        self.free -= cpus
        self.left -= self.amounts_of(slot)

    def end(self, slot: int) -> None:
        self.left += self.amounts_of(slot)
        self.free += self.held.pop(slot)
        del self._per_cpu[slot]

    def amounts_of(self, slot: int) -> Floats:
        """The resources of a running job on each node, shape (resources, nodes)."""
        amounts: Floats = np.outer(self._per_cpu[slot], self.held[slot])
        return amounts


def usable(cpus: Ints, left: Floats, per_cpu: Floats) -> Ints:
    """How many of the CPUs of nodes a job can take, with its resources for each; shape (nodes,)."""
    for amount, on_nodes in zip(per_cpu.tolist(), left, strict=True):
        if amount:
            most = np.minimum(np.floor(on_nodes / amount + ROUNDING), cpus)
            cpus = most.astype(np.int64)
    return cpus


def placed(free: Ints, cpus: int) -> Ints | None:
    """The CPUs that a job takes of each node; None if there are too few.

    Of the sets of consecutive nodes with free CPUs, the smallest that is large enough, or else the
    largest, and others after it. Within a set, the node that fits best, or else nodes in order.
    """
    if free.sum() < cpus:
        return None
    taken, left = np.zeros_like(free), free.copy()
    while cpus > 0:
        has_some = np.zeros(len(left) + 2, np.bool_)
        has_some[1:-1] = left > 0
        edges = np.flatnonzero(has_some[1:] != has_some[:-1])
        sets = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
        sizes = [int(left[first:last].sum()) for first, last in sets]
        wide = [size for size in sizes if size >= cpus]
        first, last = sets[sizes.index(min(wide) if wide else max(sizes))]
        several = left[first:last]
        fitting = several[several >= cpus]
        if len(fitting):
            best = int(np.flatnonzero(several == fitting.min())[0])
            taken[first + best] = cpus
            return taken
        before = np.cumsum(several) - several
        taken[first:last] = np.clip(cpus - before, 0, several)
        cpus -= int(several.sum())
        left[first:last] = 0
    return taken


class NodeSpace:
    """The nodes that no planned job will use, in steps of time until the end of the window."""

    def __init__(self, now: Time, end: Time, nodes: int) -> None:
        self._begin = [now]
        self._end = end
        self._available = [np.ones(nodes, np.bool_)]

    def _steps(self) -> Iterator[tuple[Time, Time, Bools]]:
        ends = [*self._begin[1:], self._end]
        return zip(self._begin, ends, self._available, strict=True)

    def available(self, start: Time, end: Time, nodes: Bools) -> tuple[Bools, Time]:
        """The nodes available from start to end, and when others are, of these nodes; or NEVER."""
        found, later = nodes.copy(), NEVER
        steps = [step for step in self._steps() if step[1] > start]
        for (begin, last, available), after in zip(steps, [*steps, None][1:], strict=True):
            if later == NEVER and after and (nodes & after[2] & ~(found & available)).any():
                later = last
            if begin > end:
                break
            found &= available
        return found, later

    def are_available(self, start: Time, end: Time, nodes: Bools) -> bool:
        return all(
            bool(available[nodes].all())
            for begin, last, available in self._steps()
            if last > start and begin < end
        )

    def take(self, start: Time, end: Time, nodes: Bools) -> None:
        """Plan a job on these nodes."""
        for edge in (start, end):
            place = bisect_left(self._begin, edge)
            if self._begin[0] < edge < self._end and edge not in self._begin:
                self._begin.insert(place, edge)
                self._available.insert(place, self._available[place - 1].copy())
        for begin, available in zip(self._begin, self._available, strict=True):
            if start <= begin < end:
                available &= ~nodes
        for place in range(len(self._begin) - 1, 0, -1):
            if (self._available[place] == self._available[place - 1]).all():
                del self._begin[place], self._available[place]


class Slurm:
    """The two schedulers of Slurm, in order of priority."""

    ignores = ("one job per machine",)

    def __init__(self, settings: SlurmSettings) -> None:
        self._settings = settings
        self._nodes: Nodes | None = None
        self._ending: list[int] = []
        """Slots of the jobs that ended last: nodes confirm an end some time after it."""
        self._tested: list[int] = []
        """The queue for which backfill starts nothing until another job starts, ends or arrives."""
        self._priority = Multifactor(settings)
        self._main_us: Time = -NEVER
        """When the main scheduler ran last."""
        self._due_us: Time = NEVER
        """When it runs next, after a submission or an end."""
        self._left_us: Time = NEVER
        """The time of the last plan if it left jobs in the queue, else NEVER."""

    def plan(self, view: ClusterView, now: Time) -> Plan:
        settings = self._settings
        if self._nodes is None:
            self._nodes = Nodes(view.machines, settings.cpus_per_node)
        if self._ending or len(view.arrived):
            self._tested = []
        for slot in self._ending:
            self._nodes.end(slot)
        running = set(view.running.tolist())
        self._ending = [slot for slot in self._nodes.held if slot not in running]
        users, priorities = self._priority.ranked(view, now)
        order = np.argsort(-priorities, kind="stable")
        queue = view.queue[order].tolist()
        plan = Plan()
        user_of = dict(zip(queue, users[order].tolist(), strict=True))
        starts = Starts(view, self._nodes, plan, user_of, *self._priority.quotas(view))
        plan.reject += self._priority.beyond_limits(view)
        plan.reject += [
            slot
            for slot in view.arrived.tolist()
            if slot not in plan.reject and not starts.can_ever_run(slot)
        ]
        queue = [slot for slot in queue if slot not in plan.reject]
        if self._due_us < now:  # Nothing waited then.
            self._main_us, self._due_us = self._due_us, NEVER
        step_us = settings.sched_interval * SECOND_US
        before_us = _next(now - 1 - step_us, step_us, CHECK_US)
        if before_us > self._left_us:
            self._main_us = max(self._main_us, before_us)
        is_whole = now % step_us == CHECK_US
        if is_whole or now == self._due_us:
            self._main_us, self._due_us = now, NEVER
            self._main(queue if is_whole else queue[: settings.default_queue_depth], starts, now)
        if now % (settings.bf_interval * SECOND_US) == 0 and queue != self._tested:
            is_same_later = self.backfill(queue, starts, now)
            self._tested = queue if is_same_later else []
        if plan.start:
            self._tested = []
        self._priority.started(view, plan)
        if self._due_us == NEVER and (len(view.arrived) or len(view.ended)):
            delay_us = max(settings.batch_sched_delay * SECOND_US, settings.sched_min_interval)
            earliest = max(self._main_us + delay_us, now + 1)
            self._due_us = _next(earliest - 1, SECOND_US, CHECK_US)
        left = [slot for slot in queue if slot not in starts.slots]
        self._left_us = now if left else NEVER
        # If nothing runs, only a job that a scheduler has not tested yet can start before the end
        # of a reservation.
        goes_on = len(view.running) + len(plan.start) + len(view.ended) > 0
        later = now
        if not goes_on and all(view.fastest(slot) < 0 for slot in left):
            ends = view.machines.windows[:, 2]
            later = int(ends[ends > now].min(initial=NEVER)) - 1
        if left and later < NEVER - 1:
            plan.wake_us = min(
                self._due_us,
                _next(later, step_us, CHECK_US),
                _next(later, settings.bf_interval * SECOND_US),
            )
        return plan

    def _main(self, queue: list[int], starts: Starts, now: Time) -> None:
        """Start jobs in order, up to the first that does not fit; jobs over a limit are skipped."""
        blocked: set[int] = set()
        for slot in queue:
            machines = [one for one in starts.machines_of(slot) if one not in blocked]
            if not machines or slot in starts.slots or not starts.is_within_limits(slot):
                continue
            place = starts.place_now(slot, machines)
            if place is not None:
                starts.add(slot, place, now)
            elif self._may_reserve(starts.view, slot, now):
                blocked.update(one for one in machines if starts.is_waiting_for_ends(slot, one))

    def _may_reserve(self, view: ClusterView, slot: int, now: Time) -> bool:
        waited_us = now - int(view.jobs.arrival_us[slot])
        return waited_us >= self._settings.bf_min_age_reserve * SECOND_US

    def backfill(self, queue: list[int], starts: Starts, now: Time) -> bool:
        """Give each job the first start that delays no job before it; start those that can now.

        Returns whether iterations to come find the same starts if nothing else happens.
        """
        settings = self._settings
        is_same_later = settings.bf_min_age_reserve == 0 and not starts.nodes.windows
        window_us = settings.bf_window * MINUTE_US
        space = NodeSpace(now, now + window_us, len(starts.nodes.free))
        tested: dict[int, int] = {}
        begun = reserved = 0
        for slot in [one for one in queue if one not in starts.slots][: settings.bf_max_job_test]:
            user = starts.user_of[slot]
            tested[user] = tested.get(user, 0) + 1
            if settings.bf_max_job_user and tested[user] > settings.bf_max_job_user:
                continue
            if not starts.is_within_limits(slot):
                continue
            found = self._earliest(space, slot, starts, now)
            if found is None or found.start_us >= now + window_us:
                is_same_later = False
                continue
            if found.start_us <= now:
                starts.add(slot, found, now)
                begun += 1
                if begun == settings.bf_max_job_start:
                    break
            elif self._may_reserve(starts.view, slot, now):
                count = settings.bf_job_part_count_reserve
                if count and reserved >= count:
                    continue
                reserved += 1
                starts.reserve(slot, found)
                begin, end = self._rounded(found)
                end = max(end, max(begin, now) + settings.bf_resolution * SECOND_US)
                space.take(begin, end, found.cpus > 0)
        return is_same_later

    def _earliest(self, space: NodeSpace, slot: int, starts: Starts, now: Time) -> Placement | None:
        """The first start of a job on nodes that no planned job has; None if there is none."""
        best: Placement | None = None
        for machine in starts.machines_of(slot):
            limit_us, start = _limit_us(starts.view, slot, machine), now
            while start < NEVER:
                end = start + limit_us
                reserved, until = starts.nodes.reserved(starts.view.jobs, slot, start, end)
                nodes = (starts.nodes.machine == machine) & ~reserved
                available, later = space.available(start, end, nodes)
                later = min(later, until)
                found = starts.place(slot, machine, available, max(start, now))
                if found is None or found.start_us > max(later, now):
                    start = later
                elif found.start_us <= now or space.are_available(
                    *self._rounded(found), found.cpus > 0
                ):
                    best = found if best is None or found.start_us < best.start_us else best
                    break
                else:
                    start = found.start_us if found.start_us > start else later
        return best

    def _rounded(self, found: Placement) -> tuple[Time, Time]:
        """The planned start and end of a job, rounded down to the resolution."""
        step_us = self._settings.bf_resolution * SECOND_US
        end_us = found.start_us + found.limit_us
        return found.start_us // step_us * step_us, end_us // step_us * step_us


class Placement(NamedTuple):
    """When and where a job can start: its machine, its CPUs on each node, and its time limit."""

    start_us: Time
    machine: int
    cpus: Ints
    limit_us: Time


class Starts:
    """The starts of a plan so far, what runs then, and what is left of the limits of users."""

    def __init__(
        self,
        view: ClusterView,
        nodes: Nodes,
        plan: Plan,
        user_of: dict[int, int],
        jobs: Floats,
        cpus: Floats,
    ) -> None:
        self.view, self.user_of = view, user_of
        self.nodes, self._plan = nodes, plan
        self._jobs, self._cpus = jobs, cpus
        self.slots: dict[int, None] = {}
        machines = view.jobs.machine
        self._ends = [
            (int(view.jobs.start_us[slot]) + _limit_us(view, slot, int(machines[slot])), slot)
            for slot in nodes.held
        ]

    def is_within_limits(self, slot: int) -> bool:
        user = self.user_of[slot]
        return bool(self._jobs[user] >= 1 and self._cpus[user] >= self.view.jobs.processors[slot])

    def machines_of(self, slot: int) -> list[int]:
        """The machines for a job, with licenses and resources of the cluster; the fastest first."""
        view, own = self.view, self.nodes.own
        bound = int(view.jobs.bound_machine[slot])
        order: list[int] = view.machines.speed_order.tolist()
        shared = view.jobs.resources[own:, slot, None] <= view.free_resources[own:]
        return [
            one
            for one in (order if bound < 0 else [bound])
            if shared[:, one].all() and view.has_licenses(slot, one)
        ]

    def can_ever_run(self, slot: int) -> bool:
        """Whether a job fits on the nodes of any machine that it may run on."""
        bound = int(self.view.jobs.bound_machine[slot])
        machines = range(len(self.view.machines.cpus)) if bound < 0 else [bound]
        return any(self._placed_on(slot, self.nodes.machine == one) for one in machines)

    def is_waiting_for_ends(self, slot: int, machine: int) -> bool:
        """Whether a job that does not fit could start now if running jobs ended."""
        return self._placed_on(slot, self._unreserved(slot, machine))

    def _placed_on(self, slot: int, nodes: Bools) -> bool:
        """Whether a job fits on these nodes if nothing runs."""
        jobs, cpus = self.view.jobs, np.where(nodes, self.nodes.cpus, 0)
        able = usable(cpus, self.nodes.amounts, self.nodes.per_cpu(jobs, slot))
        return bool(able.sum() >= jobs.processors[slot])

    def _unreserved(self, slot: int, machine: int) -> Bools:
        """The nodes of a machine that are not reserved for others while a job would run."""
        view = self.view
        end = view.now + _limit_us(view, slot, machine)
        reserved, _ = self.nodes.reserved(view.jobs, slot, view.now, end)
        nodes: Bools = (self.nodes.machine == machine) & ~reserved
        return nodes

    def place_now(self, slot: int, machines: list[int]) -> Placement | None:
        for machine in machines:
            nodes = self._unreserved(slot, machine) & (self.view.free[machine] > 0)
            taken = self._placed(slot, np.where(nodes, self.nodes.free, 0), self.nodes.left)
            if taken is not None:
                limit_us = _limit_us(self.view, slot, machine)
                return Placement(self.view.now, machine, taken, limit_us)
        return None

    def _placed(self, slot: int, free: Ints, left: Floats) -> Ints | None:
        jobs = self.view.jobs
        able = usable(free, left, self.nodes.per_cpu(jobs, slot))
        return placed(able, int(jobs.processors[slot]))

    def place(self, slot: int, machine: int, available: Bools, start: Time) -> Placement | None:
        """When enough CPUs of the available nodes are free, if running jobs end at their limits.

        It is tested after all ends of a window, and then of windows of twice the time each. They
        are aligned with the first end, on a multiple of the first window. Whether another end is in
        the window is looked up after an end on these nodes only, for the end that comes next.
        """
        if not self._placed_on(slot, available):
            return None
        limit_us = _limit_us(self.view, slot, machine)
        # A machine that is down has no free CPUs.
        free = np.where(available & (self.view.free[machine] > 0), self.nodes.free, 0)
        left = self.nodes.left.copy()
        taken = self._placed(slot, free, left)
        if taken is not None:
            return Placement(start, machine, taken, limit_us)
        window_us, aligned_us, last_us = WINDOW_US, NEVER, NEVER
        ends = sorted(self._ends)
        nexts = [*(end_us for end_us, _ in ends), NEVER][1:]
        for (end_us, running), next_us in zip(ends, nexts, strict=True):
            held = self.nodes.held[running]
            if held[available].any():
                if aligned_us == NEVER:
                    aligned_us = _next(end_us, window_us)
                last_us = end_us
                free += np.where(available, held, 0)
                if self.nodes.own:
                    left += self.nodes.amounts_of(running)
            elif next_us < NEVER:
                continue
            if next_us == NEVER or next_us > aligned_us + window_us:
                window_us *= 2
                while aligned_us + window_us < next_us < NEVER:
                    window_us *= 2
                taken = self._placed(slot, free, left)
                if taken is not None:
                    start = max(start, last_us, self.view.now + SECOND_US)
                    return Placement(start, machine, taken, limit_us)
        return None

    def add(self, slot: int, place: Placement, now: Time) -> None:
        user = self.user_of[slot]
        self.nodes.run(slot, place.cpus, self.view.jobs)
        self.view.take(slot, place.machine)
        self._plan.start.append((slot, place.machine))
        self._ends.append((now + place.limit_us, slot))
        self.slots[slot] = None
        self._jobs[user] -= 1
        self._cpus[user] -= self.view.jobs.processors[slot]

    def reserve(self, slot: int, place: Placement) -> None:
        self._plan.reserve.append((slot, place.machine, place.start_us))  # type: ignore[union-attr]


def _limit_us(view: ClusterView, slot: int, machine: int) -> Time:
    """The estimate of a job on a machine, rounded up to minutes."""
    jobs = view.jobs
    speed = float(jobs.reference_mips[slot]) / float(view.machines.mips[machine])
    return _up(max(int(np.ceil(int(jobs.estimate_us[slot]) * speed)), 1), MINUTE_US)


def _up(time: Time, step_us: Time) -> Time:
    return -(-time // step_us) * step_us


def _next(now: Time, step_us: Time, phase_us: Time = 0) -> Time:
    """The first multiple of the step, plus the phase, after `now`."""
    return ((now - phase_us) // step_us + 1) * step_us + phase_us


def slurm(settings: SlurmSettings) -> Slurm:
    """Slurm's main and backfill schedulers with the parameters of slurm.conf.

    The main scheduler starts jobs in order of priority, up to the first that does not fit, at most
    a second after a submission or an end, and `batch_sched_delay` after its last run. Every
    `bf_interval` seconds the backfill scheduler gives each job the first start that delays no job
    of higher priority, based on time limits, and starts those that can start at once.

    | Slurm | here |
    | --- | --- |
    | main scheduler after submissions and ends, `batch_sched_delay`, `sched_interval` | modelled |
    | backfill: interval, window, resolution, queue depth and limits | modelled |
    | backfill plans jobs on whole nodes, and counts ends of running jobs in groups | modelled |
    | nodes of a job (`select/cons_tres`, `CR_CPU`, `--ntasks`) | best fit, nodes of equal CPUs |
    | multifactor priority, limits by user | as in `multifactor`; weights are 0 by default |
    | time limits in minutes | plans round estimates up to minutes |
    | partitions, if they share no nodes | machines, with jobs that are bound to one |
    | GRES and memory of nodes (`CR_CPU_Memory`) | shares of those of machines, by CPUs of jobs |
    | licenses | jobs without theirs are skipped; also resources of the cluster |
    | reservations, for maintenance, users, accounts | the last nodes of a machine, whole ones |
    | limits of QOS, preemption, arrays, topology | not modelled |
    | run time of the schedulers themselves, RPC limits (`bf_max_time`, `bf_continue`) | 0 |
    | `CompleteWait`, epilogs, launch of jobs | 0 |
    """
    return Slurm(settings)
