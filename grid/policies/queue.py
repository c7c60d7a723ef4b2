"""Policies that keep a queue and nothing else: FCFS and EASY backfilling.

Their `pool_policy` is the number under which `grid.cluster.pool_loop` knows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.time import Time
from grid.policies import queue_kernels
from grid.policies.interface import ClusterView, Plan


class FirstComeFirstServed:
    """Jobs start in order of arrival; one that does not fit holds up all behind it."""

    pool_policy = 0

    def plan(self, view: ClusterView, now: Time) -> Plan:
        if len(view.queue) == 0:
            return Plan()
        jobs, machines = view.jobs, view.machines
        slots, targets = queue_kernels.first_come_first_served(
            view.queue,
            view.free,
            machines.cpus,
            machines.speed_order,
            machines.licenses,
            jobs.processors,
            jobs.licenses,
            jobs.bound_machine,
            _holders(view),
            view.license_copies_free,
        )
        return Plan(start=list(zip(slots.tolist(), targets.tolist(), strict=True)))


class EasyBackfilling:
    """EASY: jobs may pass the first one that must wait, as long as they do not delay it."""

    pool_policy = 1

    def plan(self, view: ClusterView, now: Time) -> Plan:
        if len(view.queue) == 0:
            return Plan()
        jobs, machines = view.jobs, view.machines
        slots, targets, head, machine, start = queue_kernels.easy_backfilling(
            now,
            view.queue,
            np.arange(len(view.queue)),
            view.running,
            view.free,
            machines.cpus,
            machines.mips,
            machines.speed_order,
            machines.licenses,
            jobs.processors,
            jobs.estimate_us,
            jobs.reference_mips,
            jobs.licenses,
            jobs.bound_machine,
            jobs.machine,
            jobs.expected_end_us,
            _holders(view),
            view.license_copies_free,
        )
        plan = Plan(start=list(zip(slots.tolist(), targets.tolist(), strict=True)))
        if head >= 0 and machine >= 0:
            plan.reserve.append((int(head), int(machine), int(start)))
        return plan


def _holders(view: ClusterView) -> npt.NDArray[np.bool_]:
    holders: npt.NDArray[np.bool_] = queue_kernels.license_holders(
        view.running,
        view.jobs.machine,
        view.jobs.licenses,
        len(view.free),
        len(view.license_copies_free),
    )
    return holders


def fcfs(settings: Mapping[str, Any]) -> FirstComeFirstServed:
    _no_settings("fcfs", settings)
    return FirstComeFirstServed()


def easy(settings: Mapping[str, Any]) -> EasyBackfilling:
    _no_settings("easy", settings)
    return EasyBackfilling()


def _no_settings(name: str, settings: Mapping[str, Any]) -> None:
    if settings:
        raise ValueError(f"{name} has no settings, found {', '.join(sorted(settings))}")
