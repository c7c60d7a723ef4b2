"""The report of a run: VO map, utilization and queues, then metrics, jobs and flows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from grid.lab.report.charts import (
    FEW,
    STEPS,
    distribution,
    flow_map,
    grid_chart,
    series,
    step_columns,
    time_axis,
    tooltip,
    vo_chart,
)
from grid.lab.report.gantt import gantt_charts
from grid.lab.report.page import Block, Choice, Folded, Section, Source, Table, When, save_page
from grid.lab.report.picture import Columns, Picture, chart, columns_of, counted, shown
from grid.lab.report.run_data import RunData, read_run
from grid.model.arrays import Bools, Floats
from grid.results.definitions import FILES, METRICS, label_of, row_texts
from grid.results.summary import measured_line

SERIES_LABELS: Mapping[str, str] = {
    "utilization": "utilization (CPUs in use / CPUs)",
    "queued": "queued jobs",
    "license_use": "license use (copies in use / copies)",
    "lost_cpus": "lost CPUs",
    "power_w": "power (W)",
}
"""Axis titles of the columns of series.parquet."""
OPENING = ("utilization", "queued")
FIRST = ("wait_mean", "bounded_slowdown_mean", "user_utility", "utilization", "jobs_forwarded")
"""The first metrics to choose."""
MAIN = (
    "jobs_submitted", "jobs_completed", "jobs_failed", "jobs_rejected", "jobs_forwarded",
    "hops_mean", "wait_mean", "response_time_mean", "bounded_slowdown_mean", "late_percent",
    "user_utility", "utilization", "makespan", "workflow_makespan_mean", "workflow_slowdown_mean",
    "energy_j",
)  # fmt: skip
"""Metrics of the grid that are not folded."""
FEW_VOS = 6
"""At most this many VOs have a column each in the table of all metrics; more have a row each."""
INSTANTS = 240
FLOWS = 200
"""The most pairs of VOs in the table of flows."""
ALL_JOBS, OF_CHOSEN, MEDIAN = "all jobs", "jobs of the chosen VO", "all clusters, median"
HINT = (
    "Point at a mark to see its values. Charts over time: drag to pan, Shift and wheel to zoom, "
    "double-click to reset."
)
PAPERS = (
    "Sources: PU, C07, CS2, EG and GM are the reproduced papers; CITATION.cff has their titles and "
    "authors."
)


def write_run_page(folder: Path, page: Path) -> None:
    """Write the report of the run in `folder`, and its charts into `pictures` next to it."""
    run = read_run(folder)
    manifest = run.manifest
    charts, gantt = list(courses(run)), list(gantt_charts(run))
    opening = [one for one in charts if one.name in OPENING]
    if len(run.clusters) > FEW and charts:
        opening.insert(0, _choice_of_clusters(run))  # type: ignore[arg-type]
    has_map = len(run.vos) > 1 and run.moved.any()
    sections = [
        Section("VOs, utilization and queues",
                [HINT, *([flow_map(run.vos, {"": run.moved})] if has_map else []), *opening]),
        Section("Metrics", [
            _of_grid(run, MAIN),
            Folded("All metrics of the grid", [_of_grid(run, list(METRICS), prose=True), PAPERS]),
        ]),
        Section("By virtual organization", _by_vo(run)),
        Section("Over time", [one for one in charts if one.name not in OPENING]),
        Section("Gantt charts", [
            *([_choice_of_clusters(run)] if any(one.name == "gantt" for one in gantt) else []),
            *gantt,
        ]),
        Section("Waits and stretch", _waits(run)),
        Section("Job flows between VOs", flow_tables(run.vos, run.moved) if has_map else ()),
        Section("Provenance", [
            Source("manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False)),
            Source("The scenario with defaults", run.scenario),
        ]),
    ]  # fmt: skip
    title = f"Run of {manifest.get('scenario', folder.resolve().name)}"
    save_page(page, title, _introduction(run), sections)


def _introduction(run: RunData) -> list[str]:
    manifest, vos = run.manifest, counted(len(run.vos), "VO")
    jobs = manifest["jobs"]
    # The series of a run without started jobs are empty.
    place = f"on {counted(len(run.clusters), 'cluster')} of {vos}" if run.clusters else f"in {vos}"
    digest = manifest.get("digest")
    lines = [
        f"{counted(jobs['completed'], 'job')} completed, {jobs['failed']:,} failed, "
        f"{jobs['rejected']:,} rejected, {place}. Seed {manifest['seed']}, version "
        f"{manifest.get('version', 'unknown')}, "
        + (f"digest {digest}." if digest else "no digest, since the run was live.")
    ]
    live = manifest.get("live") or {}
    if live.get("unfinished"):
        why = "was interrupted" if live.get("interrupted") else "reached its time limit"
        lines.append(f"{counted(live['unfinished'], 'job')} had not ended when the run {why}.")
    measured = measured_line(manifest)
    if measured is not None:
        lines.append(f"Note: {measured}; metrics of machines and charts cover the whole run.")
    return lines


# Tables


def meaning_of(metric: str, plugins: Mapping[str, str]) -> str:
    """The definition of a metric with its source; that of a plugin metric is in `plugins`."""
    known = METRICS.get(metric)
    if known is None:
        return plugins.get(metric, "")
    source = f" Source: {known.source}." if known.source else ""
    better = {"more": " Higher is better.", "less": " Lower is better."}.get(known.better, "")
    over = f"Aggregation: {known.over}. Range: {known.values}."
    return f"{known.meaning} {over}{better}{source}".replace("`", "")


def hints_of(metrics: Sequence[str], plugins: Mapping[str, str]) -> dict[str, str]:
    return {label_of(metric): meaning_of(metric, plugins) for metric in metrics}


def _of_grid(run: RunData, names: Sequence[str], *, prose: bool = False) -> Table:
    """A row for each of these metrics of the grid that applies, in `prose` with its meaning."""
    found = run.metrics["grid"]
    own = [name for name in found if name not in METRICS]
    known = [name for name in (*names, *own) if found.get(name) is not None]
    hints = hints_of(known, run.meanings)
    rows = [[label_of(name), shown(found[name])] for name in known]
    if not prose:
        return Table(["metric", "grid"], rows, hints=hints)
    return Table(["metric", "grid", "meaning"], [[*row, hints[row[0]]] for row in rows], prose=True)


def _by_vo(run: RunData) -> list[Block]:
    """A chart of the chosen metric and a table of all metrics."""
    vos = run.metrics["vos"]
    if len(vos) < 2:
        return []
    known = list(dict.fromkeys([*FIRST, *(metric for values in vos.values() for metric in values)]))
    known = [one for one in known if any(values.get(one) is not None for values in vos.values())]
    found = [(metric, vo, "", float(vos[vo][metric]), None, None) for metric in known
             for vo in run.vos if vos[vo].get(metric) is not None]  # fmt: skip
    columns = columns_of(("metric", "vo", "series", "value", "low", "high"), found)
    titles = {metric: label_of(metric) for metric in known}
    texts = [row_texts([vos[vo].get(metric) for vo in vos], "–") for metric in known]
    if len(vos) <= FEW_VOS:
        rows = [[titles[metric], *row] for metric, row in zip(known, texts, strict=True)]
        headers = ["metric", *vos]
    else:
        rows = [[vo, *(row[n] for row in texts)] for n, vo in enumerate(vos)]
        headers = ["VO", *titles.values()]
    meanings = {metric: meaning_of(metric, run.meanings) for metric in known}
    return [
        Choice("metric", "Metric", titles),
        *(When("metric", metric, meaning) for metric, meaning in meanings.items() if meaning),
        vo_chart(run.vos, columns, titles, caption="The selected metric by VO."),
        "All metrics; click a header to sort.",
        Table(headers, rows, hints=hints_of(known, run.meanings)),
    ]


def flow_tables(vos: Sequence[str], moved: Floats) -> list[str | Table]:
    """Local, outgoing and incoming jobs of each VO, and the largest flows between VOs."""
    local = np.diag(moved)
    # Means over seeds have a decimal.
    digits = 0 if (moved == np.round(moved)).all() else 1
    balance = [
        [vo, *(f"{jobs:,.{digits}f}" for jobs in (
            moved[n].sum(), local[n], moved[n].sum() - local[n], moved[:, n].sum() - local[n]))]
        for n, vo in enumerate(vos)
    ]  # fmt: skip
    headers = ("VO", "started jobs", "executed locally", "executed remotely", "jobs of other VOs")
    away = moved - np.diag(local)
    order = np.argsort(-away, axis=None, kind="stable")[:FLOWS]
    rows = [
        [vos[origin], vos[host], f"{away[origin, host]:,.{digits}f}",
         f"{100 * away[origin, host] / moved[origin].sum():.1f}"]
        for origin, host in (divmod(int(place), len(vos)) for place in order)
        if away[origin, host]
    ]  # fmt: skip
    if not rows:
        return [Table(headers, balance), "No job was executed by another VO."]
    pairs = ("submitted in", "executed in", "jobs", "share of the VO's started jobs (%)")
    return [Table(headers, balance), Table(pairs, rows, keys=2)]


# Charts


def _choice_of_clusters(run: RunData) -> Choice:
    return Choice("cluster", "Cluster", {title: title for title in run.cluster_titles})


def courses(run: RunData) -> Iterator[Picture]:
    """Each column of the series over time: a line per cluster, or their median and a chosen one."""
    times = run.series["time_s"].to_numpy()
    if not len(times):
        return
    count = len(run.clusters)
    length = len(times) // count
    starts = np.arange(0, length, -(-length // (INSTANTS if count <= FEW else INSTANTS // 2)))
    seconds, unit = run.time_unit
    time = times[:length][starts] / seconds
    defined = FILES["series"].columns
    for column in run.series.column_names:
        if column in defined and column not in SERIES_LABELS:
            continue
        levels = run.series[column].to_numpy(zero_copy_only=False).astype(np.float64)
        sums = np.add.reduceat(levels.reshape(count, length), starts, axis=1)
        means = sums / np.diff(np.append(starts, length))
        label = SERIES_LABELS.get(column) or label_of(column)
        own = run.meanings.get(column, f"{label[0].upper()}{label[1:]}.")
        look = column.replace("_", "-"), defined.get(column, ("", own))[1], label, unit
        lines = {
            title: (time, row)
            for title, row in zip(run.cluster_titles, means, strict=True)
            if not np.isnan(row).all()
        }
        if lines and count <= FEW:
            yield course(*look, lines, among=run.cluster_titles)
        elif lines:
            yield _median(run, *look, time, means)


def course(
    name: str,
    caption: str,
    label: str,
    unit: str,
    lines: Mapping[str, tuple[Floats, Floats]],
    parameters: Mapping[str, Any] = MappingProxyType({}),
    more: Columns = MappingProxyType({}),
    legend: str | None = None,
    among: Sequence[str] = (),
) -> Picture:
    """Lines in steps: times (in `unit`) and values by name; `more` are columns of the table."""
    columns: Columns = {
        "series": [one for one, (times, _) in lines.items() for _ in times],
        "time": np.concatenate([times for times, _ in lines.values()]),
        "value": np.concatenate([values for _, values in lines.values()]),
        **more,
    }
    shades = series(list(lines), "strokeDash", title=legend, among=among)
    specification = chart(
        "course",
        name=name,
        parameters=parameters,
        x=time_axis("time", unit),
        label=label,
        shades=shades,
        band=chart("band", label=label) if "low" in columns else [],
        tips=tooltip(series=legend or "", time=f"time ({unit})", value=label),
    )
    return Picture(name, caption, specification, {name: columns})


def _median(
    run: RunData, name: str, meaning: str, label: str, unit: str, time: Floats, levels: Floats
) -> Picture:
    """Median and the central 80 % of all clusters, and the chosen cluster."""
    low, middle, high = np.nanquantile(levels, (0.1, 0.5, 0.9), axis=0)
    nothing: list[Any] = [None] * levels.size
    lines = {
        MEDIAN: (time, middle),
        "the chosen cluster": (np.tile(time, len(levels)), levels.ravel()),
    }
    more: Columns = {
        "cluster": [*("" for _ in time), *(one for one in run.cluster_titles for _ in time)],
        "low": [*low.tolist(), *nothing],
        "high": [*high.tolist(), *nothing],
    }
    parameters = {
        "params": [{"name": "cluster", "value": run.cluster_titles[0]}],
        "transform": [{"filter": "datum.cluster === '' || datum.cluster === cluster"}],
    }
    caption = f"{meaning} Median of {len(levels)} clusters; band: the central 80\u00a0%."
    return course(name, caption, label, unit, lines, parameters, more)


def _waits(run: RunData) -> list[Block]:
    """Distributions of wait and stretch; median wait by CPUs and by run time."""
    is_completed = np.array(run.jobs["state"].to_pylist()) == "completed"
    wait = run.column("waiting_time")
    stretch = np.where(is_completed, run.column("stretch"), np.nan)
    groups, parameters = _groups(run)
    among = [f"jobs of {vo}" for vo in run.vos] if 1 < len(run.vos) <= FEW else []
    pictures: list[Picture] = []
    for name, label, values in (("wait", "wait (s)", wait), ("stretch", "stretch", stretch)):
        known = [(vo, title, values[rows & ~np.isnan(values)]) for vo, title, rows in groups]
        columns = step_columns("vo", known, STEPS if len(run.vos) <= FEW else STEPS // 3)
        if columns["value"]:
            caption = f"Share of the jobs whose {name} is at most x."
            pictures.append(
                distribution(f"cdf-{name}", caption, label, columns, parameters, among=among)
            )
    cpus, run_time = run.column("requested_number_of_resources"), run.column("run_time")
    with np.errstate(divide="ignore", invalid="ignore"):
        classes = np.floor(np.log2(cpus)), np.floor(2 * np.log10(run_time))
    for name, label, size, of in (("cpus", "CPUs of the job", cpus, classes[0]),
                                  ("run-time", "run time (s)", run_time, classes[1])):  # fmt: skip
        columns = _by_size(wait, size, of, groups)
        if len(set(columns["x"])) > 1:
            caption = f"Median wait by {label}, in classes; band: the central 80\u00a0% of waits."
            pictures.append(
                grid_chart(f"wait-by-{name}", caption, columns, x=label, y="median wait (s)",
                           parameters=parameters, among=among)
            )  # fmt: skip
    choice = Choice("vo", "Virtual organization", {vo: vo for vo in run.vos})
    return [*([choice] if parameters and pictures else []), *pictures]


def _groups(run: RunData) -> tuple[list[tuple[str, str, Bools]], dict[str, Any]]:
    """VO, title and rows of each group of jobs; of many VOs, one is chosen by a parameter."""
    owner = run.positions("vo", run.vos)
    every = [("", ALL_JOBS, np.ones(len(owner), np.bool_))]
    if len(run.vos) == 1:
        return every, {}
    if len(run.vos) <= FEW:
        return [("", f"jobs of {vo}", owner == n) for n, vo in enumerate(run.vos)], {}
    parameters = {
        "params": [{"name": "vo", "value": run.vos[0]}],
        "transform": [{"filter": "datum.vo === '' || datum.vo === vo"}],
    }
    return [*every, *((vo, OF_CHOSEN, owner == n) for n, vo in enumerate(run.vos))], parameters


def _by_size(
    wait: Floats, size: Floats, classes: Floats, groups: Sequence[tuple[str, str, Bools]]
) -> dict[str, list[Any]]:
    """Median wait, and the central 80 %, of each class of sizes."""
    found: list[tuple[str, str, float, float, float, float]] = []
    known = np.isfinite(wait) & np.isfinite(classes)
    for vo, title, rows in groups:
        for place in np.unique(classes[known & rows]):
            chosen = known & rows & (classes == place)
            low, middle, high = np.quantile(wait[chosen], (0.1, 0.5, 0.9)).tolist()
            # The same for all VOs, in few digits: the ticks of the axis.
            x = float(f"{np.median(size[known & (classes == place)]):.3g}")
            found.append((vo, title, x, middle, low, high))
    return columns_of(("vo", "series", "x", "value", "low", "high"), found)
