"""Small runs and sweeps with reports: VOs that forward, a farm with licenses, one seed or more.

`rich` has as much of everything as one scenario can: VOs of several kinds of clusters, deadlines,
licenses, gangs that migrate, input data, leases, watts, outages.
"""

from __future__ import annotations

from pathlib import Path

import grid
from grid.lab.report.page import write_report
from tests.lab.small_experiments import SCENARIO

NAMES = ("run", "farm", "rich", "sweep", "rich_sweep")

FARM = """\
vos:
  - name: farm
    clusters:
      - policy: cs2
        machines: {generator: convergent, count: 6, settings: {licenses: 3}}
    workload:
      generator: convergent
      entry_point: cluster
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
RICH = """\
parameters: {rule: reserve, ttl: 2, seconds: 20}
protocol:
  {ttl: "${ttl}", forwarding: "${rule}", snapshots: {period_s: 30, load_above: 0.9, jobs_above: 10}}
network: {bandwidth_mbps: 100}
faults:
  heal_s: 1000
  between_vos: {lost: 0.02}
  vo_outages: [{vo: spare1, at_s: 300, for_s: 60}]
  machine_outages: [{vo: farm, cluster: machines, machine: 0, at_s: 200, for_s: 200}]
vos:
  - name: farm
    admission: {name: limited, settings: {jobs: 1}}
    clusters:
      - name: machines
        resource: cluster
        policy: cs2
        machines:
          generator: convergent
          count: 6
          settings: {licenses: 3}
          watts_idle: 5
          watts_busy: 20
          switch_off: {after_s: 30, boot_s: 5, watts_boot: 20}
    workload:
      generator: convergent
      settings: {jobs: 40, mean_interarrival_s: "${seconds}"}
      attributes:
        deadline: {share: 0.5, least: 2, most: 4}
        input: {share: 0.5, mean_mb: 50}
  - name: gangs
    clusters:
      - name: small
        machines: {generator: gang, count: 4}
        policy: &gangs {name: afcfs, settings: {migration: full, external_migration_s: 2}}
        processor_choice: ald
      - {name: large, machines: {generator: gang, count: 8}, policy: *gangs, processor_choice: ald}
    workload:
      generator: gang
      settings: {jobs: 60, tasks: 200, largest: 8, mean_run_s: 60, load: 1.2, priority_share: 0.2}
  - name: spare
    count: 5
    clusters: [{name: pool, cpus: 2, policy: easy}]
    workload:
      generator: stochastic
      settings:
        jobs: 10
        load: 1.1
        arrivals: {distribution: exponential}
        work: {distribution: exponential, mean_s: 60}
"""
RICH_EXPERIMENT = """\
name: rich-sweep
scenario: rich.yaml
axes:
  rule: [reserve, auction]
  ttl: [0, 2]
  seconds: [20]
seeds: 2
metrics:
"""
WIDE = (
    "slowdown_without_deadline_mean", "late_percent", "energy_j", "license_usage",
    "loss_of_capacity", "messages_per_job", "plan_seconds_mean", "hops_mean",
)  # fmt: skip


def one_job(folder: Path) -> Path:
    """The file of a scenario of one job."""
    path = folder / "one.yaml"
    path.write_text(
        "vos: [{name: a, clusters: [{machines: [{cpus: 1}]}], workload: {jobs: [{run_s: 1}]}}]\n"
    )
    return path


def write(folder: Path) -> None:
    """Run all of them in `folder`, each in a folder of its name with its report."""
    (folder / "scenario.yaml").write_text(SCENARIO)
    (folder / "experiment.yaml").write_text(EXPERIMENT)
    grid.run(folder / "scenario.yaml", out=folder / "run")
    (folder / "farm.yaml").write_text(FARM)
    grid.run(folder / "farm.yaml", out=folder / "farm")
    (folder / "rich.yaml").write_text(RICH)
    grid.run(folder / "rich.yaml", out=folder / "rich")
    metrics = "".join(f"  - {metric}\n" for metric in WIDE)
    (folder / "rich_sweep.yaml").write_text(RICH_EXPERIMENT + metrics)
    grid.sweep(folder / "rich_sweep.yaml", folder / "rich_sweep", in_process=True)
    grid.sweep(folder / "experiment.yaml", folder / "sweep", in_process=True)
    for name in NAMES:
        write_report(folder / name)
