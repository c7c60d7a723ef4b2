"""A run of a grid that stops wherever an agent has to decide.

The sequential run executes in a greenlet. A seat replaces a policy, a selection or a forwarding
policy of the scenario; when it is called, it switches to the caller of the episode from within the
run, and continues with the action. The emulator needs no knowledge of agents, and a decision is
made at its very point of virtual time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple

from grid.model.errors import missing

try:
    from greenlet import getcurrent, greenlet
except ModuleNotFoundError as error:
    raise missing(
        "an environment of grid.integrations.learning", "learning", str(error.name)
    ) from None

from grid.cluster import ClusterState
from grid.config.build import NO_HOOKS, Grid, RuntimeHooks
from grid.config.load import load_scenario, source_of
from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.kernel.process import LogicalProcess
from grid.model.arrays import Bools
from grid.model.errors import input_error
from grid.model.job_results import JobRow, in_order
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import NEVER, to_seconds
from grid.protocol.selection import Selection
from grid.results.metrics import Metrics, metrics
from grid.runtime.outcome import RecordStore
from grid.runtime.schedulers import Schedulers, check_schedulers
from grid.runtime.sequential import EVENTS_AT_A_TIME

Source = str | os.PathLike[str] | Mapping[str, Any] | Scenario


class Decision(NamedTuple):
    """Agent number `agent` has to choose one of the open actions."""

    agent: int
    observation: Any
    is_open: Bools


@dataclass(frozen=True, eq=False)
class SeatedGrid(Grid):
    """A grid with seats for agents, by the name of the VO or of `VO/cluster`."""

    clusters: Mapping[str, Callable[[Grid, VirtualOrganization, Cluster], ClusterState]] = field(
        default_factory=dict
    )
    selections: Mapping[str, Callable[[Selection], Selection]] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)

    def cluster_of(
        self, vo: VirtualOrganization, cluster: Cluster, hooks: RuntimeHooks = NO_HOOKS
    ) -> ClusterState:
        make = self.clusters.get(f"{vo.name}/{cluster.name}")
        return super().cluster_of(vo, cluster, hooks) if make is None else make(self, vo, cluster)

    def selection_of(self, vo: VirtualOrganization) -> Selection:
        own = super().selection_of(vo)
        return self.selections[vo.name](own) if vo.name in self.selections else own

    def rule_of(self, vo: VirtualOrganization) -> Any:
        return self.rules[vo.name] if vo.name in self.rules else super().rule_of(vo)


class Episodes:
    """The runs of a scenario, one after the other, whose seats call `ask`.

    `first` is the grid of the scenario's own seed, `decision` the open one (None: the run has
    ended). An episode is cut after `most` decisions, if given. Raises InputError.
    """

    def __init__(
        self, scenario: Source, overrides: Mapping[str, Any] | tuple[str, ...], most: int | None
    ) -> None:
        self._scenario = load_scenario(scenario, overrides)
        self._source = source_of(scenario)
        self.first = self._with_seed(self._scenario.seed)
        self._most = most
        self._run: greenlet | None = None
        self._process: LogicalProcess | None = None
        self.decision: Decision | None = None
        self._decisions = 0

    def _with_seed(self, seed: int) -> Grid:
        return realize(self._scenario.model_copy(update={"seed": seed}), self._source)[0]

    def begin(self, seed: int, **seats: Mapping[str, Any]) -> None:
        """Run to the first decision. For `seats` see `SeatedGrid`.

        Raises MissingExtra if a policy needs packages that are not installed, and InputError for
        faults after which an entity repeats its decisions, as an agent could decide differently.
        """
        self.close()
        plain = self._with_seed(seed)
        check_schedulers(plain, live=False)
        given: dict[str, Any] = {one.name: getattr(plain, one.name) for one in fields(plain)}
        self._grid = grid = SeatedGrid(**given | seats)
        self._schedulers = Schedulers()
        faults = grid.settings.faults
        if faults is not None and not faults.of_machines_alone:
            expected = "only outages of machines, for learning agents"
            raise input_error("faults", "faults of messages or of entities", expected)
        entities = grid.bare_entities(grid.names, RuntimeHooks(connect=self._schedulers.connect))
        self._process = LogicalProcess(entities, grid.network, grid.seed, grid.first_rows())
        self._metrics: Metrics | None = None
        self._seen = self._decisions = 0
        self._run = greenlet(partial(self._execute, self._process))
        self._resume()

    def decide(self, action: int) -> None:
        """Continue with the action to the next decision."""
        self._decisions += 1
        self._resume(action)

    def ask(self, agent: int, observation: Any, is_open: Bools) -> int:
        """Called by a seat within the run: the action that the agent chooses."""
        run = self._run
        assert run is not None and run.parent is not None
        return int(run.parent.switch(Decision(agent, observation, is_open)))

    @property
    def is_cut(self) -> bool:
        """Whether the episode ends before its run does."""
        return self.decision is not None and self._decisions == self._most

    @property
    def time_s(self) -> float:
        """Virtual time in seconds."""
        assert self._process is not None
        return to_seconds(self._process.now)

    def ended_rows(self) -> list[JobRow]:
        """The jobs whose end their Local Schedulers received since the last call."""
        assert self._process is not None
        records, first = self._process.records, self._seen
        self._seen = len(records)
        return [row for row in records[first:] if isinstance(row, JobRow)]

    def metrics(self) -> Metrics:
        """The metrics of the run, as in metrics.json. Raises InputError if it has not ended."""
        if self._process is None or self.decision is not None:
            raise input_error("metrics", "an episode in progress", "the end of a whole run")
        if self._metrics is None:
            store = RecordStore()
            store.add(self._process.records)
            # Taking the jobs completes the rest of the store.
            results, records = in_order(store.take()), store.records
            self._metrics = metrics(
                results, self._grid.directory, records["figures"], records["histories"],
                records["decisions"], self._grid.settings.metrics.measured, self._grid.workflows,
            )  # fmt: skip
        return deepcopy(self._metrics)

    def close(self) -> None:
        """Abandon the episode."""
        run, self._run = self._run, None
        if run is not None and not run.dead:
            run.parent = getcurrent()
            run.throw()
        self._process = self.decision = None

    def _resume(self, *action: int) -> None:
        run = self._run
        assert run is not None
        run.parent = getcurrent()
        self.decision = run.switch(*action)

    def _execute(self, process: LogicalProcess) -> None:
        with self._schedulers.held():
            process.start()
            while process.advance(NEVER, EVENTS_AT_A_TIME):
                pass
            process.finish()
