"""What a cluster is asked for takes effect or is refused in every runtime, not in one process only.

A grid has a VO for each policy and feature that go together (`grid.policies.features`), and each VO
keeps its jobs. One run of it on Ray actors and one live see all of them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grid.config.build import Grid
from grid.config.faults import FaultsSection, MachineOutageSection
from grid.config.schema import GridSettings
from grid.model.arrays import Floats, Ints
from grid.model.errors import InputError
from grid.model.job import Job
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.model.plugins.registry import Plugins
from grid.model.resources import ResourceTable
from grid.model.time import SECOND_US
from grid.policies.features import FEATURES
from grid.protocol.selection import Choice
from grid.protocol.selection.by_utility import partial
from grid.runtime.clock import Pace
from grid.runtime.run import Live, Run, execute_grid
from tests.cluster.clusters import table
from tests.cluster.test_capabilities import PROBES, Probe, job

S = SECOND_US
POLICIES = ("sjf", "afcfs", "flexible", "cs2")
"""Those of the compiled pool, of gangs, and two of the general core."""

PREDICTED = Probe(
    Cluster("c", (Machine("m", 1),)),
    Cluster("c", (Machine("m", 1),), estimates="average"),
    [
        job(0, run_s=1, estimate_us=100 * S),
        job(1, run_s=1, estimate_us=100 * S),
        job(2, submit_us=3 * S, user=2),
        # Known to be short only by the two that have ended; each is the shorter one by turns.
        job(3, submit_us=4 * S, run_s=8, user=3),
        job(4, submit_us=4 * S, run_s=2, estimate_us=100 * S),
    ],
)
EVERY = {**PROBES, "predicted estimates": PREDICTED}
SPEEDUPS = (1.0, 0.25)
LATE_S = 0.4
"""Far less than a feature changes: the ends of its jobs by three seconds together, or more."""
WATTS = {"watts_idle": 10.0, "watts_busy": 30.0}


class Home:
    """Partial utility among the resources of a job's own VO."""

    def __init__(self) -> None:
        self._inner = partial()

    def choose(self, job: Job, table: ResourceTable, own_vo: int, own_only: bool) -> Choice:
        return self._inner.choose(job, table, own_vo, own_only=True)


def grid_of(pairs: list[tuple[str, str]], *, asked: bool) -> Grid:
    """A VO for each policy and feature: with the feature if it is `asked` for, or without."""
    vos: list[VirtualOrganization] = []
    tables: list[JobTable] = []
    failures: list[MachineOutageSection] = []
    for number, (policy, feature) in enumerate(pairs):
        probe, name = EVERY[feature], f"v{number}"
        cluster = replace(probe.asked if asked else probe.without, policy=policy)
        machines = tuple(replace(machine, **WATTS) for machine in cluster.machines)
        vos.append(VirtualOrganization(name, (replace(cluster, machines=machines),), "home"))
        has_memory = any(machine.ram_mb for machine in machines)
        jobs = [one if has_memory else replace(one, ram_mb=0.0) for one in probe.jobs]
        tables.append(table(jobs))
        for down in probe.asked_outages if asked else probe.outages:
            failures.append(
                MachineOutageSection(
                    vo=name,
                    cluster=cluster.name,
                    machine=down.machine,
                    at_s=down.start_us / S,
                    for_s=(down.end_us - down.start_us) / S,
                )
            )
    settings = GridSettings(
        name="runtimes", faults=FaultsSection(heal_s=1000, machine_outages=tuple(failures))
    )
    nobody = (None,) * len(vos)
    parts = Plugins({}, {"selections": {"home": Home}})
    return Grid(settings, tuple(vos), tuple(tables), nobody, plugins=parts)


def late_s(run: Run) -> float:
    """By how much a message or a timer of a live run was late at most, in virtual seconds."""
    late, speedup = run.manifest["live"]["late"], run.manifest["live"]["speedup"]
    return float(max(late[what]["max_s"] for what in ("messages", "timers")) * speedup)


@cache
def refusals() -> dict[tuple[str, str], str]:
    """Each policy and feature, with the line that refuses it; empty where it takes effect."""
    found = {}
    for pair in [(policy, feature) for policy in POLICIES for feature in EVERY]:
        found[pair] = ""
        try:
            grid_of([pair], asked=True)
        except InputError as error:
            found[pair] = str(error)
    return found


def accepted() -> list[tuple[str, str]]:
    return [pair for pair, line in refusals().items() if not line]


@cache
def here(asked: bool) -> Run:
    return execute_grid(grid_of(accepted(), asked=asked), in_process=True)


def ends_s(run: Run) -> list[Floats]:
    """When the jobs of each VO ended, by their numbers."""
    results = run.results
    order = np.lexsort((results.number, results.vo))
    ends: Ints = results.outcome.end_us[order]
    bounds = np.searchsorted(results.vo[order], np.arange(1, len(run.directory.vos)))
    return [times / S for times in np.split(ends, bounds)]


def test_every_feature_takes_effect_with_a_policy_or_is_refused_with_it() -> None:
    assert {feature for _, feature in refusals()} == set(FEATURES)
    for (policy, feature), line in refusals().items():
        assert not line or (policy in line and feature in line)
    assert {feature for _, feature in accepted()} == set(FEATURES)
    with_it, without = ends_s(here(asked=True)), ends_s(here(asked=False))
    for pair, asked, plain in zip(accepted(), with_it, without, strict=True):
        assert (asked != plain).any(), pair
    assert here(asked=True).metrics["grid"]["energy_j"] > 0


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_they_take_effect_on_ray_actors() -> None:
    run = execute_grid(grid_of(accepted(), asked=True), placement="2")
    assert run.manifest["digest"] == here(asked=True).manifest["digest"]
    assert run.metrics == here(asked=True).metrics


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_they_take_effect_live(tmp_path: Path) -> None:
    """Where the machine keeps up, jobs end nearer to the run with a feature than to the other.

    One that is late for so long that features make no more of a difference gets more time; at any
    lateness all jobs end that do in virtual time.
    """
    with_it, without = ends_s(here(asked=True)), ends_s(here(asked=False))
    for speedup in SPEEDUPS:
        live: Any = Live(Pace(speedup=speedup), tmp_path / f"journals-{speedup}")
        run = execute_grid(grid_of(accepted(), asked=True), live=live, placement="2")
        found = ends_s(run)
        assert [(one >= 0).sum() for one in found] == [(one >= 0).sum() for one in with_it]
        assert run.metrics["grid"]["energy_j"] > 0
        if late_s(run) < LATE_S:
            for pair, lived, asked, plain in zip(accepted(), found, with_it, without, strict=True):
                assert np.abs(lived - asked).sum() < np.abs(lived - plain).sum(), pair
            return
