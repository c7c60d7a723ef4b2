"""What `manifest.json` says of a run: what it was made from, and what it came to and cost."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version
from typing import Any

import numpy as np

from grid import __version__
from grid.config.plugins import metric_meanings
from grid.config.schema import OverheadsSection, Scenario
from grid.config.traces import hashes_of_logs
from grid.model.errors import dotted
from grid.model.job import FINAL_STATES, JobState
from grid.model.job_results import JobResults
from grid.results.checkers import digest
from grid.results.machines import Directory
from grid.runtime.outcome import RunOutcome
from grid.sources import sources

LIBRARIES = ("numba", "numpy", "ray", "scipy")


def versions() -> dict[str, Any]:
    """That of the emulator, and those of what it stands on."""
    others = {"python": python_version()} | {name: version(name) for name in LIBRARIES}
    return {"version": __version__, "sources": sources(), "versions": others}


def made_from(scenario: Scenario) -> dict[str, Any]:
    """Hashes of the parts and logs of a scenario, and what its metrics mean. Raises InputError."""
    return {
        "parts": scenario.plugins.hashes(),
        "logs": hashes_of_logs(scenario),
        "meanings": metric_meanings(scenario),
    }


def manifest_of(name: str, seed: int, results: JobResults, outcome: RunOutcome) -> dict[str, Any]:
    """How the run called `name` ended and what it cost, with the digest of its results."""
    counts = np.bincount(results.outcome.state, minlength=len(JobState)).tolist()
    jobs = {state.name.lower(): counts[state.value] for state in FINAL_STATES} | {"skipped": {}}
    return {
        **versions(),
        "scenario": name,
        "seed": seed,
        "digest": digest(results),
        "jobs": jobs,
        "messages": outcome.messages,
        "snapshots": outcome.snapshots,
        "rounds": outcome.rounds,
        "dealt_anew": outcome.dealt_anew,
        "actors": outcome.actors,
        "start_seconds": round(outcome.start_seconds, 6),
        "wall_seconds": round(outcome.wall_seconds, 6),
        "plan_seconds": outcome.plan_seconds(),
        "plans_not_measured": outcome.plans_not_measured(),
        "schedulers": {
            one.place: {
                "scheduler": one.scheduler,
                "messages": one.messages,
                "total": round(one.total_s, 6),
                "max": round(one.longest_s, 6),
            }
            for one in sorted(outcome.schedulers)
        },
    }


def without_effect(scenario: Scenario, results: JobResults, directory: Directory) -> dict[str, str]:
    """Settings that came to nothing in the run, though nothing forbids them: each key, and why.

    Whether a policy preempts hangs on its settings, and those that users plug in do not say it; and
    a sweep gives all of its policies the same costs. So only the run can tell.
    """
    outcome = results.outcome
    stopped = results.placement.cluster[outcome.preemptions + outcome.restarts > 0]
    entries = [directory.clusters[position] for position in set(stopped.tolist())]
    paid = {(directory.vos[entry.vo], entry.name) for entry in entries}
    return {
        dotted(("vos", v, "clusters", c, "preemption")): "no job was preempted or started again"
        for v, vo in enumerate(scenario.vos or ())
        for c, cluster in enumerate(vo.clusters)
        if cluster.preemption != OverheadsSection()
        and not any((name, cluster.name) in paid for name in vo.names)
    }
