"""Small runs and sweeps with reports: VOs that forward, a farm with licenses, one seed or more."""

from __future__ import annotations

from pathlib import Path

import grid
from grid.experiment.reporting import write_report

NAMES = ("run", "farm", "sweep", "one_seed")

SCENARIO = """\
parameters: {selection: partial}
vos:
  - name: vo
    count: 3
    selection: ${selection}
    clusters:
      - machines: {generator: partial_utility, count: 3}
workload:
  generator: partial_utility
  settings: {users: 5, jobs_per_user: 6, mean_interarrival_s: 2}
"""
FARM = """\
vos:
  - name: farm
    clusters:
      - policy: cs2
        machines: {generator: convergent, count: 6, settings: {licenses: 3}}
    workload:
      generator: convergent
      enters: cluster
      settings: {jobs: 60, mean_interarrival_s: 20}
"""
EXPERIMENT = """\
name: small
scenario: scenario.yaml
axes:
  selection: [partial, binary]
  protocol.ttl: [1, 3]
seeds: 3
"""


def write(folder: Path) -> dict[str, Path]:
    """Run all of them in `folder`; their reports by name."""
    (folder / "scenario.yaml").write_text(SCENARIO)
    (folder / "experiment.yaml").write_text(EXPERIMENT)
    (folder / "one.yaml").write_text(EXPERIMENT.replace("seeds: 3", "seeds: 1"))
    grid.run(folder / "scenario.yaml", out=folder / "run")
    (folder / "farm.yaml").write_text(FARM)
    grid.run(folder / "farm.yaml", out=folder / "farm")
    grid.sweep(folder / "experiment.yaml", folder / "sweep", in_process=True)
    grid.sweep(folder / "one.yaml", folder / "one_seed", in_process=True)
    return {name: write_report(folder / name) for name in NAMES}
