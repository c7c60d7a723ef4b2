"""The event loop of a cluster: compiled, up to a time bound or to the next plan of a policy.

An instant has its completions, then its arrivals, then one plan. A policy that declares a kernel
plans within the loop; for all others the loop returns ASK, and the next call carries out the plan.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from grid.cluster import runs
from grid.cluster import store as at
from grid.cluster.arrivals import NAMES
from grid.cluster.store import (
    ASK,
    ENDS_FULL,
    LOGS_FULL,
    REACHED,
    SLOTS_FULL,
    Blocks,
    Store,
    jobs_of,
    store_of,
)
from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER, SECOND_US
from grid.policies.columns import KILL, PREEMPT, REJECT, RESERVE, START, WAKE, CompiledView
from grid.policies.interface import Machines
from grid.policies.queue import kernel_named

_PROCESSORS, _LICENSES, _BOUND, _ARRIVAL, _PREDICTED, _ROW = (
    NAMES.index(name)
    for name in ("processors", "licenses", "bound_machine", "arrival_us", "predicted_us", "row")
)
_COPIED = tuple((NAMES.index(name), row) for name, row in at.COPIED.items())
_COPIED_REAL = tuple((NAMES.index(name), row) for name, row in at.COPIED_REAL.items())
_REQUESTS = len(NAMES)
NO_ROW = -(1 << 62)
"""Plus the number of a window, in the place of a job's row, which is negative for routed jobs."""


@kernel(allocates=False)
def advance(
    until: int, first: int, end: int, blocks: Blocks, arrivals: Ints, rows: Ints, count: int
) -> int:
    """Execute `count` rows of a plan, if one was requested, and simulate up to the next plan.

    Positions `first` to before `end` of `arrivals` are to arrive; NEXT_ARRIVAL is left at the first
    that has not. For `rows` see `grid.policies.columns`. Returns ASK, REACHED if no plan is needed
    before `until`, which array has to grow, or the negative of what the plan breaks.
    """
    store = store_of(blocks)
    counters = store.counters
    counters[at.NEXT_ARRIVAL] = first
    if counters[at.IS_ASKED]:
        counters[at.IS_ASKED] = 0
        problem = _carry_out(rows[:count], store)
        if problem != runs.OK:
            return -problem
    reached = _to_next_plan(until, end, arrivals, store)
    counters[at.IS_ASKED] = reached == ASK
    return reached


@cache
def loop_of(name: str) -> Any:
    """`advance` with the kernel of that name as the policy, whole windows in one call.

    It has two more arguments in the place of `count`: see `CompiledForm`.
    """
    plan = kernel_named(name)

    @kernel(allocates=False)
    def advance_with_plans(
        until: int,
        first: int,
        end: int,
        blocks: Blocks,
        arrivals: Ints,
        rows: Ints,
        settings: Floats,
        memory: Ints,
    ) -> int:
        store = store_of(blocks)
        store.counters[at.NEXT_ARRIVAL] = first
        while True:
            reached = _to_next_plan(until, end, arrivals, store)
            if reached != ASK:
                return reached
            count = plan(_view_of(store), settings, memory, rows)
            _carry_out(rows[:count], store)

    return advance_with_plans


@inner(allocates=False)
def _to_next_plan(until: int, end: int, arrivals: Ints, store: Store) -> int:
    """Complete and admit the jobs of the next instant before `until`; see `advance`."""
    counters = store.counters
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
    runs.complete(now, store)
    for arrival in range(upcoming, last):
        _admit(now, arrival, arrivals, store)
    counters[at.NEXT_ARRIVAL], counters[at.NOW], counters[at.WAKE] = last, now, NEVER
    return ASK


@inner(allocates=False)
def next_end(store: Store) -> int:
    """When a job ends or exceeds an extended estimate, or a policy requested a plan."""
    counters, lists = store.counters, store.lists
    now = counters[at.WAKE]
    if counters[at.N_RUNNING] > 0:
        now = min(now, store.whole[at.END, lists[at.BY_END, 0]])
        if counters[at.EXTENDS]:
            now = min(now, store.whole[at.EXPECTED_END, lists[at.RUNNING, 0]])
    return int(now)


@inner(allocates=False)
def _full(arriving: int, store: Store) -> int:
    """Which array has to grow before an instant with `arriving` arrivals, REACHED for none."""
    counters = store.counters
    if arriving > counters[at.N_FREE]:
        return SLOTS_FULL
    present = counters[at.N_RUNNING] + counters[at.LAST] - counters[at.FIRST] + arriving
    if counters[at.ENDED] + present > len(store.ends):
        return ENDS_FULL
    logged = max(counters[at.N_LEVELS] + 1, counters[at.N_HELD] + present)
    if max(logged, counters[at.N_DRAWS] + 2 * present) > store.logs.shape[1]:
        return LOGS_FULL
    return REACHED


@inner(allocates=False)
def _note_use(now: int, store: Store) -> None:
    """The usage of machines and licenses (CS2 Eq. 15 to 18), and the log of both."""
    counters, logs = store.counters, store.logs
    unit = max(1, counters[at.PADDING])
    busy, held, arrived = (counters[at.BUSY_CPUS], counters[at.HELD], counters[at.ARRIVED] > 0)
    counters[at.ARRIVED] = 0
    active, required = busy // unit, (busy + counters[at.WAITING_CPUS]) // unit
    available, usage = counters[at.CPUS_IN_ALL], store.measures
    add_usage(now, 0, at.SINCE, active, required, available, arrived, counters, usage)
    available = counters[at.COPIES_IN_ALL]
    if available >= 0:
        required, first, since = (counters[at.REQUESTED], at.LICENSE_USAGE, at.LICENSES_SINCE)
        add_usage(now, first, since, held, required, available, arrived, counters, usage)
    busy -= active * counters[at.PADDING]
    if busy != counters[at.LAST_BUSY] or held != counters[at.LAST_LICENSED]:
        place = counters[at.N_LEVELS]
        logs[at.LEVEL_TIME, place], logs[at.LEVEL_BUSY, place] = now, busy
        logs[at.LEVEL_HELD, place] = held
        counters[at.N_LEVELS] = place + 1
        counters[at.LAST_BUSY], counters[at.LAST_LICENSED] = busy, held


@inner(allocates=False)
def add_usage(
    now: int,
    first: int,
    since: int,
    active: int,
    required: int,
    available: int,
    arrived: bool,
    counters: Ints,
    usage: Floats,
) -> None:
    """From `now` on, so much is active, and so much required, active ones included.

    The usage is the mean over time of active / min(available, required), from plan to plan; time in
    which nothing is required does not count.
    """
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
    numbers, resources = arrivals.view(np.float64), counters[at.N_RESOURCES]
    processors = arrivals[arrival, _PROCESSORS] + counters[at.PADDING]
    bound, licenses = arrivals[arrival, _BOUND], arrivals[arrival, _LICENSES]
    requests = numbers[arrival, _REQUESTS : _REQUESTS + resources]
    if not _may_ever_run(processors, requests, licenses, bound, store):
        place = runs.record_end(arrivals[arrival, _ROW], runs.REJECTED, now, store)
        store.ends[place, at.ENDED_BUSY_WATTS] = store.ends[place, at.ENDED_IDLE_WATTS] = 0
        return
    counters[at.N_FREE] -= 1
    slot = store.lists[at.FREE_SLOTS, counters[at.N_FREE]]
    for row in range(at.RESERVED):
        whole[row, slot] = 0
    for column, row in _COPIED:
        whole[row, slot] = arrivals[arrival, column]
    for column, row in _COPIED_REAL:
        real[row, slot] = numbers[arrival, column]
    whole[at.SERIAL, slot], whole[at.PROCESSORS, slot] = counters[at.NEXT_SERIAL], processors
    whole[at.MACHINE, slot] = whole[at.RAN_ON, slot] = -1
    whole[at.START, slot] = whole[at.EXPECTED_END, slot] = NEVER
    whole[at.END, slot] = whole[at.FIRST_START, slot] = whole[at.LIMIT, slot] = NEVER
    whole[at.STATE, slot] = runs.WAITING
    for number in range(resources):
        real[at.REQUESTS + number, slot] = requests[number]
    if counters[at.N_REQUESTS] > resources:
        _set_sizes(slot, numbers[arrival, _REQUESTS + resources :], store)
    real[at.WATTS_BUSY, slot] = real[at.WATTS_IDLE, slot] = 0.0
    if counters[at.PREDICTS]:
        _predict(slot, arrivals[arrival, _PREDICTED], store)
    whole[at.REQUESTED_ESTIMATE, slot] = whole[at.ESTIMATE, slot]
    counters[at.NEXT_SERIAL] += 1
    counters[at.ARRIVED] += 1
    counters[at.WAITING_CPUS] += processors
    counters[at.REQUESTED] += runs.bits(licenses)
    runs.enqueue(slot, store)


@inner(allocates=False)
def _set_sizes(slot: int, given: Floats, store: Store) -> None:
    """The sizes of a job, if it is moldable: see `Arrivals`."""
    first, each = at.REQUESTS + store.counters[at.N_RESOURCES], 2 + store.counters[at.N_RESOURCES]
    for place in range(0, len(given), each):
        for row in range(place, place + each):
            store.real[first + row, slot] = given[row]
        if given[place] > 0:
            store.real[first + place, slot] += store.counters[at.PADDING]
            store.whole[at.SIZES, slot] += 1


@inner(allocates=False)
def _may_ever_run(
    processors: int, requests: Floats, licenses: int, bound: int, store: Store
) -> bool:
    """Whether a machine could run such a job if nothing else ran."""
    counters, machines = store.counters, store.machines
    if bound < 0 and licenses == 0 and not requests.any():
        return bool(processors <= counters[at.WIDEST])
    if licenses & counters[at.NEVER_FREE]:
        return False
    for machine in range(machines.shape[1]):
        if (
            bound in (-1, machine)
            and processors <= machines[at.CPUS, machine]
            and licenses & ~machines[at.MACHINE_LICENSES, machine] == 0
        ):
            enough = True
            for number in range(len(requests)):
                enough &= requests[number] <= store.speeds[at.AMOUNTS + number, machine]
            if enough:
                return True
    return False


@inner(allocates=False)
def _predict(slot: int, given: int, store: Store) -> None:
    """The policy sees a prediction, that of the job if it is `given` (above 0).

    A job is killed, if it is, by its user's estimate.
    """
    whole, history, account = store.whole, store.history, store.whole[at.ACCOUNT, slot]
    limit_us = whole[at.ESTIMATE, slot]
    if given > 0:
        whole[at.ESTIMATE, slot] = min(limit_us, given)
    elif account >= 0 and history[2, account] >= 2:
        mean = (history[0, account] + history[1, account]) / 2
        predicted = max(1, int(np.rint(mean / store.real[at.REFERENCE_MIPS, slot])))
        whole[at.ESTIMATE, slot] = min(limit_us, predicted)
    if store.counters[at.KILLS]:
        whole[at.LIMIT, slot] = limit_us
        whole[at.FAILS, slot] = int(whole[at.RUN, slot] > limit_us)
        whole[at.RUN, slot] = min(whole[at.RUN, slot], limit_us)


# Plans


@inner(allocates=False)
def _carry_out(rows: Ints, store: Store) -> int:
    """Execute a plan; OK, or the rule that it violates, with the job in ERROR_SLOT and its
    machine."""
    counters, now = store.counters, store.counters[at.NOW]
    for place in range(counters[at.N_GONE]):
        store.lists[at.FREE_SLOTS, counters[at.N_FREE]] = store.lists[at.GONE, place]
        counters[at.N_FREE] += 1
    counters[at.N_GONE] = 0
    leaving = False
    for row in rows:
        counters[at.ERROR_SLOT], counters[at.ERROR_MACHINE] = row[1], row[2]
        problem = _stop_or_mark(row, now, store)
        if problem != runs.OK:
            return problem
        leaving |= row[0] in (REJECT, START)
    if leaving:
        runs.close_gaps(store)
    for row in rows:
        if row[0] == REJECT:
            runs.reject(row[1], now, store)
        elif row[0] == START:
            counters[at.ERROR_SLOT], counters[at.ERROR_MACHINE] = row[1], row[2]
            problem = runs.start(row[1], row[2], now, store)
            if problem != runs.OK:
                return problem
    _note_use(now, store)
    return runs.OK


@inner(allocates=False)
def _stop_or_mark(row: Ints, now: int, store: Store) -> int:
    """Kill or preempt the job of a row, or mark that it no longer waits; OK, or the violated
    rule."""
    kind, slot, state = row[0], row[1], store.whole[at.STATE]
    if kind == WAKE:
        store.counters[at.WAKE] = row[3]
    elif kind != RESERVE:
        if not 0 <= slot < len(state):
            return runs.NOT_WAITING
        if kind == KILL:
            return runs.kill(slot, runs.FAILED, now, store)
        if kind == PREEMPT:
            return runs.preempt(slot, now, store)
        if state[slot] != runs.WAITING:
            return runs.NOT_WAITING
        state[slot] = -1
    return runs.OK


@inner(allocates=False)
def _view_of(store: Store) -> CompiledView:
    """The part of the store that a policy's kernel reads."""
    lists, counters = store.lists, store.counters
    cells, speeds, resources = store.machines, store.speeds, counters[at.N_RESOURCES]
    free = at.AMOUNTS + resources
    return CompiledView(
        counters[at.NOW],
        cells[at.FREE],
        store.licenses[at.FREE_COPIES],
        lists[at.QUEUE, counters[at.FIRST] : counters[at.LAST]],
        lists[at.RUNNING, : counters[at.N_RUNNING]],
        lists[at.GONE, : counters[at.N_GONE]],
        jobs_of(store, resources),
        Machines(
            cells[0],
            cells[1],
            cells[2],
            speeds[at.MIPS],
            speeds[at.AMOUNTS : free],
            counters[at.N_SHARED],
            store.windows,
        ),
        speeds[free : free + resources],
    )


# What is not part of an instant


@kernel(allocates=False)
def change_end(slot: int, now: int, blocks: Blocks) -> None:
    """The running job ends at `now` instead of later."""
    runs.end_at(slot, now, store_of(blocks))


@kernel(allocates=False)
def change_machine(machine: int, down: bool, now: int, blocks: Blocks) -> None:
    """A machine goes down or comes up; jobs that end now have ended. See `Core.machine_down`."""
    store = store_of(blocks)
    _before_change(now, store)
    if down:
        runs.stop_machine(machine, now, store)
    else:
        runs.restart_machine(machine, now, store)
    store.counters[at.NEXT_END] = next_end(store)


@kernel(allocates=False)
def cancel_job(row: int, running: bool, now: int, blocks: Blocks) -> None:
    """The job of that row is cancelled if it waits and has never started, or with `running`.

    From NO_ROW on none is, but a window begins or ends: there is a plan. If all CPUs of a machine
    are reserved, jobs that may not use them are interrupted.
    """
    store = store_of(blocks)
    counters = store.counters
    if row < NO_ROW + len(store.windows):
        _before_change(now, store)
        machine, start, _, cpus, resource = store.windows[row - NO_ROW]
        if now == start and resource >= 0 and cpus == store.speeds[at.AMOUNTS + resource, machine]:
            runs.interrupt(machine, resource, now, store)
        counters[at.NEXT_END] = next_end(store)
        return
    for place in range(counters[at.N_RUNNING] if running else 0):
        slot = store.lists[at.RUNNING, place]
        if store.whole[at.ROW, slot] == row:
            _before_change(now, store)
            if store.whole[at.STATE, slot] == runs.RUNNING:
                runs.kill(slot, runs.CANCELLED, now, store)
            counters[at.NEXT_END] = next_end(store)
            return
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = store.lists[at.QUEUE, place]
        if store.whole[at.ROW, slot] == row:
            if running or store.whole[at.FIRST_START, slot] == NEVER:
                _before_change(now, store)
                runs.cancel(slot, now, store)
                runs.close_gaps(store)
                counters[at.NEXT_END] = next_end(store)
            return


@inner(allocates=False)
def _before_change(now: int, store: Store) -> None:
    """Jobs that end now have ended, and there is a plan now if there are jobs."""
    counters = store.counters
    if counters[at.N_RUNNING] > 0 or counters[at.FIRST] < counters[at.LAST]:
        counters[at.WAKE] = min(counters[at.WAKE], now)
    runs.complete(now, store)
