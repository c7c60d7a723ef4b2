"""Small grids whose VOs are lost and return: each job has one final state, by all rules.

The grids are those of `random_timings`, with all kinds of faults, outages of VOs that last longer
than `lost_after_s`, and recall. As a script it runs a range of seeds and prints what happened in
them: `python -m tests.protocol.lost_vos 0 20000`.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from grid.config.build import Grid
from grid.config.faults import FaultsSection, MachineOutageSection, VoOutageSection
from grid.config.load import load_scenario
from grid.config.random_scenarios import random_faults
from grid.config.workload import realize
from grid.model.errors import InputError
from grid.model.time import to_seconds
from tests.protocol import random_timings

FIGURES = {
    "messages.ForwardJob": "forwarded", "messages.ReturnJob": "returned",
    "resubmissions": "copies", "messages.JobMoved": "moves", "messages.CancelJob": "cancellations",
    "leases": "leases", "messages.Bid": "bids", "messages.RequestWork": "requests for work",
}  # fmt: skip
"""Counts of a run, and their names in the summary."""


class Trial(NamedTuple):
    """What is wrong with the run of a seed, if anything, and counts of what happened in it."""

    wrong: str = ""
    counts: Mapping[str, int] = MappingProxyType({})
    is_refused: bool = False


def scenario(seed: int) -> dict[str, Any]:
    """The scenario of that seed without faults, as in YAML."""
    rng = np.random.default_rng((seed, 1))
    given = random_timings.scenario(seed)
    protocol, network = given["protocol"], given["network"]
    protocol["information"] = str(rng.choice(["all", "all", "ring"]))
    protocol["ttl"] = int(rng.choice([1, 2, 5]))
    if rng.random() < 0.3:
        protocol["discount"] = "own_dispatches"
    longest_s = max(network["latency_s"], network["local_latency_s"])
    age_s = 1.001 * (protocol["snapshots"]["period_s"] + longest_s)
    if rng.random() < 0.8:
        protocol["lost_after_s"] = age_s * 10 ** float(rng.uniform(0, 0.7))
    if rng.random() < 0.5 or "lost_after_s" not in protocol:
        protocol["recall_after_s"] = float(longest_s * 10 ** rng.uniform(0, 2))
    vos = given["vos"]
    if len(vos) == 1:
        vos.append({**vos[0], "name": "v1"})
    submitting = [vo for vo in vos if "workload" in vo]
    workload = rng.choice(submitting)["workload"]
    workload["settings"] |= {
        "jobs": int(rng.choice([4, 8, 16])),
        "load": float(rng.choice([2.0, 10.0])),
        "work": {"distribution": "fixed", "mean_s": age_s * 10 ** float(rng.uniform(-0.5, 1))},
    }
    # Most VOs are idle, so that those with users forward jobs.
    for vo in vos:
        if vo.pop("workload", None) is not None and rng.random() < 0.3:
            vo["workload"] = workload
    if not any("workload" in vo for vo in vos):
        rng.choice(submitting)["workload"] = workload
    return given


def faulty_grid(seed: int) -> Grid:
    """That grid with faults for about as long as its jobs take. Raises InputError."""
    grid, _ = realize(load_scenario(scenario(seed)), "lost.yaml")
    jobs = [table for table in grid.submitted if table is not None]
    last_us = max(int(table.submit_us.max(initial=0)) for table in jobs)
    work_us = sum(int((table.run_us * table.processors).sum()) for table in jobs)
    cpus = sum(of.processors for vo in grid.vos for of in vo.clusters)
    lasts_s = to_seconds(last_us + work_us // cpus) + 4 * grid.settings.network.latency_s
    faults = random_faults(seed, grid.names, grid.vos, grid.settings.network, lasts_s)
    faults = _with_lost_vos(seed, grid, faults, lasts_s)
    return replace(grid, settings=grid.settings.model_copy(update={"faults": faults}))


def _with_lost_vos(seed: int, grid: Grid, faults: FaultsSection, lasts_s: float) -> FaultsSection:
    """Also up to two outages of VOs, with or without their machines, longer than the time-out."""
    rng = np.random.default_rng((seed, 2))
    vos, machines = list(faults.vo_outages), list(faults.machine_outages)
    lost_after_s = grid.settings.protocol.lost_after_s or lasts_s / 4
    for _ in range(int(rng.integers(3))):
        vo = grid.vos[int(rng.integers(len(grid.vos)))]
        when = {
            "at_s": float(rng.uniform(0, min(lasts_s, faults.heal_s))),
            "for_s": max(1e-6, lost_after_s * 10 ** float(rng.uniform(0, 1))),
        }
        vos.append(VoOutageSection(vo=vo.name, **when))
        for cluster in vo.clusters if rng.random() < 0.5 else ():
            machines.append(MachineOutageSection(vo=vo.name, cluster=cluster.name, **when))
    return faults.model_copy(update={"vo_outages": tuple(vos), "machine_outages": tuple(machines)})


def attempt(seed: int) -> Trial:
    """Run the grid of that seed."""
    try:
        grid = faulty_grid(seed)
    except InputError as error:
        return Trial(error.errors[0].field, is_refused=True)
    wrong, run = random_timings.judged(grid)
    if run is None:
        return Trial(wrong)
    faults = grid.settings.faults
    assert faults is not None
    counts = Counter({
        "jobs": sum(grid.jobs_by_vo()), "events": run.messages,
        "outages of VOs": len(faults.vo_outages), "crashes": len(faults.crashes),
        "partitions": len(faults.partitions), "outages of machines": len(faults.machine_outages),
    })  # fmt: skip
    for one in run.decisions:
        counts[FIGURES.get(one.figure, "")] += int(one.value)
        counts["runs with duplicate work"] += one.figure == "duplicate_cpu_s" and one.value > 0
    return Trial(wrong, counts)


def main(first: int, count: int) -> int:
    """Run seeds and print a summary; returns how many broke a rule."""
    gc.freeze()
    wrong = refused = 0
    totals: Counter[str] = Counter()
    for seed in range(first, first + count):
        trial = attempt(seed)
        refused += trial.is_refused
        totals.update(trial.counts)
        if trial.wrong and not trial.is_refused:
            wrong += 1
            print(f"seed {seed}: {trial.wrong}", flush=True)
    happened = ", ".join(f"{value:,} {name}" for name, value in totals.items() if name)
    print(f"{count} seeds from {first}, {refused} refused, {wrong} wrong; {happened}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]), int(sys.argv[2])) else 0)
