"""The event loop of a cluster: compiled, up to a time bound or to the next decision of a policy.

An instant has its completions, then its arrivals, then one plan. A policy that declares a kernel
plans within the loop; for all others the loop returns ASK, and the next call carries out the plan.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from grid.cluster import store as at
from grid.cluster.arrivals import NAMES
from grid.cluster.runs import (
    NOT_WAITING,
    OK,
    REJECTED,
    WAITING,
    bits,
    close_gaps,
    complete,
    end_at,
    enqueue,
    kill,
    preempt,
    record_end,
    reject,
    restart_machine,
    start,
    stop_machine,
)
from grid.cluster.store import (
    ASK,
    ENDS_FULL,
    LOGS_FULL,
    REACHED,
    SLOTS_FULL,
    Blocks,
    Store,
    store_of,
)
from grid.model.arrays import Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER, SECOND_US
from grid.policies.columns import PackedView
from grid.policies.compiled_form import QueueKernel
from grid.policies.easy_kernels import backfill
from grid.policies.fitting import work_left_of
from grid.policies.in_order_kernels import start_all_that_fit, start_in_turn

KILL, PREEMPT, REJECT, START = range(4)
"""Kinds of rows of a plan: a kind, a slot, a machine. Rows of a kind precede those of the next."""

BY_ARRIVAL, SHORTEST_FIRST, BY_DEADLINE = range(3)
"""Orders of the queue. By deadline, a job that does not fit blocks no other."""

Does = Literal[True] | None
"""Whether a kind of plan is made here. Code behind a None is not compiled."""

(
    _SUBMIT, _PROCESSORS, _ESTIMATE, _DEADLINE, _LICENSES, _BOUND, _ARRIVAL, _USER,
    _CHECKPOINTABLE, _RUN, _ROW, _ACCOUNT, _MIPS, _RAM, _POWER, _INPUT,
) = (
    NAMES.index(name)
    for name in (
        "submit_us", "processors", "estimate_us", "deadline_us", "licenses", "bound_machine",
        "arrival_us", "user", "checkpointable", "run_us", "row", "account", "reference_mips",
        "ram_mb", "power", "input_mb",
    )
)  # fmt: skip


def kinds_of(queue_kernel: QueueKernel | None) -> tuple[int, Does, Does]:
    """The last arguments of `advance`: the order of the queue, and which kind of plan is made."""
    order = {
        QueueKernel.SJF: SHORTEST_FIRST,
        QueueKernel.EASY_SJBF: SHORTEST_FIRST,
        QueueKernel.EDF: BY_DEADLINE,
    }
    in_order = queue_kernel in (QueueKernel.FCFS, QueueKernel.SJF, QueueKernel.EDF)
    backfills = queue_kernel in (QueueKernel.EASY, QueueKernel.EASY_SJBF)
    number = BY_ARRIVAL if queue_kernel is None else order.get(queue_kernel, BY_ARRIVAL)
    return number, in_order or None, backfills or None


@kernel(allocates=False)
def advance(
    until: int,
    first: int,
    end: int,
    blocks: Blocks,
    arrivals: Ints,
    plan: Ints,
    wake_us: int,
    order: int,
    in_order: Does,
    backfills: Does,
) -> int:
    """Carry out `plan`, if one was asked for, and simulate all instants before `until`.

    Positions `first` to before `end` of `arrivals` are to arrive; NEXT_ARRIVAL is left at the first
    that has not. `plan` has shape (rows, 3). Returns REACHED, ASK, or which array has to grow.
    """
    store = store_of(blocks)
    counters = store.counters
    counters[at.NEXT_ARRIVAL] = first
    if counters[at.IS_ASKED]:
        now = counters[at.NOW]
        counters[at.IS_ASKED] = 0
        _free_slots(store)
        problem = _carry_out(plan, now, store)
        if problem != OK:
            return -problem
        counters[at.WAKE] = wake_us
        _note_use(now, store)
    while True:
        upcoming = counters[at.NEXT_ARRIVAL]
        now = next_end(store)
        if upcoming < end:
            now = min(now, arrivals[upcoming, _ARRIVAL])
        if now >= until:
            counters[at.NEXT_END] = next_end(store)
            return REACHED
        last = upcoming
        while last < end and arrivals[last, _ARRIVAL] <= now:
            last += 1
        full = _full(last - upcoming, store)
        if full != REACHED:
            return full
        complete(now, store)
        for arrival in range(upcoming, last):
            _admit(now, arrival, arrivals, store)
        counters[at.NEXT_ARRIVAL], counters[at.NOW] = last, now
        counters[at.WAKE] = NEVER
        if in_order is not None:
            count = _plan_in_order(now, order, store)
        elif backfills is not None:
            count = _plan_backfilling(now, order, store)
        else:
            counters[at.IS_ASKED] = 1
            return ASK
        _free_slots(store)
        _start_listed(count, now, store)
        _note_use(now, store)


@inner(allocates=False)
def next_end(store: Store) -> int:
    """When a job ends, passes an estimate that is extended, or a policy asked for a plan."""
    counters, lists = store.counters, store.lists
    now = counters[at.WAKE]
    if counters[at.N_RUNNING] > 0:
        now = min(now, store.whole[at.END, lists[at.BY_END, 0]])
        if counters[at.EXTENDS]:
            now = min(now, store.whole[at.EXPECTED_END, lists[at.RUNNING, 0]])
    return int(now)


@inner(allocates=False)
def _full(arriving: int, store: Store) -> int:
    """What array has to grow before an instant with so many arrivals, REACHED for none."""
    counters = store.counters
    if arriving > counters[at.N_FREE]:
        return SLOTS_FULL
    present = counters[at.N_RUNNING] + counters[at.LAST] - counters[at.FIRST] + arriving
    if counters[at.ENDED] + present > store.ends.shape[1]:
        return ENDS_FULL
    logged = max(counters[at.N_LEVELS] + 1, counters[at.N_HELD] + present)
    if max(logged, counters[at.N_DRAWS] + 2 * present) > store.logs.shape[1]:
        return LOGS_FULL
    return REACHED


@inner(allocates=False)
def _free_slots(store: Store) -> None:
    """Slots of jobs that ended since the last plan are free."""
    lists, counters = store.lists, store.counters
    for place in range(counters[at.N_GONE]):
        lists[at.FREE_SLOTS, counters[at.N_FREE]] = lists[at.GONE, place]
        counters[at.N_FREE] += 1
    counters[at.N_GONE] = 0


@inner(allocates=False)
def _note_use(now: int, store: Store) -> None:
    """The usage of machines and licenses (CS2 Eq. 15 to 18), and the log of both."""
    counters, logs = store.counters, store.logs
    unit = max(1, counters[at.PADDING])
    busy, held, arrived = counters[at.BUSY_CPUS], counters[at.HELD], counters[at.ARRIVED] > 0
    counters[at.ARRIVED] = 0
    active, required = busy // unit, (busy + counters[at.WAITING_CPUS]) // unit
    _add_usage(now, 0, at.SINCE, active, required, counters[at.CPUS_IN_ALL], arrived, store)
    copies = counters[at.COPIES_IN_ALL]
    if copies >= 0:
        asked = counters[at.REQUESTED]
        _add_usage(now, at.LICENSE_USAGE, at.LICENSES_SINCE, held, asked, copies, arrived, store)
    busy -= active * counters[at.PADDING]
    if busy != counters[at.LAST_BUSY] or held != counters[at.LAST_LICENSED]:
        place = counters[at.N_LEVELS]
        logs[at.LEVEL_TIME, place], logs[at.LEVEL_BUSY, place] = now, busy
        logs[at.LEVEL_HELD, place] = held
        counters[at.N_LEVELS] = place + 1
        counters[at.LAST_BUSY], counters[at.LAST_LICENSED] = busy, held


@inner(allocates=False)
def _add_usage(
    now: int,
    first: int,
    since: int,
    active: int,
    required: int,
    available: int,
    arrived: bool,
    store: Store,
) -> None:
    """From `now` on so much is active and so much asked for, active ones included.

    The usage is the mean over time of active / min(available, required), from plan to plan; time in
    which nothing is asked for does not count.
    """
    counters, usage = store.counters, store.measures
    share = usage[first + at.SHARE]
    if share >= 0:
        seconds = (now - counters[since]) / SECOND_US
        usage[first + at.PART_S] += share * seconds
        usage[first + at.WHOLE_S] += seconds
    wanted = min(required, available)
    usage[first + at.SHARE] = active / wanted if wanted > 0 else -1.0
    counters[since] = now
    if arrived:
        usage[first + at.ARRIVING_PART_S] = usage[first + at.PART_S]
        usage[first + at.ARRIVING_WHOLE_S] = usage[first + at.WHOLE_S]


# Arrivals


@inner(allocates=False)
def _admit(now: int, arrival: int, arrivals: Ints, store: Store) -> None:
    """Take the job into the queue, or reject it at once if no machine could ever run it."""
    counters, whole, real = store.counters, store.whole, store.real
    numbers = arrivals.view(np.float64)
    ram_mb = numbers[arrival, _RAM]
    if counters[at.HAS_MEMORY]:
        # To the next kilobyte, so that sums and differences are exact.
        ram_mb = np.ceil(ram_mb * 1024) / 1024
    processors = arrivals[arrival, _PROCESSORS] + counters[at.PADDING]
    bound, licenses = arrivals[arrival, _BOUND], arrivals[arrival, _LICENSES]
    if not _may_ever_run(processors, ram_mb, licenses, bound, store):
        record_end(arrivals[arrival, _ROW], REJECTED, now, store)
        return
    counters[at.N_FREE] -= 1
    slot = store.lists[at.FREE_SLOTS, counters[at.N_FREE]]
    for row in range(at.RESERVED):
        whole[row, slot] = 0
    whole[at.SERIAL, slot] = counters[at.NEXT_SERIAL]
    whole[at.SUBMIT, slot], whole[at.PROCESSORS, slot] = arrivals[arrival, _SUBMIT], processors
    whole[at.ESTIMATE, slot] = arrivals[arrival, _ESTIMATE]
    whole[at.DEADLINE, slot] = arrivals[arrival, _DEADLINE]
    whole[at.LICENSES, slot], whole[at.BOUND, slot] = licenses, bound
    whole[at.MACHINE, slot] = whole[at.RAN_ON, slot] = -1
    whole[at.START, slot] = whole[at.EXPECTED_END, slot] = NEVER
    whole[at.END, slot] = whole[at.FIRST_START, slot] = whole[at.LIMIT, slot] = NEVER
    whole[at.ARRIVAL, slot] = arrivals[arrival, _ARRIVAL]
    whole[at.USER, slot] = arrivals[arrival, _USER]
    whole[at.CHECKPOINTABLE, slot] = arrivals[arrival, _CHECKPOINTABLE]
    whole[at.RUN, slot], whole[at.ROW, slot] = arrivals[arrival, _RUN], arrivals[arrival, _ROW]
    whole[at.STATE, slot] = WAITING
    whole[at.ACCOUNT, slot] = arrivals[arrival, _ACCOUNT]
    real[at.REFERENCE_MIPS, slot], real[at.RAM_MB, slot] = numbers[arrival, _MIPS], ram_mb
    real[at.POWER, slot], real[at.INPUT_MB, slot] = (
        numbers[arrival, _POWER],
        numbers[arrival, _INPUT],
    )
    real[at.WATTS_BUSY, slot] = real[at.WATTS_IDLE, slot] = 0.0
    if counters[at.PREDICTS]:
        _predict(slot, store)
    counters[at.NEXT_SERIAL] += 1
    counters[at.ARRIVED] += 1
    counters[at.WAITING_CPUS] += processors
    counters[at.REQUESTED] += bits(licenses)
    enqueue(slot, store)


@inner(allocates=False)
def _may_ever_run(processors: int, ram_mb: float, licenses: int, bound: int, store: Store) -> bool:
    """Whether there is a machine for such a job when nothing else runs."""
    counters, machines = store.counters, store.machines
    if counters[at.HAS_MEMORY] == 0:
        ram_mb = 0.0
    if bound < 0 and licenses == 0 and ram_mb == 0.0:
        return bool(processors <= counters[at.WIDEST])
    if licenses & counters[at.NEVER_FREE]:
        return False
    for machine in range(machines.shape[1]):
        if (
            bound in (-1, machine)
            and processors <= machines[at.CPUS, machine]
            and ram_mb <= store.speeds[at.MACHINE_RAM, machine]
            and licenses & ~machines[at.MACHINE_LICENSES, machine] == 0
        ):
            return True
    return False


@inner(allocates=False)
def _predict(slot: int, store: Store) -> None:
    """The policy sees a prediction; a job is killed, if it is, by its user's estimate."""
    whole, history, account = store.whole, store.history, store.whole[at.ACCOUNT, slot]
    limit_us = whole[at.ESTIMATE, slot]
    if account >= 0 and history[2, account] >= 2:
        mean = (history[0, account] + history[1, account]) / 2
        predicted = max(1, int(np.rint(mean / store.real[at.REFERENCE_MIPS, slot])))
        whole[at.ESTIMATE, slot] = min(limit_us, predicted)
    if store.counters[at.KILLS]:
        whole[at.LIMIT, slot] = limit_us
        whole[at.FAILS, slot] = int(whole[at.RUN, slot] > limit_us)
        whole[at.RUN, slot] = min(whole[at.RUN, slot], limit_us)


# Plans


@inner(allocates=False)
def _carry_out(plan: Ints, now: int, store: Store) -> int:
    """Carry out a plan; OK, or what it breaks, with the job in ERROR_SLOT and its machine."""
    whole, counters, leaving = store.whole, store.counters, False
    for row in range(len(plan)):
        kind, slot = plan[row, 0], plan[row, 1]
        counters[at.ERROR_SLOT], counters[at.ERROR_MACHINE] = slot, plan[row, 2]
        problem = OK
        if not 0 <= slot < whole.shape[1]:
            problem = NOT_WAITING
        elif kind == KILL:
            problem = kill(slot, now, store)
        elif kind == PREEMPT:
            problem = preempt(slot, now, store)
        elif whole[at.STATE, slot] != WAITING:
            problem = NOT_WAITING
        else:
            whole[at.STATE, slot] = -1
            leaving = True
        if problem != OK:
            return problem
    if leaving:
        close_gaps(store)
    for row in range(len(plan)):
        kind, slot, machine = plan[row, 0], plan[row, 1], plan[row, 2]
        if kind == REJECT:
            reject(slot, now, store)
        elif kind == START:
            problem = start(slot, machine, now, store)
            if problem != OK:
                counters[at.ERROR_SLOT], counters[at.ERROR_MACHINE] = slot, machine
                return problem
    return OK


@inner()
def _plan_in_order(now: int, order: int, store: Store) -> int:
    """List the jobs to start of a policy that goes through the queue once; how many."""
    lists, counters = store.lists, store.counters
    queue = lists[at.QUEUE, counters[at.FIRST] : counters[at.LAST]]
    if len(queue) == 0:
        return 0
    packed = _packed(now, queue, store)
    if order == BY_DEADLINE:
        by = queue[np.argsort(store.whole[at.DEADLINE][queue], kind="mergesort")]
        return _list_starts(start_all_that_fit(packed, by), store)
    if order == SHORTEST_FIRST:
        by = queue[np.argsort(work_left_of(packed, queue), kind="mergesort")]
        return _list_starts(start_in_turn(packed, by), store)
    return _list_starts(start_in_turn(packed, queue), store)


@inner()
def _plan_backfilling(now: int, order: int, store: Store) -> int:
    """List the jobs that EASY starts; how many."""
    lists, counters = store.lists, store.counters
    queue = lists[at.QUEUE, counters[at.FIRST] : counters[at.LAST]]
    if len(queue) == 0:
        return 0
    packed = _packed(now, queue, store)
    started, _ = backfill(packed, queue, order == SHORTEST_FIRST, -1, True)
    return _list_starts(started, store)


@inner(allocates=False)
def _start_listed(count: int, now: int, store: Store) -> None:
    for place in range(count):
        slot, machine = store.lists[at.START_SLOT, place], store.lists[at.START_MACHINE, place]
        start(slot, machine, now, store)
    if count > 0:
        close_gaps(store)


@inner(allocates=False)
def _list_starts(started: Ints, store: Store) -> int:
    for place in range(started.shape[1]):
        store.lists[at.START_SLOT, place] = started[0, place]
        store.lists[at.START_MACHINE, place] = started[1, place]
    return int(started.shape[1])


@inner(allocates=False)
def _packed(now: int, queue: Ints, store: Store) -> PackedView:
    """What a policy's kernel sees of the store."""
    lists, counters = store.lists, store.counters
    return (
        now,
        store.machines[at.FREE],
        store.licenses[at.FREE_COPIES],
        queue,
        lists[at.RUNNING, : counters[at.N_RUNNING]],
        lists[at.GONE, :0],
        (store.whole, store.real),
        store.whole[at.CHECKPOINTABLE],
        (store.machines, store.speeds),
        store.speeds[at.FREE_RAM],
    )


# What is not part of an instant


@kernel(allocates=False)
def change_end(slot: int, now: int, blocks: Blocks) -> None:
    """The job, which runs, ends at `now` and not later."""
    end_at(slot, now, store_of(blocks))


@kernel(allocates=False)
def change_machine(machine: int, down: bool, now: int, blocks: Blocks) -> None:
    """A machine goes down or comes up; jobs that end now have ended. See `Core.machine_down`."""
    store = store_of(blocks)
    counters = store.counters
    if counters[at.N_RUNNING] > 0 or counters[at.FIRST] < counters[at.LAST]:
        counters[at.WAKE] = min(counters[at.WAKE], now)
    complete(now, store)
    if down:
        stop_machine(machine, now, store)
    else:
        restart_machine(machine, now, store)
    counters[at.NEXT_END] = next_end(store)
