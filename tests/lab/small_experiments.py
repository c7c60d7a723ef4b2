"""Experiments small enough for tests: a few jobs of the partial-utility study."""

from __future__ import annotations

from pathlib import Path

SCENARIO = """\
parameters:
  selection: partial
protocol: {ttl: 3, snapshots: {period_s: 5, load_above: 0.9, jobs_above: 10}}
network: {latency_s: 0.1, local_latency_s: 0.001}
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

EXPERIMENT = """\
name: small
scenario: scenario.yaml
axes:
  selection: [partial, binary, matchmaking]
seeds: 3
level: 0.9
quick:
  seeds: 1
  axes: {selection: [partial]}
"""


def write(folder: Path, experiment: str = EXPERIMENT, scenario: str = SCENARIO) -> Path:
    """The experiment as a file next to its scenario."""
    (folder / "scenario.yaml").write_text(scenario)
    path = folder / "experiment.yaml"
    path.write_text(experiment)
    return path


def files(folder: Path) -> dict[str, bytes]:
    """All runs that a sweep left behind, by path, but for what was measured on the real clock.

    The report and its pictures are the command's, not the sweep's.
    """
    left = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*"))}
    return {
        name: path.read_bytes()
        for name, path in left.items()
        if path.is_file()
        and "clock" not in name
        and not name.startswith(("report.html", "pictures/"))
        and path.name != ".lock"
    }
