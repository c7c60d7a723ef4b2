"""Whole runs on random small farms: limits at every instant, jobs and work conserved.

GRID_RUNS says how many farms each policy meets; the default is what a test suite has time for.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from grid.model.job import JobState
from grid.model.job_table import JobTable
from grid.model.platform import Cluster
from grid.model.time import NEVER, Time
from grid.policies.interface import ClusterView, Plan, Policy
from grid.policies.registry import make_policy
from tests.cluster.clusters import general_cluster
from tests.policies.convergent.clusters import random_cluster

RUNS = int(os.environ.get("GRID_RUNS", "4"))
CS2 = ("cs2", "cs2_cs", "cs2_td", "cs2_cs_td")
CS2007 = ("cs_i_p", "cs_i_np", "cs_ni_p", "cs_ni_np")
SETTINGS = {"cs2_td": {"period_s": 60.0}, "cs2_cs_td": {"period_s": 60.0}}
"""So that most of what a run takes is not waiting for the next ten seconds."""


class Watched:
    """A policy whose every plan is checked, and the runs of whose jobs are written down."""

    def __init__(self, policy: Policy, copies: list[int], one_a_machine: bool) -> None:
        self._policy = policy
        self._copies = copies
        self._one_a_machine = one_a_machine
        self._begun: dict[int, tuple[int, Time]] = {}
        self._known: set[int] = set()
        self.runs: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """By serial: (machine, microseconds) of each run."""

    def plan(self, view: ClusterView, now: Time) -> Plan:
        serial = view.jobs.serial
        self._known |= {int(serial[slot]) for slot in view.arrived}
        for slot in view.ended:
            self._known.remove(int(serial[slot]))
            self._close(int(serial[slot]), now)
        there = [int(serial[slot]) for slot in (*view.running, *view.queue)]
        assert sorted(there) == sorted(self._known), "a job was lost, or is there twice"
        plan = self._policy.plan(view, now)
        self._check_limits(view, plan)
        for slot in plan.preempt:
            self._close(int(serial[slot]), now)
        for slot, machine in plan.start:
            self._begun[int(serial[slot])] = (machine, now)
        assert not plan.reject
        return plan

    def _close(self, serial: int, now: Time) -> None:
        machine, start = self._begun.pop(serial)
        self.runs[serial].append((machine, now - start))

    def _check_limits(self, view: ClusterView, plan: Plan) -> None:
        """CPUs and copies after the plan, counted job by job."""
        jobs = view.jobs
        place = {int(slot): int(jobs.machine[slot]) for slot in view.running}
        for slot in plan.preempt:
            del place[slot]
        for slot, machine in plan.start:
            assert slot not in place
            place[slot] = machine
        for machine in range(len(view.free)):
            here = [slot for slot, m in place.items() if m == machine]
            assert sum(jobs.processors[slot] for slot in here) <= view.machines.cpus[machine]
            assert not self._one_a_machine or len(here) <= 1
        for number, copies in enumerate(self._copies):
            holders = {m for slot, m in place.items() if int(jobs.licenses[slot]) >> number & 1}
            assert len(holders) <= copies


def played(name: str, platform: Cluster, jobs: JobTable, **settings: Any) -> tuple[Watched, Any]:
    copies = [license_.copies for license_ in platform.licenses]
    policy = make_policy(name, {**SETTINGS.get(name, {}), **settings})
    watched = Watched(policy, copies, one_a_machine=name in CS2007)
    cluster = general_cluster(platform, watched)
    cluster.submit_rows(jobs)
    cluster.advance(NEVER)
    ended = cluster.take_ended_rows()
    assert sorted(ended.row.tolist()) == list(range(len(jobs)))
    return watched, ended


@pytest.mark.parametrize("name", [*CS2, *CS2007])
def test_limits_jobs_and_work(name: str) -> None:
    """Work done = work asked for + work lost. All jobs come in order, so row = serial."""
    for seed in range(RUNS):
        platform, jobs = random_cluster(seed)
        watched, (rows, ended) = played(name, platform, jobs)
        assert (ended.state == JobState.COMPLETED).all()
        for index, row in enumerate(rows.tolist()):
            runs = watched.runs[row]
            held, lost = int(ended.held_us[index]), int(ended.lost_us[index])
            assert held == sum(length for _, length in runs)
            assert int(ended.preemptions[index]) == len(runs) - 1
            asked = float(jobs.run_us[row] * jobs.reference_mips[row])
            mips = [platform.machines[machine].mips for machine, _ in runs]
            moves = sum(a[0] != b[0] for a, b in pairwise(runs))
            if jobs.checkpointable[row]:
                done = sum(length * speed for (_, length), speed in zip(runs, mips, strict=True))
                # Each machine rounds what is left to a microsecond of its own.
                assert abs(done - asked) <= (moves + 1) * max(mips)
                assert (lost, int(ended.restarts[index])) == (0, 0)
            else:
                assert held - lost == round(asked / mips[-1])
                assert int(ended.restarts[index]) == moves


@pytest.mark.parametrize("name", ["cs_i_np", "cs_ni_np"])
def test_strict_np_never_preempts(name: str) -> None:
    for seed in range(RUNS):
        assert (
            played(name, *random_cluster(seed), non_preemptive="strict")[
                1
            ].outcome.preemptions.sum()
            == 0
        )


@pytest.mark.parametrize("overrun", ["kill", "extend"])
@pytest.mark.parametrize("name", ["cs2", "cs2_cs_td", "cs_i_p", "cs_ni_np"])
def test_wrong_estimates(name: str, overrun: str) -> None:
    """Jobs that end early or pass their estimates: limits hold, and every job ends once."""
    for seed in range(RUNS):
        platform, jobs = random_cluster(seed)
        factor = np.random.default_rng(seed).uniform(0.3, 1.7, len(jobs))
        run_us = np.rint(jobs.estimate_us * factor).astype(np.int64)
        jobs = replace(jobs, run_us=run_us)
        _, (rows, ended) = played(name, replace(platform, overrun=overrun), jobs)
        late = factor[rows] > 1
        killed = ended.state == JobState.FAILED
        assert killed.tolist() == (late & (overrun == "kill")).tolist()


def test_sorting_makes_the_same_plans() -> None:
    for name in ("cs2", "cs2_cs"):
        for seed in range(RUNS):
            platform, jobs = random_cluster(seed)
            ends = []
            for matching in ("selection", "sorting", "quicksort"):
                # With cs2_cs all but selection are the counting sort; random priorities differ.
                policy = make_policy(name, {"matching": matching})
                cluster = general_cluster(platform, policy)
                cluster.submit_rows(jobs)
                cluster.advance(NEVER)
                ends.append(cluster.take_ended_rows().outcome.end_us.tolist())
            assert ends[0] == ends[1] == ends[2]


def test_time_driven_variants_start_jobs_at_multiples_of_their_period() -> None:
    platform, jobs = random_cluster(3)
    for period_s in (10.0, 7.5):
        cluster = general_cluster(platform, make_policy("cs2_td", {"period_s": period_s}))
        cluster.submit_rows(jobs)
        cluster.advance(NEVER)
        assert (cluster.take_ended_rows().outcome.start_us % round(period_s * 1e6) == 0).all()
