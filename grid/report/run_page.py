"""The report of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from grid.report.labels import counted, shown
from grid.report.page import Section, Source, Table, html_page
from grid.report.run_data import RunData, read_run
from grid.report.run_pictures import run_pictures
from grid.results.definitions import label_of

VOS_SHOWN = 12
FLOWS_SHOWN = 12
PICTURES = "pictures"
CDFS = ("cdf-wait", "cdf-slowdown")
MAP = "vo-map"


def write_run_page(folder: Path, page: Path) -> None:
    """Write the report of the run in `folder`, and its pictures into `pictures` beside it."""
    run = read_run(folder)
    pictures = list(run_pictures(run))
    for drawn in pictures:
        drawn.save(page.parent / PICTURES)
    manifest = run.manifest
    jobs = manifest["jobs"]
    place = f"{counted(len(run.clusters), 'cluster')} of {counted(len(run.vos), 'VO')}"
    introduction = (
        f"Seed {manifest['seed']}; {jobs['completed']:,} jobs completed, {jobs['failed']:,} "
        f"failed, {jobs['rejected']:,} rejected, on {place}."
    )
    sections = [
        Section("Results", [_results(run), *_left_out(run)]),
        Section("Over time", [one for one in pictures if one.name not in (*CDFS, MAP)]),
        Section("Distributions", [one for one in pictures if one.name in CDFS]),
        Section(
            "Forwarding", [*(one for one in pictures if one.name == MAP), *_largest_flows(run)]
        ),
        Section(
            "How it was made",
            [_making(manifest), Source("The scenario, defaults filled in", run.scenario)],
        ),
    ]
    title = f"Run of {manifest.get('scenario', folder.resolve().name)}"
    page.write_text(html_page(title, introduction, sections), encoding="utf-8")


def _results(run: RunData) -> Table:
    """The metrics of the grid and of the VOs with most jobs."""
    vos = run.metrics["vos"]
    names = sorted(vos, key=lambda name: -(vos[name]["jobs_submitted"] or 0))[:VOS_SHOWN]
    # Of a single VO the grid's figures tell all.
    names = [name for name in vos if name in names and len(vos) > 1]
    columns = [run.metrics["grid"], *(vos[name] for name in names)]
    rows = [
        [label_of(metric), *(shown(column.get(metric)) for column in columns)]
        for metric in run.metrics["grid"]
        if any(column.get(metric) is not None for column in columns)
    ]
    return Table(["metric", "grid", *names], rows)


def _left_out(run: RunData) -> list[str]:
    count = len(run.vos) - VOS_SHOWN
    return [f"{count} VOs with fewer jobs stand in metrics.json alone."] if count > 0 else []


def _largest_flows(run: RunData) -> list[Table]:
    """The pairs of VOs of which one ran most jobs of the other."""
    moved = run.moved.copy()
    np.fill_diagonal(moved, 0)
    order = np.argsort(-moved, axis=None, kind="stable")[:FLOWS_SHOWN]
    pairs = [divmod(int(place), len(run.vos)) for place in order]
    rows = [
        [f"{run.vos[owner]} → {run.vos[host]}", shown(moved[owner, host]),
         shown(100 * moved[owner, host] / run.moved[owner].sum())]
        for owner, host in pairs
        if moved[owner, host]
    ]  # fmt: skip
    headers = ["largest flows", "jobs", "% of the first's jobs"]
    return [Table(headers, rows)] if rows else []


def _making(manifest: dict[str, Any]) -> Table:
    """What the manifest says, nested figures spelt out."""
    rows: list[list[str]] = []
    for name, value in manifest.items():
        if isinstance(value, dict):
            for inner, figure in value.items():
                rows.append([f"{name}: {inner}", _plain(figure)])
        else:
            rows.append([name, _plain(value)])
    rows = [[name.replace("_", " "), value] for name, value in rows]
    return Table(["", "value"], rows, prose=True)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items()) or "none"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return shown(value) if is_number else str(value)
