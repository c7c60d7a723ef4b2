"""The chart of the jobs that ran on a cluster, a bar for each.

What this needs takes longer to load than all else that a page asks; a page of a run that goes on
loads it when a chart is looked at.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from grid.integrations.watch.answers import BARS
from grid.integrations.watch.source import Answer
from grid.lab.report.gantt import cluster_chart
from grid.lab.report.run_data import RunData
from grid.model.arrays import Ints
from grid.model.job_results import JobResults
from grid.results.files import CPUS
from grid.results.job_columns import batch_of, cpu_numbers, job_columns
from grid.results.machines import Directory, assign_cpus


def gantt(
    run: RunData, cluster: int, rows: Ints, count: int, since_s: float, until_s: float
) -> Answer:
    """A chart of the jobs at `rows` of the run, of `count` in all."""
    title = run.cluster_titles[cluster]
    answer = {"cluster": title, "since": since_s, "until": until_s, "jobs": count}
    if not len(rows):
        return answer | {"chart": None}
    picture = cluster_chart(run, title, rows, BARS)
    (columns,) = picture.tables.values()
    return answer | {
        "drawn": len(rows),
        "unit_s": run.time_unit[0],
        "chart": picture.specification,
        "rows": {name: _packed(values) for name, values in columns.items()},
    }


def run_data(results: JobResults, directory: Directory, span: tuple[float, float]) -> RunData:
    """These jobs as the folder of a run would have them, of a run from and until that time."""
    cpus = assign_cpus(results, directory)
    rows = slice(0, len(results))
    columns = job_columns(results, directory, "", cpu_numbers(cpus, rows))
    clusters = [(directory.vos[one.vo], one.name) for one in directory.clusters]
    times = {"time_s": list(span) * len(clusters)}
    names = {
        key: [pair[place] for pair in clusters for _ in range(2)]
        for place, key in enumerate(("vo", "cluster"))
    }
    vos: dict[str, Any] = {vo: {} for vo in directory.vos}
    table = pa.Table.from_batches([batch_of(columns)])
    cpus_of = {CPUS: json.dumps([sum(one.cpus) for one in directory.clusters])}
    series = pa.table(times | names).replace_schema_metadata(cpus_of)
    return RunData({}, {"vos": vos}, "", table, series)


def _packed(values: Any) -> list[Any]:
    return [float(f"{one:.9g}") if isinstance(one, float) else one for one in values]
