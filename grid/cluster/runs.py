"""The life of a run: from its start on a machine to its end, or to where it is cut short.

All of it is compiled.
"""

from __future__ import annotations

import numpy as np

from grid.cluster import store as at
from grid.cluster.store import Store
from grid.model.arrays import Ints
from grid.model.compiled import inlined, inner
from grid.model.job import FINAL_STATES, JobState
from grid.model.time import NEVER, SECOND_US
from grid.policies.fitting import (
    at_size,
    book_licenses,
    licenses_fit,
    resources_fit,
    take_resources,
)

WAITING, RUNNING, ENDED = int(JobState.WAITING), int(JobState.RUNNING), 0
COMPLETED, FAILED, REJECTED, CANCELLED = map(int, FINAL_STATES)
(
    OK, NO_MACHINE, NO_CPUS, NO_RESOURCES, OTHER_MACHINE, NO_LICENSES, NOT_RUNNING, NOT_KILLED,
    NOT_WAITING,
) = range(9)  # fmt: skip
"""The rule that a plan violates, if any."""


@inner(allocates=False)
def duration(time_us: int, slot: int, machine: int, store: Store) -> int:
    """How long the machine takes for `time_us` on a CPU of the job's reference (CS2 Eq. 14)."""
    exact = time_us * store.real[at.REFERENCE_MIPS, slot] / store.speeds[at.MIPS, machine]
    return max(1, int(np.rint(exact)))


# Orders of slots


@inner(allocates=False)
def _ends_before(one: int, other: int, end: Ints, serial: Ints) -> bool:
    if end[one] != end[other]:
        return bool(end[one] < end[other])
    return bool(serial[one] < serial[other])


@inner(allocates=False)
def rise(slot: int, place: int, heap: Ints, end: Ints, serial: Ints) -> None:
    """Put the job into a heap by (end, serial number), at that place or nearer to the root."""
    while place > 0 and _ends_before(slot, heap[(place - 1) // 2], end, serial):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = slot


@inner(allocates=False)
def take_out(place: int, size: int, heap: Ints, end: Ints, serial: Ints) -> None:
    """Remove the job at that place of a heap, which has `size` jobs afterwards."""
    last = heap[size]
    if place == size:
        return
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _ends_before(heap[child + 1], heap[child], end, serial):
            child += 1
        if not _ends_before(heap[child], last, end, serial):
            break
        heap[place] = heap[child]
        place = child
    rise(last, place, heap, end, serial)


@inner(allocates=False)
def _rise(slot: int, place: int, store: Store) -> None:
    rise(slot, place, store.lists[at.BY_END], store.whole[at.END], store.whole[at.SERIAL])


@inner(allocates=False)
def end_at(slot: int, now: int, store: Store) -> None:
    """The running job ends at `now`, no later than it was to end."""
    place = 0
    while store.lists[at.BY_END, place] != slot:
        place += 1
    store.whole[at.END, slot] = now
    _rise(slot, place, store)


@inner(allocates=False)
def _place_of_running(slot: int, count: int, store: Store) -> int:
    """Where the job is, or belongs, among the `count` running jobs by (expected end, serial)."""
    whole, lists = store.whole, store.lists
    end, serial = whole[at.EXPECTED_END, slot], whole[at.SERIAL, slot]
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        other = lists[at.RUNNING, middle]
        other_end = whole[at.EXPECTED_END, other]
        if other_end < end or (other_end == end and whole[at.SERIAL, other] < serial):
            low = middle + 1
        else:
            high = middle
    return low


@inner(allocates=False)
def _insert_running(slot: int, count: int, store: Store) -> None:
    lists, place = store.lists, _place_of_running(slot, count, store)
    for later in range(count, place, -1):
        lists[at.RUNNING, later] = lists[at.RUNNING, later - 1]
    lists[at.RUNNING, place] = slot


@inner(allocates=False)
def _remove_running(slot: int, count: int, store: Store) -> None:
    lists = store.lists
    for place in range(_place_of_running(slot, count, store), count - 1):
        lists[at.RUNNING, place] = lists[at.RUNNING, place + 1]


@inner(allocates=False)
def enqueue(slot: int, store: Store) -> None:
    """The job waits, in its place by serial number."""
    lists, counters = store.lists, store.counters
    first, last = counters[at.FIRST], counters[at.LAST]
    if last == lists.shape[1]:
        for place in range(first, last):
            lists[at.QUEUE, place - first] = lists[at.QUEUE, place]
        first, last = 0, last - first
        counters[at.FIRST], counters[at.LAST] = first, last
    serial = store.whole[at.SERIAL, slot]
    while last > first and store.whole[at.SERIAL, lists[at.QUEUE, last - 1]] > serial:
        lists[at.QUEUE, last] = lists[at.QUEUE, last - 1]
        last -= 1
    lists[at.QUEUE, last] = slot
    counters[at.LAST] += 1


@inner(allocates=False)
def close_gaps(store: Store) -> None:
    """Remove the jobs that no longer wait from the queue."""
    queue, counters, state = (store.lists[at.QUEUE], store.counters, store.whole[at.STATE])
    first, last = counters[at.FIRST], counters[at.LAST]
    while first < last and state[queue[first]] != WAITING:
        first += 1
    counters[at.FIRST], counters[at.LAST] = (first, keep_waiting(queue, first, last, state))


@inner(allocates=False)
def keep_waiting(slots: Ints, first: int, last: int, state: Ints) -> int:
    """Remove the jobs that do not wait from a list; returns its new end."""
    kept = first
    for place in range(first, last):
        slot = slots[place]
        if state[slot] == WAITING:
            slots[kept] = slot
            kept += 1
    return kept


# Starts


@inner(allocates=False)
def start(slot: int, machine: int, now: int, store: Store) -> int:
    """The waiting job starts now; returns OK, or what forbids it."""
    counters, whole = store.counters, store.whole
    problem = _hold(slot, machine, store)
    if problem != OK:
        return problem
    counters[at.WAITING_CPUS] -= _requested(slot, store)
    if whole[at.SIZES, slot] > 0:
        _fix_size(slot, store)
    _resume(slot, machine, store)
    whole[at.BOOT, slot] = 0
    if store.machines[at.OFF_AFTER, machine] >= 0:
        boot_us = _switch_on(machine, now, store)
        whole[at.BOOT, slot] = boot_us
        whole[at.OVERHEAD, slot] += boot_us
    whole[at.START, slot] = now
    if whole[at.FIRST_START, slot] == NEVER:
        whole[at.FIRST_START, slot] = now
    begins = now + whole[at.OVERHEAD, slot]
    expected, end = (begins + whole[at.LEFT_ESTIMATE, slot], begins + whole[at.LEFT, slot])
    if counters[at.EXTENDS] == 0:
        end = min(end, expected)
    whole[at.EXPECTED_END, slot], whole[at.END, slot] = expected, end
    whole[at.STATE, slot] = RUNNING
    _insert_running(slot, counters[at.N_RUNNING], store)
    _rise(slot, counters[at.N_RUNNING], store)
    counters[at.N_RUNNING] += 1
    return OK


@inlined
def _requested(slot: int, store: Store) -> int:
    """The CPUs that a waiting job requests."""
    if store.whole[at.SIZES, slot] > 0:
        return int(store.real[at.REQUESTS + store.counters[at.N_RESOURCES], slot])
    return int(store.whole[at.PROCESSORS, slot])


@inner(allocates=False)
def _fix_size(slot: int, store: Store) -> None:
    """A moldable job starts: it keeps its size from now on."""
    whole, resources = store.whole, store.counters[at.N_RESOURCES]
    row = at.REQUESTS + resources
    while store.real[row, slot] != whole[at.PROCESSORS, slot]:
        row += 2 + resources
    factor = store.real[row + 1, slot]
    whole[at.RUN, slot] = at_size(whole[at.RUN, slot], factor)
    if whole[at.LIMIT, slot] < NEVER:
        whole[at.LIMIT, slot] = at_size(whole[at.LIMIT, slot], factor)
    whole[at.SIZES, slot] = -1


@inner(allocates=False)
def _hold(slot: int, machine: int, store: Store) -> int:
    """Take the CPUs, resources and licenses that the job requests; OK, or what is missing."""
    whole, machines, resources = store.whole, store.machines, store.counters[at.N_RESOURCES]
    bound, licenses = whole[at.BOUND, slot], whole[at.LICENSES, slot]
    if not 0 <= machine < machines.shape[1]:
        return NO_MACHINE
    if machines[at.FREE, machine] < whole[at.PROCESSORS, slot]:
        return NO_CPUS
    free = store.speeds[at.AMOUNTS + resources :]
    if not resources_fit(slot, machine, store.real[at.REQUESTS :], free, 0, resources):
        return NO_RESOURCES
    if bound not in (-1, machine):
        return OTHER_MACHINE
    users, copies = store.licenses[at.USERS :], store.licenses[at.FREE_COPIES]
    is_able = licenses & ~machines[at.MACHINE_LICENSES, machine] == 0
    if not is_able or not licenses_fit(licenses, machine, users, copies):
        return NO_LICENSES
    _book(slot, machine, 1, store)
    return OK


@inner(allocates=False)
def _book(slot: int, machine: int, sign: int, store: Store) -> None:
    """The job begins to hold what it requests of the machine, or ends to, with `sign` -1."""
    whole, counters, resources = store.whole, store.counters, store.counters[at.N_RESOURCES]
    store.machines[at.FREE, machine] -= sign * whole[at.PROCESSORS, slot]
    counters[at.BUSY_CPUS] += sign * whole[at.PROCESSORS, slot]
    free = store.speeds[at.AMOUNTS + resources : at.AMOUNTS + 2 * resources]
    requests = store.real[at.REQUESTS :]
    take_resources(slot, machine, sign, requests, free, counters[at.N_SHARED])
    users, copies = store.licenses[at.USERS :], store.licenses[at.FREE_COPIES]
    counters[at.HELD] += book_licenses(whole[at.LICENSES, slot], machine, sign, users, copies)


@inner(allocates=False)
def _resume(slot: int, machine: int, store: Store) -> None:
    """Set what is left of the job on `machine`, from the start or from where it was."""
    whole, counters = store.whole, store.counters
    before = whole[at.MACHINE, slot]
    if before >= 0:
        again = counters[at.RESUME_US] if before == machine else counters[at.MOVE_US]
        whole[at.OVERHEAD, slot] = counters[at.SUSPEND_US] + again
    if before == machine:
        return
    whole[at.MACHINE, slot] = machine
    ran_on = whole[at.RAN_ON, slot]
    if ran_on not in (-1, machine):
        counters[at.MOVES] += 1
    whole[at.RAN_ON, slot] = machine
    if before >= 0 and whole[at.CHECKPOINTABLE, slot]:
        moved = store.speeds[at.MIPS, before] / store.speeds[at.MIPS, machine]
        whole[at.LEFT, slot] = max(1, int(np.rint(whole[at.LEFT, slot] * moved)))
        left = whole[at.LEFT_ESTIMATE, slot]
        whole[at.LEFT_ESTIMATE, slot] = max(1, int(np.rint(left * moved)))
        return
    whole[at.LEFT, slot] = duration(whole[at.RUN, slot], slot, machine, store)
    whole[at.LEFT_ESTIMATE, slot] = duration(whole[at.ESTIMATE, slot], slot, machine, store)
    if before >= 0:
        _lose_work(slot, store)


@inner(allocates=False)
def _switch_on(machine: int, now: int, store: Store) -> int:
    """A job is started there: for how long it has to wait until the machine has booted.

    All machines are on and idle at time 0. A machine boots to the end, even if the job that it
    boots for is preempted.
    """
    machines, logs, counters = store.machines, store.logs, store.counters
    idle_since = machines[at.IDLE_SINCE, machine]
    if idle_since <= now:
        place = counters[at.N_HELD]
        was_off = now - idle_since > machines[at.OFF_AFTER, machine]
        counters[at.BOOTS] += int(was_off)
        logs[at.HELD_MACHINE, place], logs[at.HELD_START, place] = machine, now
        logs[at.HELD_READY, place] = now + (machines[at.BOOT_TIME, machine] if was_off else 0)
        machines[at.LAST_HELD, machine] = place
        counters[at.N_HELD] += 1
    place = machines[at.LAST_HELD, machine]
    logs[at.HELD_END, place] = machines[at.IDLE_SINCE, machine] = NEVER
    return int(max(0, logs[at.HELD_READY, place] - now))


# Ends


@inner(allocates=False)
def _lose_work(slot: int, store: Store) -> None:
    """The job restarts from zero when it runs again."""
    whole = store.whole
    whole[at.DONE, slot] = 0
    whole[at.RESTARTS, slot] += 1
    whole[at.LOST, slot] += whole[at.KEPT, slot]
    whole[at.KEPT, slot] = 0


@inner(allocates=False)
def _stop(slot: int, now: int, store: Store) -> int:
    """A run ends or is cut short: book its time and release what it holds; returns its progress."""
    whole, counters, machines = store.whole, store.counters, store.machines
    _remove_running(slot, counters[at.N_RUNNING], store)
    place = 0
    while store.lists[at.BY_END, place] != slot:
        place += 1
    counters[at.N_RUNNING] -= 1
    heap, end, serial = store.lists[at.BY_END], whole[at.END], whole[at.SERIAL]
    take_out(place, counters[at.N_RUNNING], heap, end, serial)
    machine = whole[at.MACHINE, slot]
    ran = now - whole[at.START, slot]
    overhead = min(ran, whole[at.OVERHEAD, slot])
    whole[at.KEPT, slot] += ran - overhead
    whole[at.LOST, slot] += overhead
    processors = whole[at.PROCESSORS, slot] - counters[at.PADDING]
    machines[at.BUSY, machine] += ran * processors
    resources = counters[at.N_RESOURCES]
    for number in range(resources):
        held = store.real[at.REQUESTS + number, slot] * ran / SECOND_US
        store.speeds[at.AMOUNTS + 2 * resources + number, machine] += held
    if counters[at.LOGS_DRAW]:
        _log_draw(slot, machine, ran, processors, now, store)
    whole[at.BOOT, slot] = 0
    _release(slot, machine, now, store)
    return int(ran - overhead)


@inner(allocates=False)
def _log_draw(slot: int, machine: int, ran: int, processors: int, now: int, store: Store) -> None:
    """What the run has drawn beyond what idle CPUs would, boots apart."""
    whole, real, counters = store.whole, store.real, store.counters
    booted = min(ran, whole[at.BOOT, slot])
    busy, idle = (store.speeds[at.BUSY_WATTS, machine], store.speeds[at.IDLE_WATTS, machine])
    real[at.WATTS_BUSY, slot] += (ran - booted) * busy
    real[at.WATTS_IDLE, slot] += (ran - booted) * idle
    watts = processors * (busy * real[at.POWER, slot] - idle)
    place = counters[at.N_DRAWS]
    store.logs[at.DRAW_TIME, place] = whole[at.START, slot] + booted
    store.logs[at.DRAW_TIME, place + 1] = now
    store.draws[place], store.draws[place + 1] = watts, -watts
    counters[at.N_DRAWS] = place + 2


@inner(allocates=False)
def _release(slot: int, machine: int, now: int, store: Store) -> None:
    """Give back the CPUs, resources and licenses that the job holds."""
    machines = store.machines
    _book(slot, machine, -1, store)
    is_empty = machines[at.FREE, machine] == machines[at.CPUS, machine]
    held = machines[at.LAST_HELD, machine]
    if is_empty and held >= 0:
        free_us = max(now, store.logs[at.HELD_READY, held])
        store.logs[at.HELD_END, held] = machines[at.IDLE_SINCE, machine] = free_us


@inner(allocates=False)
def record_end(row: int, state: int, now: int, store: Store) -> int:
    """Add an outcome of a job that has never run, without its watts; returns its place."""
    ends, place = store.ends, store.counters[at.ENDED]
    ends[place, at.ENDED_ROW], ends[place, at.ENDED_STATE] = row, state
    ends[place, at.ENDED_MACHINE], ends[place, at.ENDED_START] = -1, -1
    ends[place, at.ENDED_END] = now
    for column in range(at.ENDED_PREEMPTIONS, at.ENDED_CPUS + 1):
        ends[place, column] = 0
    store.counters[at.ENDED] = place + 1
    return int(place)


@inner(allocates=False)
def _end(slot: int, state: int, now: int, store: Store) -> None:
    """The job, which has stopped, leaves the cluster."""
    whole, real, ends = store.whole, store.real, store.ends
    whole[at.STATE, slot], whole[at.END, slot] = ENDED, NEVER
    store.counters[at.REQUESTED] -= bits(whole[at.LICENSES, slot])
    began, held = (whole[at.FIRST_START, slot], whole[at.KEPT, slot] + whole[at.LOST, slot])
    place = record_end(whole[at.ROW, slot], state, now, store)
    ends[place, at.ENDED_MACHINE] = whole[at.RAN_ON, slot]
    ends[place, at.ENDED_START] = -1 if began == NEVER else began
    if whole[at.SIZES, slot] < 0:
        ends[place, at.ENDED_CPUS] = whole[at.PROCESSORS, slot] - store.counters[at.PADDING]
    ends[place, at.ENDED_PREEMPTIONS] = whole[at.PREEMPTIONS, slot]
    ends[place, at.ENDED_RESTARTS] = whole[at.RESTARTS, slot]
    ends[place, at.ENDED_LOST], ends[place, at.ENDED_HELD] = whole[at.LOST, slot], held
    watts = ends.view(np.float64)
    watts[place, at.ENDED_BUSY_WATTS] = real[at.WATTS_BUSY, slot] / max(held, 1)
    watts[place, at.ENDED_IDLE_WATTS] = real[at.WATTS_IDLE, slot] / max(held, 1)


@inner(allocates=False)
def _leave(slot: int, store: Store) -> None:
    """The job is one of those that ended since the last plan; its slot is not free yet."""
    store.lists[at.GONE, store.counters[at.N_GONE]] = slot
    store.counters[at.N_GONE] += 1


@inner(allocates=False)
def bits(mask: int) -> int:
    count = 0
    while mask:
        count += mask & 1
        mask >>= 1
    return count


@inner(allocates=False)
def complete(now: int, store: Store) -> None:
    """End the jobs whose time has come, and extend the estimates of those that passed theirs."""
    whole, lists, counters = store.whole, store.lists, store.counters
    while counters[at.N_RUNNING] > 0:
        slot = lists[at.BY_END, 0]
        if whole[at.END, slot] > now:
            break
        _stop(slot, now, store)
        is_over = whole[at.LEFT, slot] > whole[at.LEFT_ESTIMATE, slot]
        killed = whole[at.FAILS, slot] or (counters[at.EXTENDS] == 0 and is_over)
        account = whole[at.ACCOUNT, slot]
        if counters[at.PREDICTS] and account >= 0:
            history = store.history
            history[0, account] = history[1, account]
            history[1, account] = whole[at.RUN, slot] * store.real[at.REFERENCE_MIPS, slot]
            history[2, account] += 1.0
        _end(slot, FAILED if killed else COMPLETED, now, store)
        _leave(slot, store)
    if counters[at.EXTENDS]:
        _extend_estimates(now, store)


@inner(allocates=False)
def _extend_estimates(now: int, store: Store) -> None:
    """A job that has exceeded its estimate is expected to run for as long again as so far."""
    whole, counters = store.whole, store.counters
    count = counters[at.N_RUNNING]
    while count > 0:
        slot = store.lists[at.RUNNING, 0]
        if whole[at.EXPECTED_END, slot] > now:
            return
        _remove_running(slot, count, store)
        expected = now + max(1, now - whole[at.START, slot])
        if whole[at.LIMIT, slot] < NEVER:
            # Boots, preemptions and what was done before them are in its end.
            machine = whole[at.MACHINE, slot]
            beyond = duration(whole[at.LIMIT, slot], slot, machine, store)
            beyond -= duration(whole[at.RUN, slot], slot, machine, store)
            expected = min(expected, whole[at.END, slot] + beyond)
        whole[at.EXPECTED_END, slot] = expected
        _insert_running(slot, count - 1, store)


@inner(allocates=False)
def preempt(slot: int, now: int, store: Store) -> int:
    """The job, if it runs, waits again in its old place of the queue; OK, or NOT_RUNNING."""
    whole, counters = store.whole, store.counters
    if whole[at.STATE, slot] != RUNNING:
        return NOT_RUNNING
    machine, expected = whole[at.MACHINE, slot], whole[at.EXPECTED_END, slot]
    worked = _stop(slot, now, store)
    whole[at.LEFT, slot] -= worked
    if worked:
        whole[at.LEFT_ESTIMATE, slot] = expected - now
    left = whole[at.LEFT_ESTIMATE, slot] * store.speeds[at.MIPS, machine]
    left_estimate = int(np.rint(left / store.real[at.REFERENCE_MIPS, slot]))
    whole[at.DONE, slot] = whole[at.ESTIMATE, slot] - left_estimate
    whole[at.EXPECTED_END, slot] = whole[at.END, slot] = NEVER
    whole[at.STATE, slot] = WAITING
    whole[at.PREEMPTIONS, slot] += 1
    counters[at.WAITING_CPUS] += whole[at.PROCESSORS, slot]
    enqueue(slot, store)
    return OK


@inner(allocates=False)
def kill(slot: int, state: int, now: int, store: Store) -> int:
    """The job ends in that state, if it runs; OK, or NOT_KILLED."""
    if store.whole[at.STATE, slot] != RUNNING:
        return NOT_KILLED
    _stop(slot, now, store)
    _end(slot, state, now, store)
    _leave(slot, store)
    return OK


@inner(allocates=False)
def reject(slot: int, now: int, store: Store) -> None:
    """The plan rejects the waiting job; its slot is free at once."""
    counters = store.counters
    counters[at.WAITING_CPUS] -= _requested(slot, store)
    began = store.whole[at.FIRST_START, slot] < NEVER
    _end(slot, FAILED if began else REJECTED, now, store)
    store.lists[at.FREE_SLOTS, counters[at.N_FREE]] = slot
    counters[at.N_FREE] += 1


@inner(allocates=False)
def cancel(slot: int, now: int, store: Store) -> None:
    """The job, which waits and has never started, leaves the queue."""
    store.counters[at.WAITING_CPUS] -= _requested(slot, store)
    _end(slot, CANCELLED, now, store)
    _leave(slot, store)


@inner(allocates=False)
def stop_machine(machine: int, now: int, store: Store) -> None:
    """The machine goes down: see `interrupt`."""
    machines = store.machines
    interrupt(machine, -1, now, store)
    machines[at.FREE, machine] = 0
    held = machines[at.LAST_HELD, machine]
    if held >= 0:
        for row in (at.HELD_READY, at.HELD_END):
            store.logs[row, held] = min(store.logs[row, held], now)


@inner(allocates=False)
def interrupt(machine: int, resource: int, now: int, store: Store) -> None:
    """Jobs there are preempted, and what was done there is lost unless it is checkpointable.

    Unless `resource` is -1, only those that request some of it.
    """
    whole, lists, counters = store.whole, store.lists, store.counters
    requests = store.real[at.REQUESTS :]
    place = 0
    while place < counters[at.N_RUNNING]:
        slot = lists[at.RUNNING, place]
        is_meant = resource < 0 or requests[resource, slot] > 0
        if whole[at.MACHINE, slot] == machine and is_meant:
            preempt(slot, now, store)
        else:
            place += 1
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = lists[at.QUEUE, place]
        is_meant = resource < 0 or requests[resource, slot] > 0
        if whole[at.MACHINE, slot] == machine and is_meant and not whole[at.CHECKPOINTABLE, slot]:
            _lose_work(slot, store)
            whole[at.MACHINE, slot], whole[at.START, slot] = -1, NEVER
            whole[at.OVERHEAD, slot] = 0


@inner(allocates=False)
def restart_machine(machine: int, now: int, store: Store) -> None:
    """The machine is up again, on and idle."""
    store.machines[at.FREE, machine] = store.machines[at.CPUS, machine]
    if store.machines[at.OFF_AFTER, machine] >= 0:
        store.machines[at.IDLE_SINCE, machine] = now
