"""The engine of a cluster: owns the arrays, and calls Python policies between calls of the loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify
from itertools import count
from struct import Struct
from typing import Any

import numpy as np

from grid.cluster import loop, runs
from grid.cluster import store as at
from grid.cluster.arrivals import Estimates
from grid.cluster.pool import loop as pool_loop
from grid.cluster.state import NOT_MEASURED, ClusterState, PlanError, TimedPlans
from grid.cluster.store import Store, blocks_of
from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobOutcome, dtypes, rounded
from grid.model.platform import Beneficiaries, Cluster, MachineOutage
from grid.model.plugins.calls import label_of
from grid.model.records import Draw, HeldTimes, Levels
from grid.model.time import NEVER, Time
from grid.policies.columns import (
    KILL,
    PREEMPT,
    REJECT,
    START,
    WAKE,
    CompiledForm,
    memory_shape,
    wider,
)
from grid.policies.interface import (
    JOB_TABLES,
    ClusterView,
    JobColumns,
    MachineColumns,
    Plan,
    Policy,
)
from grid.policies.queue import form_of

FIRST_SLOTS, FIRST_ENDS, FIRST_LOGS = 64, 2048, 256
_OUTCOME = Struct("=10q2d")
"""A row of `Store.ends`."""
OFFSET = 24
"""Columns of the store beyond a power of two, so that the rows do not share sets of the cache."""
_JOB_ROWS = dict(zip(JOB_TABLES[0], range(len(JOB_TABLES[0])), strict=True))
_JOB_ROWS |= {name: row for name, row in at.COPIED.items() if name in dtypes(JobColumns)}


class PlanClock:
    """Calls a policy and measures its plans in seconds with `clock`, if there is one."""

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self._clock = clock
        self._times: dict[int, TimedPlans] = {}

    def plan(self, policy: Policy, view: ClusterView, now: Time) -> Plan:
        if self._clock is None:
            return policy.plan(view, now)
        # Before the plan, since a policy may change the view.
        below = 1 << len(view.queue).bit_length()
        started = self._clock()
        plan = policy.plan(view, now)
        seconds = self._clock() - started
        below = below if plan.made else 0
        _, plans, total_s, longest_s = self._times.get(below, (below, 0, 0.0, 0.0))
        self._times[below] = TimedPlans(
            below, plans + 1, total_s + seconds, max(longest_s, seconds)
        )
        return plan

    def times(self) -> list[TimedPlans]:
        """Plans so far, the shortest queue first."""
        return sorted(self._times.values())


class Engine(ClusterState):
    """A cluster whose machines hold a job's CPUs from start to end.

    As a `pool`, which is one machine without memory and licenses under a policy with a compiled
    form, it is simulated by the kernels of `grid.cluster.pool`, and keeps no history of levels.

    A job that was preempted resumes if it is started on its own machine; on another one it starts
    again, unless it is checkpointable. A job that no machine could ever run is rejected when it
    arrives, and the policy does not see it. A job that passes its estimate is killed or, with
    `overrun: extend`, expected to take as long again as it has since its last start. `clock`
    measures the plans in seconds, if there is one.

    Jobs on a machine that goes down are preempted, and wait in their old places of the queue. Their
    work there is lost, as is that of jobs that were preempted there before, unless they are
    checkpointable; to the policy such a job has never run. A machine that is down has no free CPUs.

    With `one_job_per_machine` every job asks for `padding` CPUs more and every machine has as many
    more: two jobs never fit on a machine, and policies need not know. Usage then counts machines
    and jobs, as C07's does (its Fig. 6).

    Policies plan as if every machine that is up were on. A job that waits for its machine to boot
    runs, and is expected to end that much later; its estimate counts from there.
    """

    def __init__(
        self,
        platform: Cluster,
        policy: Policy,
        clock: Callable[[], float] | None = None,
        outages: Sequence[MachineOutage] = (),
        *,
        pool: bool = False,
        predictions: bool = False,
        sizes: int = 0,
        vo: str = "",
    ) -> None:
        self.machines = machine_columns(platform)
        names = self.machines.resource_names
        super().__init__(
            platform, outages, predictions=predictions, resources=names, sizes=sizes, vo=vo
        )
        self._reserved = platform.reserved()
        for number, (_, *edges, _, _) in enumerate(self.machines.windows.tolist()):
            # The policy also plans when a reservation begins or ends.
            self._cancellations += [(edge, loop.NO_ROW + number, False) for edge in edges]
        heapify(self._cancellations)
        self._policy = policy
        self._label = label_of(policy)
        self._clock = PlanClock(clock)
        self._form: CompiledForm | None = form_of(policy)
        self.is_pool = pool and self._form is not None
        self._kernel = ""
        """Of the policy, unless Python plans."""
        if self._form is not None:
            self._kernel = self._form.pool if self.is_pool else self._form.kernel
            self._settings = np.array(self._form.settings, np.float64)
        self._rows, self._count = np.zeros((0, 4), np.int64), 0
        """Rows of the plan to execute, or space for those of the policy's kernel."""
        self._memory = np.zeros((1, 1), np.int64)
        self._has_licenses = bool(platform.licenses)
        self._switches = any(machine.switch_off for machine in platform.machines)
        self._store = _new_store(platform, self.machines, self._estimates, sizes)
        if self._form is not None and self.is_pool:
            _set_up_pool(self._store, self._form)
        self._view_store()

    def __getstate__(self) -> dict[str, Any]:
        names = ("jobs", "_blocks", "_counters", "_free_resources", "_loop")
        return {name: value for name, value in vars(self).items() if name not in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy: its columns have to be rows of its own store."""
        self.__dict__.update(state)
        self._view_store()

    def _view_store(self) -> None:
        counters = self._store.counters
        # Copies of both would be no longer one array.
        measures = counters.view(np.float64)[at.N_COUNTERS :]
        store = self._store = self._store._replace(measures=measures)
        self._blocks: Any = blocks_of(store)
        # Indexing a memoryview takes a third of the time of indexing a numpy array.
        self._counters = counters.data
        if self.is_pool:
            self._loop, self._blocks = pool_loop.loop_of(self._kernel), self._blocks[:6]
        elif self._kernel:
            self._loop = loop.loop_of(self._kernel)
        form, slots = self._form, store.whole.shape[1]
        if form is not None and self._kernel == form.kernel:
            machines, licenses = store.machines.shape[1], store.licenses.shape[1]
            shape = memory_shape(form, self.machines, licenses, slots)
            self._memory = wider(self._memory, shape)
            self._rows = np.empty((2 * slots + machines + 1, 4), np.int64)
        whole, real = store.whole, store.real
        columns: dict[str, Any] = {name: whole[row] for name, row in _JOB_ROWS.items()}
        columns |= {name: real[row] for name, row in at.COPIED_REAL.items()}
        flags: Bools = whole[at.CHECKPOINTABLE].view(np.bool_)[::8]
        requests = np.split(real[at.REQUESTS :], [self._counters[at.N_RESOURCES]])
        columns |= {"checkpointable": flags, "resources": requests[0], "size_table": requests[1]}
        tables = (whole[: len(JOB_TABLES[0])], real[at.REFERENCE_MIPS :])
        self.jobs = JobColumns(**columns, tables=tables)
        self._free_resources = _free_of(store)

    # The loop

    def _simulate(self, until: Time) -> None:
        arrivals, counters = self._arrivals, self._counters
        if self._estimates.predicts and self._estimates.accounts > self._store.history.shape[1]:
            self._enlarge(history=2 * self._estimates.accounts)
        while True:
            what = self._advance(until)
            if counters[at.NEXT_ARRIVAL] != arrivals.first:
                arrivals.taken(counters[at.NEXT_ARRIVAL])
            if what == at.ASK:
                now = counters[at.NOW]
                self._set_plan(self._ask(now), now)
            elif what == at.REACHED:
                break
            elif what < 0:
                raise self.error(self._problem(-what))
            else:
                self._make_room(what)
        if counters[at.ENDED]:
            self._hand_over_ends()

    def _advance(self, until: Time) -> Any:
        """Continue the loop; see `loop.advance`."""
        arrivals, blocks = self._arrivals, self._blocks
        first, end, block = arrivals.first, arrivals.end, arrivals.block
        if self.is_pool:
            return self._loop(until, first, end, blocks, block)
        if self._kernel:
            rows, settings, memory = self._rows, self._settings, self._memory
            return self._loop(until, first, end, blocks, block, rows, settings, memory)
        return loop.advance(until, first, end, blocks, block, self._rows, self._count)

    def _ask(self, now: Time) -> Plan:
        return self._clock.plan(self._policy, self.view(now), now)

    def view(self, now: Time) -> ClusterView:
        """What the policy sees."""
        counters, store = self._counters, self._store
        lists, licenses = store.lists, store.licenses
        last = counters[at.LAST]
        return ClusterView(
            now,
            self.machines,
            store.machines[at.FREE],
            self.jobs,
            lists[at.QUEUE, counters[at.FIRST] : last],
            lists[at.RUNNING, : counters[at.N_RUNNING]],
            lists[at.QUEUE, last - counters[at.ARRIVED] : last],
            lists[at.GONE, : counters[at.N_GONE]],
            licenses[at.FREE_COPIES],
            licenses[at.USERS :],
            self._free_resources,
        )

    def _set_plan(self, plan: Plan, now: Time) -> None:
        """Hand the plan to the next call of the loop."""
        if plan.wake_us <= now:
            raise self.error(f"requests a wake-up at {plan.wake_us}, but the time is {now}")
        changes = len(plan.kill) + len(plan.preempt) + len(plan.reject) + len(plan.start)
        if changes == 0 and plan.wake_us == NEVER:
            self._count = 0
            return
        rows = [(KILL, slot, 0, 0) for slot in plan.kill]
        rows += [(PREEMPT, slot, 0, 0) for slot in plan.preempt]
        rows += [(REJECT, slot, 0, 0) for slot in plan.reject]
        rows += [(START, slot, machine, 0) for slot, machine in plan.start]
        rows.append((WAKE, 0, 0, plan.wake_us))
        self._rows, self._count = np.array(rows, np.int64), len(rows)

    def _problem(self, what: int) -> str:
        """The message for the rule that the plan violates."""
        slot, machine = self._counters[at.ERROR_SLOT], self._counters[at.ERROR_MACHINE]
        store, count = self._store, self._store.machines.shape[1]
        # Either may be none of the cluster's.
        where, job = machine % count, slot % store.whole.shape[1]
        cpus, free = store.whole[at.PROCESSORS, job], store.machines[at.FREE, where]
        enough = _free_of(store)[:, where] >= self.jobs.resources[:, job]
        scarce = np.array(self.machines.resource_names)[~enough]
        on = f"on machine {machine}"
        problems = {
            runs.NO_CPUS: f"starts a job with {cpus} CPUs {on}, which has {free} free",
            runs.NO_RESOURCES: f"starts a job {on}, which lacks free {', '.join(scarce)}",
            runs.OTHER_MACHINE: f"starts a job bound to machine {store.whole[at.BOUND, job]} {on}",
            runs.NO_MACHINE: f"starts a job {on}, but there are only {count} machines",
            runs.NO_LICENSES: f"starts a job {on} without its licenses",
            runs.NOT_RUNNING: "preempts a job that is not running",
            runs.NOT_KILLED: "kills a job that is not running",
            runs.NOT_WAITING: "starts or rejects a job that is not waiting, or does so twice",
        }
        return problems[what]

    def error(self, what: str) -> PlanError:
        return PlanError(f"{self._label} {what}")

    # Room

    def _make_room(self, what: int) -> None:
        """Enlarge the arrays that are full, at least for the next instant."""
        counters, arrivals = self._counters, self._arrivals
        arriving = len(arrivals.due(arrivals.next_us))
        present = counters[at.N_RUNNING] + counters[at.LAST] - counters[at.FIRST] + arriving
        if what == at.SLOTS_FULL:
            self._enlarge(slots=self._store.whole.shape[1] + arriving)
        elif what == at.LOGS_FULL:
            self._enlarge(logs=self._store.logs.shape[1] + 2 * present)
        else:
            self._hand_over_ends()
            if 2 * present > len(self._store.ends):
                self._enlarge(ends=2 * present)

    def _enlarge(self, *, slots: int = 0, ends: int = 0, logs: int = 0, history: int = 0) -> None:
        """At least double each array that needs more room."""
        store = self._store
        if slots:
            old, size = store.whole.shape[1], FIRST_SLOTS
            while size < slots or size <= old:
                size *= 2
            size += OFFSET
            count = self._counters[at.N_FREE]
            free = store.lists[at.FREE_SLOTS, :count].copy()
            store = store._replace(
                whole=_wider(store.whole, size),
                real=_wider(store.real, size),
                lists=_wider(store.lists, 2 * size + 1),
            )
            added = size - old
            # Free slots are taken from the end: those that are there, then the new ones in order.
            store.lists[at.FREE_SLOTS, :added] = np.arange(size - 1, old - 1, -1)
            store.lists[at.FREE_SLOTS, added : added + count] = free
            store.counters[at.N_FREE] = added + count
        if ends:
            store = store._replace(ends=_outcomes(ends, store.ends[0]))
        if logs:
            width = max(logs, 2 * store.logs.shape[1])
            draws = _wider(store.draws, width) if len(store.draws) else store.draws
            store = store._replace(logs=_wider(store.logs, width), draws=draws)
        if history:
            store = store._replace(history=_wider(store.history, history))
        self._store = store
        self._view_store()

    # Results

    def _hand_over_ends(self) -> None:
        count = self._counters[at.ENDED]
        self._counters[at.ENDED] = 0
        ends, routed = self._store.ends[:count], 0
        if self._arrivals.routed:
            # Routed jobs end a few at a time: one by one is faster than as columns.
            for row, *outcome in _OUTCOME.iter_unpack(ends.data):
                if row < 0:
                    self._outcomes.add(row, JobOutcome(*outcome))
                    routed += 1
        if routed < count:
            row, *columns = ends[ends[:, at.ENDED_ROW] >= 0].T.copy()
            columns[-2:] = (watts.view(np.float64) for watts in columns[-2:])
            self._outcomes.add_rows(row, JobOutcome(*columns))

    def figures(self) -> dict[str, float]:
        """`machine_usage`, the same while jobs still arrive, and both of licenses.

        `migrations_local` counts how often a job went on, or began again, on another machine;
        `boots`, how often a machine that was off was switched on for a job; `held.NAME` and
        `amount.NAME`, how much of a resource jobs held, times seconds, and how much there is.
        """
        counters = self._counters
        figures: dict[str, float] = {"migrations_local": counters[at.MOVES]}
        if self._switches:
            figures["boots"] = counters[at.BOOTS]
        columns, count = self.machines, len(self.machines.resource_names)
        for number, name in enumerate(columns.resource_names):
            if name in self._reserved:
                continue
            amounts = columns.resources[number]
            limited = np.flatnonzero(np.isfinite(amounts))
            held = self._store.speeds[at.AMOUNTS + 2 * count + number]
            figures[f"held.{name}"] = float(held[limited].sum())
            is_shared = number >= count - columns.shared
            figures[f"amount.{name}"] = float(amounts[limited[: 1 if is_shared else None]].sum())
        usage = self._store.measures.tolist()
        for name, first in (("machine_usage", 0), ("license_usage", at.LICENSE_USAGE)):
            if first == 0 or self._has_licenses:
                figures[f"{name}.part"] = usage[first + at.PART_S]
                figures[f"{name}.whole"] = usage[first + at.WHOLE_S]
                figures[f"{name}_arriving.part"] = usage[first + at.ARRIVING_PART_S]
                figures[f"{name}_arriving.whole"] = usage[first + at.ARRIVING_WHOLE_S]
        return figures

    def _take_levels(self) -> Levels | None:
        """The CPU time of machines is reported if a job has changed its machine."""
        if self.is_pool:
            return None
        store, counters = self._store, self._counters
        times, busy, held = store.logs[: at.LEVEL_HELD + 1, : counters[at.N_LEVELS]].copy()
        counters[at.N_LEVELS] = 0
        levels = Levels(times, busy)
        if self._has_licenses:
            levels = levels._replace(licenses=held, copies=counters[at.COPIES_IN_ALL])
        if self._switches:
            table = store.logs[at.HELD_MACHINE : at.HELD_END + 1, : counters[at.N_HELD]]
            by_machine = np.argsort(table[0], kind="stable")
            levels = levels._replace(held=HeldTimes(*table[:, by_machine]))
        if counters[at.MOVES]:
            levels = levels._replace(busy_us=store.machines[at.BUSY].astype(np.float64))
        if counters[at.LOGS_DRAW]:
            count = counters[at.N_DRAWS]
            draw = Draw(store.logs[at.DRAW_TIME, :count].copy(), store.draws[:count].copy())
            levels = levels._replace(draw=draw)
        return levels

    def plan_times(self) -> list[TimedPlans]:
        return [NOT_MEASURED] if self._kernel else self._clock.times()

    # State

    def _next_event_us(self) -> Time:
        """When a job ends or exceeds an extended estimate, or the policy requested a plan."""
        return self._counters[at.NEXT_END]

    def _last_event_us(self) -> Time:
        running, wake = self._running(), self._counters[at.WAKE]
        end = int(self._store.whole[at.END][running].max()) if len(running) else -1
        return wake if end < 0 else end if wake == NEVER else max(wake, end)

    def _has_jobs(self) -> bool:
        counters = self._counters
        return counters[at.N_RUNNING] > 0 or counters[at.FIRST] < counters[at.LAST]

    def _processors_wanted(self) -> int:
        counters = self._counters
        if not counters[at.PADDING]:
            return counters[at.BUSY_CPUS] + counters[at.WAITING_CPUS]
        padded = counters[at.N_RUNNING] + counters[at.LAST] - counters[at.FIRST]
        wanted = counters[at.BUSY_CPUS] + counters[at.WAITING_CPUS]
        return int(wanted - padded * counters[at.PADDING])

    def occupancy(self) -> tuple[int, int, int]:
        counters = self._counters
        running = counters[at.N_RUNNING]
        busy = counters[at.BUSY_CPUS] - running * counters[at.PADDING]
        return busy, running, counters[at.LAST] - counters[at.FIRST]

    def _busy_machines(self) -> list[int]:
        machines: list[int] = self._store.whole[at.MACHINE, self._running()].tolist()
        return machines

    def _broken_limits(self) -> Iterator[str]:
        store, running = self._store, self._running()
        whole, cpus = store.whole, store.machines[at.CPUS]
        machine = whole[at.MACHINE, running]
        busy = np.bincount(machine, whole[at.PROCESSORS, running], len(cpus))
        for over in np.flatnonzero(busy > cpus).tolist():
            yield f"{busy[over]:g} of {cpus[over]} CPUs of machine {over} are busy"
        for number, name in enumerate(self.machines.resource_names):
            amounts, requests = store.speeds[at.AMOUNTS + number], store.real[at.REQUESTS + number]
            held = np.bincount(machine, requests[running], len(cpus))
            if number >= len(self.machines.resource_names) - self.machines.shared:
                held[:] = held.sum()
            for over in np.flatnonzero(held > amounts).tolist():
                yield f"{held[over]:g} of {amounts[over]:g} {name} of machine {over} are held"
        for number, copies in enumerate(store.licenses[at.COPIES].tolist()):
            users = len(np.unique(machine[whole[at.LICENSES, running] >> number & 1 == 1]))
            if users > copies:
                yield f"{users} machines hold license {number}, which has {copies} copies"

    def _running(self) -> Ints:
        """The running jobs, in no order."""
        return self._store.lists[at.BY_END, : self._counters[at.N_RUNNING]]

    # Changes from outside

    @property
    def wake_us(self) -> Time:
        """When the policy requested a plan even if no event occurs; NEVER if it did not."""
        return self._counters[at.WAKE]

    def end_at(self, slot: int, now: Time) -> None:
        """The running job of `slot` ends at `now`, as reported by its batch system."""
        loop.change_end(slot, now, self._blocks)

    def _cancel(self, row: int, running: bool, now: Time) -> None:
        self._make_room_for_change()
        loop.cancel_job(row, running, now, self._blocks)

    def _change_machine(self, machine: int, down: bool, now: Time) -> None:
        self._make_room_for_change()
        loop.change_machine(machine, down, now, self._blocks)

    def _make_room_for_change(self) -> None:
        """All running jobs may end, and one that waits."""
        store, running = self._store, self._counters[at.N_RUNNING]
        if self._counters[at.ENDED] + running + 1 > len(store.ends):
            self._make_room(at.ENDS_FULL)
        if self._counters[at.N_DRAWS] + 2 * running > store.logs.shape[1]:
            self._make_room(at.LOGS_FULL)


def _outcomes(room: int, like: Ints | int = 0) -> Ints:
    """Room in `Store.ends`. The watts of a pool are constant, those of the row `like`."""
    ends = np.zeros((room, at.ENDED_IDLE_WATTS + 1), np.int64)
    ends[:] = like
    return ends


def _wider(array: Any, width: int) -> Any:
    wider = np.zeros((*array.shape[:-1], width), array.dtype)
    wider[..., : array.shape[-1]] = array
    return wider


def machine_columns(platform: Cluster) -> MachineColumns:
    """The machines as their policy sees them, with `padding` if each runs one job at a time.

    Bit n of a mask is the n-th license.
    """
    machines, licenses = (platform.machines, [license.name for license in platform.licenses])
    types = sorted({machine.cpu_type for machine in machines})
    padding = platform.padding
    cpus = np.array([machine.cpus + padding for machine in machines], np.int64)
    mips = np.array([machine.mips for machine in machines], np.float64)
    reserved, shared = platform.reserved(), len(platform.resources)
    own = platform.resource_names[: len(platform.resource_names) - shared]
    names = (*own, *reserved, *platform.resource_names[len(own) :])
    each = [
        [one.cpus + padding if name in reserved else platform.amount(one, name) for one in machines]
        for name in names
    ]
    return MachineColumns(
        cpus=cpus,
        mips=mips,
        licenses=np.array(
            [sum(1 << licenses.index(name) for name in m.licenses) for m in machines], np.int64
        ),
        cpu_type=np.array([types.index(machine.cpu_type) for machine in machines], np.int64),
        speed_order=np.lexsort((np.arange(len(machines)), -cpus, -mips)),
        resources=rounded(np.array(each, np.float64).reshape(len(names), len(machines))),
        resource_names=names,
        shared=shared,
        windows=_windows(platform, cpus, dict(zip(reserved.values(), count(len(own))))),
        padding=padding,
    )


def _windows(
    platform: Cluster, cpus: Ints, resources: Mapping[tuple[Beneficiaries, ...], int]
) -> Ints:
    """See `MachineColumns.windows`; if all CPUs are reserved, those of padding are."""
    rows = [(*one[:4], resources.get(one.beneficiaries, -1)) for one in platform.windows()]
    windows = np.array(rows, np.int64).reshape(-1, 5)
    all_of_it = windows[:, 3] == [platform.machines[one].cpus for one in windows[:, 0].tolist()]
    windows[all_of_it, 3] = cpus[windows[all_of_it, 0]]
    return windows


def _new_store(
    platform: Cluster, columns: MachineColumns, estimates: Estimates, sizes: int
) -> Store:
    """The store of an empty cluster."""
    machines, count = platform.machines, len(platform.machines)
    resources = len(columns.resource_names)
    requests = resources + sizes * (2 + resources)
    copies = [license.copies for license in platform.licenses]
    switches = any(machine.switch_off for machine in machines)
    draws = any(machine.watts_busy or machine.watts_idle for machine in machines)
    log_rows = at.DRAW_TIME + 1 if draws else at.HELD_END + 1 if switches else at.LEVEL_HELD + 1
    counters = np.zeros(at.N_COUNTERS + at.N_MEASURES, np.int64)
    store = Store(
        whole=np.zeros((at.RESERVED + 1, FIRST_SLOTS), np.int64),
        real=np.zeros((at.REQUESTS + requests, FIRST_SLOTS), np.float64),
        lists=np.zeros((at.STEP_LEVEL + 1, 2 * FIRST_SLOTS + 1), np.int64),
        counters=counters,
        measures=counters.view(np.float64)[at.N_COUNTERS :],
        machines=np.zeros((at.BUSY + 1, count), np.int64),
        speeds=np.zeros((at.AMOUNTS + 3 * resources, count), np.float64),
        licenses=np.zeros((at.USERS + count, len(copies)), np.int64),
        ends=_outcomes(FIRST_ENDS),
        logs=np.zeros((log_rows, FIRST_LOGS), np.int64),
        draws=np.zeros(FIRST_LOGS if draws else 0, np.float64),
        history=np.zeros((3, 0), np.float64),
        windows=columns.windows,
    )
    store.lists[at.FREE_SLOTS, :FIRST_SLOTS] = np.arange(FIRST_SLOTS - 1, -1, -1)
    store.measures[[at.SHARE, at.LICENSE_USAGE + at.SHARE]] = -1.0
    rows = store.machines
    rows[at.CPUS] = rows[at.FREE] = columns.cpus
    rows[at.MACHINE_LICENSES], rows[at.SPEED_ORDER] = (columns.licenses, columns.speed_order)
    rows[at.OFF_AFTER] = rows[at.LAST_HELD] = -1
    for number, machine in enumerate(machines):
        if machine.switch_off is not None:
            rows[at.OFF_AFTER, number] = machine.switch_off.after_us
            rows[at.BOOT_TIME, number] = machine.switch_off.boot_us
    store.speeds[at.MIPS] = columns.mips
    store.speeds[at.AMOUNTS : at.AMOUNTS + resources] = columns.resources
    store.speeds[at.BUSY_WATTS] = [machine.watts_busy for machine in machines]
    store.speeds[at.IDLE_WATTS] = [machine.watts_idle for machine in machines]
    store.licenses[at.COPIES] = store.licenses[at.FREE_COPIES] = copies
    padding = platform.padding
    overheads = platform.preemption
    said = {
        at.WAKE: NEVER,
        at.NEXT_END: NEVER,
        at.N_FREE: FIRST_SLOTS,
        at.PADDING: padding,
        at.N_RESOURCES: resources,
        at.N_REQUESTS: requests,
        at.N_SHARED: columns.shared,
        at.EXTENDS: int(platform.overrun == "extend" or estimates.predicts),
        at.KILLS: int(platform.overrun == "kill"),
        at.PREDICTS: int(estimates.predicts),
        at.LOGS_DRAW: int(draws),
        at.SUSPEND_US: overheads.suspend_us,
        at.RESUME_US: overheads.resume_us,
        at.MOVE_US: overheads.move_us,
        at.NEVER_FREE: sum(1 << number for number, one in enumerate(copies) if one == 0),
        at.WIDEST: int(columns.cpus.max()),
        at.CPUS_IN_ALL: int(columns.cpus.sum()) // max(1, padding),
        at.COPIES_IN_ALL: sum(copies) if copies else -1,
    }
    for counter, value in said.items():
        store.counters[counter] = value
    _free_of(store)[:] = columns.resources
    return store


def _free_of(store: Store) -> Floats:
    """The free amounts of resources, shape (resources, machines)."""
    count = int(store.counters[at.N_RESOURCES])
    free: Floats = store.speeds[at.AMOUNTS + count : at.AMOUNTS + 2 * count]
    return free


def _set_up_pool(store: Store, form: CompiledForm) -> None:
    """Set what only the kernels of pools use."""
    cpus = store.counters[at.CPUS_IN_ALL]
    # Reservations for some jobs only let other jobs pass them.
    reserves_for_all = form.pool == "reserving" and form.settings[0] == 0
    said = {
        at.FREE_CPUS: cpus,
        at.LAST_STEP: 1,
        at.GAIN_FROM: NEVER,
        at.KEPT_JOB: -1,
        at.IN_TURN: int(reserves_for_all),
        at.IN_TURN_AFTER: 0 if reserves_for_all else NEVER,
    }
    for counter, value in said.items():
        store.counters[counter] = value
    watts = store.speeds[at.BUSY_WATTS : at.IDLE_WATTS + 1, 0]
    store.ends.view(np.float64)[:, at.ENDED_BUSY_WATTS :] = watts
    store.measures[at.SETTINGS : at.SETTINGS + len(form.settings)] = form.settings
    store.lists[at.STEP_LEVEL, 0] = cpus
