"""The report of one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from grid.lab.report.flows import flow_map, flow_tables
from grid.lab.report.gantt import gantt_charts
from grid.lab.report.labels import counted, shown
from grid.lab.report.page import Block, Choice, Folded, Section, Source, Table, When, html_page
from grid.lab.report.run_data import RunData, read_run
from grid.lab.report.run_pictures import LINES, courses, vo_bars
from grid.lab.report.style import PICTURES, Picture
from grid.lab.report.waiting import distributions, wait_against_size
from grid.lab.report.zoom import HINT
from grid.results.definitions import FILES, METRICS, label_of, row_texts
from grid.results.summary import measured_line

FIRST = ("wait_mean", "bounded_slowdown_mean", "user_utility", "utilization", "jobs_forwarded")
"""What is chosen first, if there is such a metric."""
MAIN = (
    "jobs_submitted", "jobs_completed", "jobs_failed", "jobs_rejected", "jobs_forwarded",
    "hops_mean", "wait_mean", "response_time_mean", "bounded_slowdown_mean", "late_percent",
    "user_utility", "utilization", "makespan", "energy_j",
)  # fmt: skip
"""Of the grid, what stands open at the top, beside what was plugged in; all else is folded."""
BESIDE = 6
"""So many VOs have a column each in the table of all metrics; of more, each has a row."""
ALL = "All metrics of the grid, and what they mean"
PAPERS = (
    "Sources: PU, C07, CS2, EG and GM are the papers that the emulator reproduces; its "
    "documentation has their titles and authors (CITATION.cff)."
)


def write_run_page(folder: Path, page: Path) -> None:
    """Write the report of the run in `folder`, and its pictures into `pictures` beside it."""
    run = read_run(folder)
    manifest = run.manifest
    jobs = manifest["jobs"]
    vos = counted(len(run.vos), "VO")
    # Of a run in which no job ran there is no series either, which knows the clusters.
    place = f"on {counted(len(run.clusters), 'cluster')} of {vos}." if run.clusters else ""
    introduction = (
        f"Seed {manifest['seed']}; {counted(jobs['completed'], 'job')} completed, "
        f"{jobs['failed']:,} failed, {jobs['rejected']:,} rejected, "
        + (place or f"in {vos}. No job ran: machines were never busy, and there are no waits.")
    )
    unfinished = (manifest.get("live") or {}).get("unfinished", 0)
    if unfinished:
        why = "interrupted" if manifest["live"].get("interrupted") else "out of time"
        introduction += f" {counted(unfinished, 'job')} had not ended: the run was {why}."
    if run.part_time:
        more = f"; {len(run.part_time) - BESIDE} others" * (len(run.part_time) > BESIDE)
        listed = "; ".join(run.part_time[:BESIDE])
        introduction += f" In the grid for a part of the time: {listed}{more}."
    measured = measured_line(manifest)
    if measured is not None:
        others = "figures of machines, and all charts but that by VO, are of the whole run"
        introduction += f" All {measured}; {others}."
    sections = [
        Section("Results", [_main_results(run), Folded(ALL, [_results(run), PAPERS])]),
        Section("By virtual organization", _by_vo(run)),
        Section("Over time", _over_time(run)),
        Section("Gantt charts", _gantt(run)),
        Section("Waits and stretch", _waiting(run)),
        Section("Flows between VOs", _flows(run)),
        Section(
            "How it was made",
            [
                _made(manifest),
                Folded("All that manifest.json says, and what it means", [_making(manifest)]),
                Source("The scenario, defaults filled in", run.scenario),
            ],
        ),
    ]
    title = f"Run of {manifest.get('scenario', folder.resolve().name)}"
    save_page(page, html_page(title, introduction, sections), sections)


def save_page(page: Path, text: str, sections: Sequence[Section]) -> None:
    """Write a page, and all of its charts as files into `pictures` beside it.

    All are made first and then take the place of what is there, so that an interruption leaves
    what there was.
    """
    charts = [one for section in sections for one in section.blocks if isinstance(one, Picture)]
    files = {page.parent / PICTURES / name: data for one in charts for name, data in one.files()}
    if page.exists() and not page.is_file():
        # A device or a pipe, which takes what is written and stays.
        page.write_bytes(text.encode())
    else:
        files[page.resolve()] = text.encode()
    partial = {path: path.with_name(f".{path.name}.{os.getpid()}.partial") for path in files}
    try:
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial[path].write_bytes(data)
        for path, made in partial.items():
            made.replace(path)
    finally:
        for made in partial.values():
            with suppress(OSError):
                made.unlink()


def meaning_of(metric: str, plugged_in: Mapping[str, str]) -> str:
    """The definition of a metric in a sentence or two, with its source.

    `plugged_in` has the meanings of those that were plugged in, as far as they are known.
    """
    known = METRICS.get(metric)
    if known is None:
        return plugged_in.get(metric, "")
    source = f" Source: {known.source}." if known.source else ""
    better = f" Better is {known.better}." if known.better else ""
    over = f"Taken over: {known.over}. Values: {known.values}."
    return f"{known.meaning} {over}{better}{source}".replace("`", "")


def hints_of(metrics: Sequence[str], plugged_in: Mapping[str, str]) -> dict[str, str]:
    """What the headers that name metrics mean."""
    return {label_of(metric): meaning_of(metric, plugged_in) for metric in metrics}


def _main_results(run: RunData) -> Table:
    """The metrics of the grid that are looked at first."""
    found = run.metrics["grid"]
    names = [*MAIN, *(name for name in found if name not in METRICS)]
    there = [name for name in names if found.get(name) is not None]
    rows = [[label_of(name), shown(found[name])] for name in there]
    return Table(["metric", "grid"], rows, hints=hints_of(there, run.meanings))


def _results(run: RunData) -> Table:
    """The metrics of the grid, with what they mean."""
    found = run.metrics["grid"]
    # As they are defined, one by the other; what was plugged in comes last.
    names = [*(name for name in METRICS if name in found), *(n for n in found if n not in METRICS)]
    rows = [
        [label_of(name), shown(found[name]), meaning_of(name, run.meanings)]
        for name in names
        if found[name] is not None
    ]
    return Table(["metric", "grid", "meaning"], rows, prose=True)


def _by_vo(run: RunData) -> list[Block]:
    """A chart of a metric that is chosen, and a table of all, a row a VO."""
    vos = run.metrics["vos"]
    if len(vos) < 2:
        return []
    given = list(dict.fromkeys(metric for figures in vos.values() for metric in figures))
    known = [one for one in given if any(vos[vo].get(one) is not None for vo in vos)]
    known.sort(key=lambda metric: FIRST.index(metric) if metric in FIRST else len(FIRST))
    columns = [row_texts([vos[vo].get(metric) for vo in vos], "–") for metric in known]
    meanings = {metric: meaning_of(metric, run.meanings) for metric in known}
    hints, labels = hints_of(known, run.meanings), [label_of(metric) for metric in known]
    if len(vos) <= BESIDE:
        rows = [[label, *column] for label, column in zip(labels, columns, strict=True)]
        table = Table(["metric", *vos], rows, hints=hints)
    else:
        rows = [[vo, *(column[n] for column in columns)] for n, vo in enumerate(vos)]
        table = Table(["VO", *labels], rows, hints=hints)
    return [
        Choice("metric", "Metric", {metric: label_of(metric) for metric in known}),
        *(When("metric", metric, meaning) for metric, meaning in meanings.items() if meaning),
        vo_bars(run, known),
        "All metrics; choose a column's header to sort by it.",
        table,
    ]


def _over_time(run: RunData) -> list[Block]:
    pictures = list(courses(run))
    if not pictures:
        return []
    choice = [_cluster_choice(run.cluster_titles)] if len(run.clusters) > LINES else []
    return [HINT, *choice, *pictures]


def _gantt(run: RunData) -> list[Block]:
    pictures = list(gantt_charts(run))
    if len(pictures) == 1 and pictures[0].name == "gantt":
        return [_cluster_choice(run.cluster_titles), *pictures]
    return list(pictures)


def _cluster_choice(titles: Sequence[str]) -> Choice:
    return Choice("cluster", "Cluster", {title: title for title in titles})


def _waiting(run: RunData) -> list[Block]:
    pictures = [*distributions(run), *wait_against_size(run)]
    many = len(run.vos) > LINES
    choice = Choice("vo", "Virtual organization", {vo: vo for vo in run.vos})
    return [*([choice] if many and pictures else []), *pictures]


def _flows(run: RunData) -> list[Block]:
    if len(run.vos) < 2 or not run.moved.any():
        return []
    return [flow_map(run.vos, {"": run.moved}), *flow_tables(run.vos, run.moved)]


def _made(manifest: dict[str, Any]) -> str:
    """What names the run, in a sentence."""
    digest = manifest.get("digest")
    told = f"its digest is {digest}" if digest else "being live, it has no digest"
    version = manifest.get("version", "unknown")
    return f"Version {version} of the emulator made this run, with seed {manifest['seed']}; {told}."


def _making(manifest: dict[str, Any]) -> Table:
    """What the manifest says, with what its keys mean; without plans by queue length."""
    rows = [
        [key, _plain(value), _meaning_of_key(key)]
        for key, value in _flat(manifest)
        if "_below_" not in key
    ]
    return Table(["key of manifest.json", "value", "meaning"], rows, prose=True)


def _flat(tree: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings by their keys, with `.` between these."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _meaning_of_key(key: str) -> str:
    for pattern, (unit, meaning) in FILES["manifest"].columns.items():
        if fnmatchcase(key, pattern):
            return (f"{meaning} Unit: {unit}." if unit else meaning).replace("`", "")
    return ""


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "none"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return shown(value)
