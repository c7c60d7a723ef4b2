"""A file of parts of all kinds: most answer wrongly, and some oddly but rightly."""

from __future__ import annotations

WRONG_PARTS = """
import asyncio
from dataclasses import replace

import numpy as np

from grid.protocol.forwarding import Ask, Award, Destination
from grid.protocol.forwarding.pull import PullFrom
from grid.protocol.information import GossipMessage, Overlay
from grid.model.job_table import JobTable
from grid.model.platform import License, Machine
from grid.model.time import NEVER
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Plan
from grid.protocol.selection import best_choice
from grid.workload.generators import GeneratedMachines


class Policy:
    def plan(self, view, now):
        plan = Plan()
        for slot in view.queue.tolist():
            machine = view.fastest(slot)
            if machine >= 0:
                view.take(slot, machine)
                plan.start.append((slot, machine))
        return self.spoilt(plan, view)


class Exits(Policy):
    def plan(self, view, now):
        raise SystemExit(0)


class Cancels(Policy):
    def plan(self, view, now):
        raise asyncio.CancelledError("enough")


class Restless(Policy):
    def plan(self, view, now):
        return Plan(wake_us=now + 1)


class Patient(Policy):
    def plan(self, view, now):
        plan = super().plan(view, now)
        plan.wake_us = now + 250_000 if len(view.queue) > len(plan.start) else NEVER
        return plan

    def spoilt(self, plan, view):
        return plan


class Unreadable(Policy):
    def plan(self, view, now):
        class Odd(Exception):
            def __str__(self):
                raise ValueError
        raise Odd


class FarSlot(Policy):
    def spoilt(self, plan, view):
        return Plan(start=[(10**6, 0)])


class KillsFarSlot(Policy):
    def spoilt(self, plan, view):
        return Plan(kill=[-1])


class FarMachine(Policy):
    def spoilt(self, plan, view):
        return Plan(start=[(slot, 99) for slot, _ in plan.start])


class TakesForItself(Policy):
    def plan(self, view, now):
        view.free[0] -= 1
        return Plan()


class TakesFromQueue(Policy):
    def spoilt(self, plan, view):
        view.queue[:] = 0
        return plan


class WritesMachines(Policy):
    def spoilt(self, plan, view):
        view.machines.licenses[:] = 1
        return plan


class WritesJobs(Policy):
    def spoilt(self, plan, view):
        view.jobs.machine[0] += 1
        return plan


class WritesMegabytes(Policy):
    def spoilt(self, plan, view):
        view.jobs.ram_mb[:] = 0.5
        return plan


class MadePerhaps(Policy):
    def spoilt(self, plan, view):
        return Plan(start=plan.start, made=np.array([True, False]))


class StartsAsArray(Policy):
    def spoilt(self, plan, view):
        return Plan(start=np.array(plan.start, np.int64).reshape(-1, 2))


class StartsInTurn(Policy):
    def spoilt(self, plan, view):
        return Plan(start=zip(*zip(*plan.start)) if plan.start else [])


class RejectsAsArray(Policy):
    def plan(self, view, now):
        return Plan(reject=view.queue[:1])


class Waits(Policy):
    async def plan(self, view, now):
        return Plan()


class Ignored(Policy):
    ignored = ("memory",)


class Ignores(Policy):
    ignores = ("memery",)


class IgnoresText(Policy):
    ignores = "memory"


class IgnoresNumber(Policy):
    ignores = 3


class Ranks(GangPolicy):
    def ranks(self, size, serial):
        return serial


class GangsIgnore(GangPolicy):
    ignores = ("nonsense",)


class Gangs(GangPolicy):
    def __init__(self):
        pass


class Short:
    def choose(self, job, table, own_vo, own_only):
        return best_choice(np.ones(1), job, table, own_vo, own_only)


class NoNumber:
    def choose(self, job, table, own_vo, own_only):
        utilities = np.ones(len(table.columns))
        utilities[-1] = np.nan
        return best_choice(utilities, job, table, own_vo, own_only)


class Words:
    def choose(self, job, table, own_vo, own_only):
        return best_choice(["good"] * len(table.columns), job, table, own_vo, own_only)


class Ties:
    def choose(self, job, table, own_vo, own_only):
        return best_choice(np.ones(len(table.columns)), job, table, own_vo, own_only, "lucky")


class Writes:
    def choose(self, job, table, own_vo, own_only):
        table.columns.mips[:] = 1.0
        return best_choice(np.ones(len(table.columns)), job, table, own_vo, own_only)


def writes(question):
    question.table.columns.cpus[0] = 9.0
    return local_choice(question)


def local_choice(question):
    return Destination(question.local_choice().own, True)


def asks(**more):
    def rule(question):
        if question.asked or question.own_only:
            return local_choice(question)
        given = {"vos": (1 - question.vo,), "wait_us": 1_000_000, **more}
        return Ask(**given)
    return rule


half_a_microsecond = asks(wait_us=10.5)
before_now = asks(wait_us=-1)
no_time = asks(wait_us=float("nan"))
some = asks(enough="some")
lease = asks(lease_us=5e6)
one_vo = asks(vos=1)


def half_a_bid(question):
    return Award(0.0) if question.bids else asks()(question)


def waits_perhaps(question):
    return local_choice(question)._replace(wait="perhaps")


class AsksAgain:
    def __call__(self, question):
        return local_choice(question)._replace(late=True)

    def idle(self, idle):
        return PullFrom(1 - idle.vo, 1_000_000)


class Halves(Overlay):
    def subscribers(self, vos, rng):
        return [(0.5,)] * vos


class Arrays(Overlay):
    def subscribers(self, vos, rng):
        return [np.array([1 - vo]) for vo in range(vos)]


class Nobody(Overlay):
    def subscribers(self, vos, rng):
        return None


class Letters(Overlay):
    period_us = 1_000_000

    def rounds(self, peers):
        return 1


class OneEntry(Letters):
    def every_period(self, view, rng):
        return [GossipMessage(vo, 7) for vo in view.peers]


class HalfAVo(Letters):
    def every_period(self, view, rng):
        return [GossipMessage(float(vo), (view.vo,)) for vo in view.peers]


class Probes(Overlay):
    probes_first = True

    def probes(self, view, rng):
        return [float(vo) for vo in view.peers]


class Backwards(Overlay):
    period_us = -5


def jobs(names, vos, rng):
    ones = np.full(3, 10_000_000)
    table = JobTable.of(number=np.arange(3), submit_us=np.arange(3), processors=np.ones(3),
                        estimate_us=ones, run_us=ones)
    return {name: table for name in names}


def spoilt(**columns):
    def generator(names, vos, rng):
        return {name: replace(table, **columns) for name, table in jobs(names, vos, rng).items()}
    return generator


negative = spoilt(estimate_us=np.full(3, -1))
no_column = spoilt(run_us=5)
no_number = spoilt(run_us=np.full(3, np.nan))


def machines(*licenses, **wrong):
    def generator(count, rng):
        made = tuple(Machine(f"m{number}", **{"cpus": 2, **wrong}) for number in range(count))
        return GeneratedMachines(made, licenses)
    return generator


no_cpus = machines(cpus=0)
no_speed = machines(mips=float("nan"))
unknown_license = machines(licenses=("other",))
two_of_a_name = machines(License("one", 1), License("one", 2))


def mixed(names, vos, rng):
    return jobs(names, vos, rng) | {3: None}


def one_more(names, vos, rng):
    names.append("mars")
    return jobs(names, vos, rng)


def ends_now(results, directory):
    results.outcome.end_us[:] = 0
    return results.processors


def submits_now(results, directory):
    results.submit_us[:] = 0
    return 1.0


def matrix(results, directory):
    return np.zeros((40, 40))


def no_edges(results, directory, cluster, edges_us):
    edges_us[:] = 0
    return np.ones(len(edges_us) - 1)


def imaginary(results, directory):
    return np.full(len(results), 1j)


def endless(results, directory):
    return np.full(len(results), np.inf)


def words(results, directory):
    return np.array(["one"] * len(results))


def beyond(results, directory):
    return 101


beyond.bounds = (0, 100)


def below(results, directory, *, figure: int = -1):
    return figure


below.bounds = [0, None]


def odd(results, directory):
    return 1


odd.bounds = (1, 0)
"""
