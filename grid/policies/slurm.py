"""Slurm's main scheduler and backfill scheduler, by the documentation of slurm.conf (22.05)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field, Strict

from grid.model.arrays import Floats
from grid.model.time import NEVER, SECOND_US, Time
from grid.policies.interface import ClusterView, Plan
from grid.policies.multifactor import Multifactor, MultifactorSettings, Weight

MINUTE_US = 60 * SECOND_US
Count = Annotated[int, Strict()]


class SlurmSettings(MultifactorSettings):
    """Parameters of slurm.conf (SchedulerParameters) under their names, in its units."""

    age_weight: Weight = Field(default=0.0, description="PriorityWeightAge")
    fair_share_weight: Weight = Field(default=0.0, description="PriorityWeightFairshare")
    default_queue_depth: Annotated[Count, Field(ge=0)] = Field(
        default=100, description="jobs that the main scheduler tests after an event"
    )
    sched_interval: Annotated[Count, Field(ge=1)] = Field(
        default=60, description="seconds between runs of the main scheduler over the whole queue"
    )
    sched_min_interval: Annotated[Count, Field(ge=0)] = Field(
        default=2, description="minimum microseconds between two runs of the main scheduler"
    )
    bf_interval: Annotated[Count, Field(ge=1, le=10_800)] = Field(
        default=30, description="seconds between backfill iterations"
    )
    bf_window: Annotated[Count, Field(ge=1, le=43_200)] = Field(
        default=1440, description="minutes into the future for which backfill plans"
    )
    bf_resolution: Annotated[Count, Field(ge=1, le=3600)] = Field(
        default=60, description="resolution of planned starts and ends in seconds"
    )
    bf_max_job_test: Annotated[Count, Field(ge=1, le=1_000_000)] = Field(
        default=500, description="jobs that a backfill iteration tests"
    )
    bf_max_job_start: Annotated[Count, Field(ge=0)] = Field(
        default=0, description="jobs that a backfill iteration starts; 0: no limit"
    )
    bf_max_job_user: Annotated[Count, Field(ge=0)] = Field(
        default=0, description="jobs of a user that a backfill iteration tests; 0: no limit"
    )
    bf_min_age_reserve: Annotated[Count, Field(ge=0, le=2_592_000)] = Field(
        default=0, description="seconds that a job must have waited to get a reservation"
    )
    bf_job_part_count_reserve: Annotated[Count, Field(ge=0, le=100_000)] = Field(
        default=0, description="number of jobs, by priority, that get a reservation; 0: all"
    )


class Timeline:
    """The free CPUs of a machine from now on, as steps."""

    def __init__(self, now: Time, free: int) -> None:
        self._times: list[Time] = [now]
        self._free = [free]

    def add(self, time: Time, end: Time, cpus: int) -> None:
        """Add free CPUs from `time` to `end`; a negative number takes them."""
        for edge in (time, end):
            if edge > self._times[0] and edge not in self._times:
                place = int(np.searchsorted(self._times, edge))
                self._times.insert(place, edge)
                self._free.insert(place, self._free[place - 1])
        for place, begin in enumerate(self._times):
            if time <= begin < end:
                self._free[place] += cpus

    def earliest(self, cpus: int, duration: Time) -> Time:
        """The first time from which `cpus` CPUs are free for the duration; NEVER if none is."""
        start = NEVER
        for begin, free in zip(self._times, self._free, strict=True):
            if start < NEVER and begin >= start + duration:
                return start
            if free < cpus:
                start = NEVER
            elif start == NEVER:
                start = begin
        return start


class Slurm:
    """The two schedulers of Slurm, in order of priority."""

    ignores = ("memory", "licenses", "one job per machine")

    def __init__(self, settings: SlurmSettings) -> None:
        self._settings = settings
        self._priority = Multifactor(settings)
        self._main_us: Time = -1
        """When the main scheduler ran last."""

    def plan(self, view: ClusterView, now: Time) -> Plan:
        settings = self._settings
        users, priorities = self._priority.ranked(view, now)
        order = np.argsort(-priorities, kind="stable")
        queue, users = view.queue[order].tolist(), users[order].tolist()
        plan = Plan()
        jobs, cpus = self._priority.quotas(view)
        starts = _Starts(view, plan, dict(zip(queue, users, strict=True)), jobs, cpus)
        earliest_main = self._main_us + settings.sched_min_interval if self._main_us >= 0 else now
        is_whole = now % (settings.sched_interval * SECOND_US) == 0
        if now >= earliest_main:
            self._main_us = now
            self._main(queue if is_whole else queue[: settings.default_queue_depth], starts, now)
        if now % (settings.bf_interval * SECOND_US) == 0:
            self._backfill(view, queue, starts, now)
        self._priority.started(view, plan)
        left = [slot for slot in queue if slot not in starts.slots]
        # If nothing runs, only a job that a scheduler has not tested yet can start later.
        goes_on = len(view.running) + len(plan.start) > 0
        if left and (goes_on or any(view.fastest(slot) >= 0 for slot in left)):
            nexts = [_next(now, one * SECOND_US)
                     for one in (settings.sched_interval, settings.bf_interval)]  # fmt: skip
            plan.wake_us = min([*nexts, earliest_main] if earliest_main > now else nexts)
        return plan

    def _main(self, queue: list[int], starts: _Starts, now: Time) -> None:
        """Start jobs in order, up to the first that does not fit; jobs over a limit are skipped."""
        for slot in queue:
            if not starts.is_within_limits(slot):
                continue
            machine = starts.view.fastest(slot)
            if machine >= 0:
                starts.add(slot, machine)
            elif self._may_reserve(starts.view, slot, now):
                return

    def _may_reserve(self, view: ClusterView, slot: int, now: Time) -> bool:
        waited_us = now - int(view.jobs.arrival_us[slot])
        return waited_us >= self._settings.bf_min_age_reserve * SECOND_US

    def _backfill(self, view: ClusterView, queue: list[int], starts: _Starts, now: Time) -> None:
        """Give each job the first start that delays no job before it; start those that can now."""
        settings = self._settings
        resolution_us = settings.bf_resolution * SECOND_US
        timelines = self._timelines(view, starts, now)
        order = view.machines.speed_order.tolist()
        tested: dict[int, int] = {}
        begun = reserved = 0
        for slot in [one for one in queue if one not in starts.slots][: settings.bf_max_job_test]:
            user = starts.user_of[slot]
            tested[user] = tested.get(user, 0) + 1
            if settings.bf_max_job_user and tested[user] > settings.bf_max_job_user:
                continue
            if not starts.is_within_limits(slot):
                continue
            cpus, bound = int(view.jobs.processors[slot]), int(view.jobs.bound_machine[slot])
            best, place = NEVER, -1
            for machine in order if bound < 0 else [bound]:
                time = timelines[machine].earliest(cpus, _limit_us(view, slot, machine))
                if time < best:
                    best, place = time, machine
            if best >= now + settings.bf_window * MINUTE_US:
                continue
            end_us = _up(best + _limit_us(view, slot, place), resolution_us)
            if best <= now and view.fits(slot, place):
                starts.add(slot, place)
                begun += 1
                timelines[place].add(now, end_us, -cpus)
                if begun == settings.bf_max_job_start:
                    return
            elif self._may_reserve(view, slot, now):
                count = settings.bf_job_part_count_reserve
                if count and reserved >= count:
                    continue
                reserved += 1
                starts.plan.reserve.append((slot, place, best))  # type: ignore[union-attr]
                timelines[place].add(best // resolution_us * resolution_us, end_us, -cpus)

    def _timelines(self, view: ClusterView, starts: _Starts, now: Time) -> list[Timeline]:
        """The free CPUs of each machine while running jobs end at their limits."""
        resolution_us = self._settings.bf_resolution * SECOND_US
        timelines = [Timeline(now, int(free)) for free in view.free.tolist()]
        ends = [(int(view.jobs.start_us[slot]), slot, int(view.jobs.machine[slot]))
                for slot in view.running.tolist()]  # fmt: skip
        ends += [(now, slot, machine) for slot, machine in starts.plan.start]
        for start_us, slot, machine in ends:
            end_us = _up(start_us + _limit_us(view, slot, machine), resolution_us)
            cpus = int(view.jobs.processors[slot])
            timelines[machine].add(max(end_us, now + resolution_us), NEVER, cpus)
        return timelines


class _Starts:
    """The starts of a plan so far, and what is left of the limits of users."""

    def __init__(
        self,
        view: ClusterView,
        plan: Plan,
        user_of: dict[int, int],
        jobs: Floats,
        cpus: Floats,
    ) -> None:
        self.view, self.plan, self.user_of = view, plan, user_of
        self._jobs, self._cpus = jobs, cpus
        self.slots: dict[int, None] = {}

    def is_within_limits(self, slot: int) -> bool:
        user = self.user_of[slot]
        return bool(self._jobs[user] >= 1 and self._cpus[user] >= self.view.jobs.processors[slot])

    def add(self, slot: int, machine: int) -> None:
        user = self.user_of[slot]
        self.view.take(slot, machine)
        self.plan.start.append((slot, machine))
        self.slots[slot] = None
        self._jobs[user] -= 1
        self._cpus[user] -= self.view.jobs.processors[slot]


def _limit_us(view: ClusterView, slot: int, machine: int) -> Time:
    """The estimate of a job on a machine, rounded up to minutes."""
    jobs = view.jobs
    speed = float(jobs.reference_mips[slot]) / float(view.machines.mips[machine])
    return _up(max(int(np.ceil(int(jobs.estimate_us[slot]) * speed)), 1), MINUTE_US)


def _up(time: Time, step_us: Time) -> Time:
    return -(-time // step_us) * step_us


def _next(now: Time, step_us: Time) -> Time:
    """The first multiple of the step after `now`."""
    return (now // step_us + 1) * step_us


def slurm(settings: SlurmSettings) -> Slurm:
    """Slurm's main and backfill schedulers with the parameters of slurm.conf.

    The main scheduler starts jobs in order of priority, up to the first that does not fit, after
    each submission and end. Every `bf_interval` seconds the backfill scheduler gives each job the
    first start that delays no job of higher priority, based on time limits, and starts those that
    can start at once.

    | Slurm | here |
    | --- | --- |
    | main scheduler: after each submission and end, and every `sched_interval` | modelled |
    | backfill scheduler: interval, window, resolution, queue depth and limits | modelled |
    | multifactor priority, limits by user | as in `multifactor`; weights are 0 by default |
    | time limits in minutes | plans round estimates up to minutes |
    | one partition, jobs on one machine or pool | modelled |
    | several partitions, QOS, preemption, arrays, reservations, topology | not modelled |
    | run time of the schedulers themselves, RPC limits (`bf_max_time`, `bf_continue`) | 0 |
    | `CompleteWait`, epilogs, launch of jobs | 0 |
    """
    return Slurm(settings)
