"""Multifactor priority with fair share by accounts, as in Slurm, in front of EASY backfilling.

Source: Slurm's documentation of the multifactor priority plugin, of Fair Tree, and of the classic
fair-share algorithm (Slurm 22.05).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, Strict, model_validator

from grid.model.arrays import Floats, Ints
from grid.model.plugins.settings import MOST, PluginModel
from grid.model.time import SECOND_US, Time
from grid.policies.columns import packed_view, plan_of
from grid.policies.interface import ClusterView, Plan, Slots

Weight = Annotated[float, Strict(), Field(ge=0, le=MOST)]
Shares = Annotated[int, Strict(), Field(ge=0, le=10**9)]
Limit = Annotated[int, Strict(), Field(ge=1)]
Seconds = Annotated[float, Strict(), Field(gt=0, le=1e9)]
ROOT = 0


class Account(PluginModel):
    """An account of the tree, with the users who have no other one."""

    name: str
    """Its name."""
    parent: str | None = None
    """The parent account. Default: the root."""
    shares: Shares = 1
    """Its shares, relative to the accounts and users with the same parent."""
    users: dict[int, Shares] = Field(default_factory=dict)
    """Shares of its users, by user number."""


class MultifactorSettings(PluginModel):
    """The settings of `multifactor`; Slurm's names of the parameters are in parentheses."""

    age_weight: Weight = 1000.0
    """weight of age (PriorityWeightAge)"""
    fair_share_weight: Weight = 10_000.0
    """weight of fair share (PriorityWeightFairshare)"""
    job_size_weight: Weight = 0.0
    """weight of the share of CPUs (PriorityWeightJobSize)"""
    partition_weight: Weight = 0.0
    """weight of the partition (PriorityWeightPartition)"""
    qos_weight: Weight = 0.0
    """weight of the QOS (PriorityWeightQOS)"""
    max_age_s: Seconds = 604_800.0
    """age at which the age factor reaches 1 (PriorityMaxAge)"""
    favor_small: bool = False
    """whether small jobs have the larger size factor (PriorityFavorSmall)"""
    half_life_s: Annotated[float, Strict(), Field(ge=0, le=1e9)] = 604_800.0
    """half-life of usage; 0: no decay (PriorityDecayHalfLife)"""
    calc_period_s: Seconds = 300.0
    """how often usage is updated (PriorityCalcPeriod)"""
    algorithm: Literal["fair_tree", "classic"] = "fair_tree"
    """fair-share algorithm; classic: NO_FAIR_TREE"""
    accounts: tuple[Account, ...] = ()
    """tree of accounts with their users; each other user has one share of the root"""
    partition_priorities: tuple[Shares, ...] = ()
    """priority of the partition of each machine, for jobs bound to it; others: 0
    (PriorityJobFactor)"""
    qos_priorities: dict[int, Shares] = Field(default_factory=dict)
    """priority of each user's QOS, by user number; others: 0"""
    max_running_jobs: Limit | None = None
    """maximum number of running jobs per user (MaxJobsPerUser)"""
    max_cpus: Limit | None = None
    """maximum number of CPUs of a user's running jobs (MaxTRESPerUser)"""

    @model_validator(mode="after")
    def _is_a_tree(self) -> MultifactorSettings:
        parents = {one.name: one.parent for one in self.accounts}
        if len(parents) < len(self.accounts):
            raise ValueError("a different name for each account")
        users = [user for one in self.accounts for user in one.users]
        if len(set(users)) < len(users):
            raise ValueError("each user in only one account")
        for name, parent in parents.items():
            if parent is not None and parent not in parents:
                raise ValueError(f"an account {parent}, the parent of {name}")
        for name in parents:
            above: str | None = name
            for _ in parents:
                above = parents.get(above) if above is not None else None
            if above is not None:
                raise ValueError(f"a tree of accounts, in which {name} is not below itself")
        return self


@dataclass(slots=True)
class _Association:
    """An account or a user of the tree."""

    shares: int
    user: int | None = None
    children: list[int] = field(default_factory=list)


class AccountTree:
    """Accounts and users with their shares, and the factor of each user by usage."""

    def __init__(self, accounts: Sequence[Account]) -> None:
        self._nodes = [_Association(1)]
        self._leaf: dict[int, int] = {}
        number = {one.name: place for place, one in enumerate(accounts, 1)}
        self._nodes += [_Association(one.shares) for one in accounts]
        for one in accounts:
            parent = ROOT if one.parent is None else number[one.parent]
            self._nodes[parent].children.append(number[one.name])
        for one in accounts:
            for user, shares in one.users.items():
                self._add(user, number[one.name], shares)

    @property
    def users(self) -> list[int]:
        """All users, in the order in which they were added."""
        return list(self._leaf)

    def add(self, user: int) -> None:
        """Give a user without an account one share of the root."""
        self._add(user, ROOT, 1)

    def _add(self, user: int, parent: int, shares: int) -> None:
        self._leaf[user] = len(self._nodes)
        self._nodes[parent].children.append(len(self._nodes))
        self._nodes.append(_Association(shares, user))

    def _usage(self, usage: Mapping[int, float]) -> list[float]:
        """The usage of each account or user, in CPU seconds, from that of users."""
        found = [0.0] * len(self._nodes)

        def total(node: int) -> float:
            user = self._nodes[node].user
            below = sum(total(child) for child in self._nodes[node].children)
            found[node] = below if user is None else usage.get(user, 0.0)
            return found[node]

        total(ROOT)
        return found

    def fair_tree(self, usage: Mapping[int, float]) -> dict[int, float]:
        """The factor of each user: rank / number of users, by the level fair share of ancestors.

        Level fair share is S / U: the shares among siblings over the usage among siblings, 0
        without shares, infinite without usage. Siblings are ranked by it, users before accounts.
        Users with equal values share a rank, accounts with equal values are ranked as one, and a
        user shares the rank of the first user of an account with the same value.
        """
        used = self._usage(usage)
        level = [np.inf] * len(self._nodes)
        for parent in self._nodes:
            shares = sum(self._nodes[child].shares for child in parent.children)
            usage_of_all = sum(used[child] for child in parent.children)
            for child in parent.children:
                if self._nodes[child].shares == 0:
                    level[child] = 0.0
                elif used[child] > 0.0:
                    # The products are exact for integers, so equal values are equal.
                    weighted = self._nodes[child].shares * usage_of_all
                    level[child] = weighted / (shares * used[child])
        factors: dict[int, float] = {}
        count = rank = len(self._leaf)

        def order(node: int) -> tuple[float, bool]:
            return -level[node], self._nodes[node].user is None

        def visit(siblings: Sequence[int], tied: bool) -> None:
            nonlocal rank
            previous = None
            for (value, is_account), nodes in groupby(sorted(siblings, key=order), order):
                is_tied = tied if previous is None else value == previous
                previous = value
                if is_account:
                    visit(
                        [child for node in nodes for child in self._nodes[node].children], is_tied
                    )
                    continue
                if not is_tied:
                    rank = count - len(factors)
                factors.update((self._nodes[node].user or 0, rank / count) for node in nodes)

        visit(self._nodes[ROOT].children, False)
        return factors

    def classic(self, usage: Mapping[int, float]) -> dict[int, float]:
        """The factor of each user: 2^(-Ue / S), with normalized shares S and effective usage Ue.

        Ue = U + (Ue of the parent - U) * shares / shares of all siblings, where U is the usage of
        the account or user over that of all; directly below the root it is U. Without shares the
        factor is 0.
        """
        used = self._usage(usage)
        everything = used[ROOT] or 1.0
        factors: dict[int, float] = {}

        def visit(node: int, share: float, effective: float) -> None:
            siblings = self._nodes[node].children
            shares = sum(self._nodes[child].shares for child in siblings) or 1
            for child in siblings:
                portion = self._nodes[child].shares / shares
                actual = used[child] / everything
                of_child = actual if node == ROOT else actual + (effective - actual) * portion
                user = self._nodes[child].user
                if user is None:
                    visit(child, share * portion, of_child)
                else:
                    normalized = share * portion
                    factors[user] = 2.0 ** (-of_child / normalized) if normalized else 0.0

        visit(ROOT, 1.0, 1.0)
        return factors


class DecayedUsage:
    """CPU seconds by user, updated at every multiple of a period.

    An update multiplies earlier usage by D = 0.5^(period / half-life) and adds that of the period:
    U = u0 + D u1 + D^2 u2 + ..., with u0 the latest period.
    """

    def __init__(self, period_us: Time, half_life_us: Time) -> None:
        self._period_us = period_us
        self._decay = 0.5 ** (period_us / half_life_us) if half_life_us else 1.0
        self._until_us: Time = 0
        self._cpus = np.zeros(0)
        self._pending = np.zeros(0)
        self.cpu_seconds = np.zeros(0)

    def next_update_us(self, now: Time) -> Time:
        """The first update after `now`."""
        return (now // self._period_us + 1) * self._period_us

    def set_cpus(self, cpus: Floats) -> None:
        """The CPUs of each user's running jobs from now on; there may be more users than before."""
        missing = len(cpus) - len(self._cpus)
        self._pending = np.append(self._pending, np.zeros(missing))
        self.cpu_seconds = np.append(self.cpu_seconds, np.zeros(missing))
        self._cpus = cpus

    def advance(self, now: Time) -> bool:
        """Count what has run until `now`; returns whether there was an update."""
        first, last = self._until_us // self._period_us, now // self._period_us
        if first == last:
            self._pending += self._cpus * ((now - self._until_us) / SECOND_US)
            self._until_us = now
            return False
        until_update_us = (first + 1) * self._period_us - self._until_us
        self._pending += self._cpus * (until_update_us / SECOND_US)
        self.cpu_seconds = self.cpu_seconds * self._decay + self._pending
        whole, decayed = last - first - 1, self._decay ** (last - first - 1)
        of_period = self._cpus * (self._period_us / SECOND_US)
        sum_of_powers = whole if self._decay == 1.0 else (1.0 - decayed) / (1.0 - self._decay)
        self.cpu_seconds = self.cpu_seconds * decayed + of_period * sum_of_powers
        self._pending = self._cpus * ((now - last * self._period_us) / SECOND_US)
        self._until_us = now
        return True


class Multifactor:
    """EASY in the order of Slurm's multifactor priority, with limits by user."""

    def __init__(self, settings: MultifactorSettings) -> None:
        self._settings = settings
        self._tree = AccountTree(settings.accounts)
        self._number = {user: place for place, user in enumerate(self._tree.users)}
        half_life_us = round(settings.half_life_s * SECOND_US)
        period_us = max(round(settings.calc_period_s * SECOND_US), 1)
        self.usage = DecayedUsage(period_us, half_life_us)
        self.usage.set_cpus(np.zeros(len(self._number)))
        self._factors = np.zeros(0)
        self._memory = np.zeros((1, 2), np.int64)

    def plan(self, view: ClusterView, now: Time) -> Plan:
        users, priorities = self.ranked(view, now)
        plan = self._plan_within_limits(view, users, priorities)
        plan.reject += self.beyond_limits(view)
        self.started(view, plan)
        if len(plan.start) < len(view.queue) and len(view.running) + len(plan.start):
            plan.wake_us = self.usage.next_update_us(now)
        return plan

    def ranked(self, view: ClusterView, now: Time) -> tuple[Ints, Floats]:
        """The number of the user and the priority of each waiting job, shape (waiting,)."""
        updated = self.usage.advance(now)
        users = self._numbers(view.jobs.user[view.queue])
        if updated or len(self._number) > len(self._factors):
            self._factors = self._fair_share()
        return users, self.priorities(view, now, users)

    def started(self, view: ClusterView, plan: Plan) -> None:
        """Count the usage of running jobs, and of those that the plan starts, from now on."""
        starts = np.array([slot for slot, _ in plan.start], np.int64)
        holders = np.concatenate([view.running, starts])
        self.usage.set_cpus(self._by_user(view, holders, _cpus(view, holders)))

    def beyond_limits(self, view: ClusterView) -> list[int]:
        """The jobs that have just arrived and can never start: alone they exceed `max_cpus`."""
        most = self._settings.max_cpus
        arrived: list[int] = view.arrived.tolist()
        return [slot for slot in arrived if most and int(_cpus(view, slot)) > most]

    def priorities(self, view: ClusterView, now: Time, users: Ints) -> Floats:
        """The priority of each waiting job, an integer as in Slurm; `users` are by number."""
        settings, jobs = self._settings, view.jobs
        age_s = (now - jobs.arrival_us[view.queue]) / SECOND_US
        machines = view.machines
        cpus, total = _cpus(view, view.queue), int((machines.cpus - machines.padding).sum())
        size = (total + 1 - cpus) / total if settings.favor_small else cpus / total
        return np.floor(
            settings.age_weight * np.minimum(age_s / settings.max_age_s, 1.0)
            + settings.fair_share_weight * self._factors[users]
            + settings.job_size_weight * size
            + self._of_partitions_and_qos(view)
        )

    def _of_partitions_and_qos(self, view: ClusterView) -> Floats:
        """The weighted factors: priorities relative to the highest one."""
        settings, jobs, machines = self._settings, view.jobs, len(view.free)
        partitions, qos = settings.partition_priorities[:machines], settings.qos_priorities
        # The last element is for jobs bound to none: machine -1.
        of_machine = np.zeros(machines + 1)
        of_machine[: len(partitions)] = partitions
        of_user = [qos.get(user, 0) for user in jobs.user[view.queue].tolist()] if qos else 0
        highest = max([1, *settings.partition_priorities]), max([1, *qos.values()])
        of_machine *= settings.partition_weight / highest[0]
        found: Floats = of_machine[jobs.bound_machine[view.queue]]
        found += settings.qos_weight / highest[1] * np.array(of_user)
        return found

    def _numbers(self, users: Ints) -> Ints:
        """The numbers of users in the arrays; new ones get an association."""
        different, places = np.unique(users, return_inverse=True)
        for user in different.tolist():
            if user not in self._number:
                self._number[user] = len(self._number)
                self._tree.add(user)
        return np.array([self._number[user] for user in different.tolist()], np.int64)[places]

    def _fair_share(self) -> Floats:
        usage = dict(zip(self._number, self.usage.cpu_seconds.tolist(), strict=False))
        factors = getattr(self._tree, self._settings.algorithm)(usage)
        return np.array([factors[user] for user in self._number])

    def _by_user(self, view: ClusterView, slots: Slots, amounts: Ints) -> Floats:
        users = self._numbers(view.jobs.user[slots])
        return np.bincount(users, amounts, len(self._number)).astype(np.float64)

    def quotas(self, view: ClusterView) -> tuple[Floats, Floats]:
        """How many more jobs and CPUs each user may start, shape (users,)."""
        settings, running = self._settings, view.running
        jobs = self._by_user(view, running, np.ones(len(running), np.int64))
        cpus = self._by_user(view, running, _cpus(view, running))
        most_jobs = np.inf if settings.max_running_jobs is None else settings.max_running_jobs
        most_cpus = np.inf if settings.max_cpus is None else settings.max_cpus
        return most_jobs - jobs, most_cpus - cpus

    def _plan_within_limits(self, view: ClusterView, users: Ints, priorities: Floats) -> Plan:
        """Plan again without the jobs that exceed a limit after the starts of jobs before them."""
        if self._settings.max_running_jobs is None and self._settings.max_cpus is None:
            return self._plan(view, priorities)
        jobs, cpus = self.quotas(view)
        may_start = (jobs[users] >= 1) & (cpus[users] >= _cpus(view, view.queue))
        while True:
            plan = self._plan(replace(view, queue=view.queue[may_start]), priorities[may_start])
            wanted = _cpus(view, view.queue)
            starting = {slot for slot, _ in plan.start}
            jobs_left, cpus_left = jobs.copy(), cpus.copy()
            left = np.flatnonzero(may_start)
            left = left[np.argsort(-priorities[left], kind="stable")]
            for order, place in enumerate(left.tolist()):
                user = users[place]
                if jobs_left[user] < 1 or cpus_left[user] < wanted[place]:
                    later = left[order:]
                    exceeds = (jobs_left[user] < 1) | (cpus_left[user] < wanted[later])
                    may_start[later[(users[later] == user) & exceeds]] = False
                    break
                if int(view.queue[place]) in starting:
                    jobs_left[user] -= 1
                    cpus_left[user] -= wanted[place]
            else:
                return plan

    def _plan(self, view: ClusterView, priorities: Floats) -> Plan:
        if len(view.queue) == 0:
            return Plan()
        from grid.policies.easy_kernels import plan_by_priority

        rows = np.empty((len(view.queue) + len(view.free), 4), np.int64)
        count = plan_by_priority(packed_view(view), priorities, False, self._memory, rows)
        return plan_of(rows[:count])


def _cpus(view: ClusterView, slots: Slots | int) -> Ints:
    """The CPUs that jobs request."""
    cpus: Ints = view.jobs.processors[slots] - view.machines.padding
    return cpus


def multifactor(settings: MultifactorSettings) -> Multifactor:
    """EASY in the order of Slurm's multifactor priority: age, fair share, size, partition, QOS.

    Priority = age_weight * age / max_age_s (at most 1) + fair_share_weight * factor of the user +
    job_size_weight * CPUs / CPUs of the cluster + partition_weight * priority of the partition /
    highest priority of a partition + qos_weight * the same of QOS, rounded down. Equal priorities
    are in order of arrival. A job that would exceed a limit of its user waits and blocks no other
    job; one that alone exceeds `max_cpus` is rejected. Users are distinguished by number alone,
    even across VOs.

    Deviations from Slurm: usage counts CPU seconds of run time only; size counts CPUs, not nodes;
    a user's jobs have the same QOS; there are no factors for TRES, association or nice value.
    """
    return Multifactor(settings)
