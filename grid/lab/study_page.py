"""The page of a study, in Markdown: question, set-up, charts, answers, conditions, cost."""

from __future__ import annotations

import html
import itertools
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grid.config.shipped import experiments_folder
from grid.lab.experiment import AnswerSection, ExperimentSection, StudySection, is_value
from grid.lab.findings import SAME, SAME_NOTE, best_of, mean_columns, warnings_of
from grid.lab.markdown import markdown, table
from grid.lab.report.picture import shown
from grid.lab.report.sweep_page import comparison_chart, panels_left_out
from grid.lab.study import Study, read_repeated, read_study
from grid.results.definitions import METRICS, label_of


def write_study_page(
    experiment: ExperimentSection,
    folder: Path,
    page: Path,
    *,
    options: Sequence[str] = (),
    file: Path | None = None,
) -> None:
    """Write the page of the study in `folder`, and its charts next to it.

    The page names the command that made it: `file` is where the experiment was read (None: a
    shipped one), and `options` are those that changed the experiment.
    """
    study, runs, about = read_repeated(folder), read_study(folder), experiment.study
    assert about is not None
    name = experiment.name
    if file is not None and file.resolve().parent != experiments_folder().resolve():
        name = str(file)
    metrics = dict.fromkeys([*(one.metric for one in about.answers), *study.metrics])
    rows = [
        [html.escape(cell, quote=False) for cell in row]
        for row in zip(*mean_columns(study, tuple(metrics)), strict=True)
    ]
    means = table([*study.axes, *map(label_of, metrics)], rows)
    seeds = sorted({seed for _, seed, _ in runs.runs})
    is_range = len(seeds) > 2 and seeds[-1] - seeds[0] == len(seeds) - 1
    text = markdown(
        "study",
        study=about,
        command=shlex.join(["grid", "sweep", name, *options, "--page", str(page)]),
        quick=" With `--quick`: fewer values and seeds than the study." * ("--quick" in options),
        prose=_prose,
        settings=[
            (key, one if isinstance(one, str) else json.dumps(one, ensure_ascii=False))
            for key, one in experiment.set.items()
        ],
        axes=runs.axes,
        repeated_over=experiment.repeated_over,
        seeds=f"{seeds[0]} to {seeds[-1]}" if is_range else ", ".join(map(str, seeds)),
        has_intervals=len(study.runs) > len(study.points),
        level=f"{100 * study.level:g}",
        charts="\n\n".join(_charts(study, about, page)),
        answers=[
            *(html.escape(one, quote=False) for one in warnings_of(folder, study)),
            *(_answer(study, one) for one in about.answers),
        ],
        means=means,
        note=SAME_NOTE if f" {SAME} |" in means else "",
        cost=_cost(study),
    )
    page.write_text(text, encoding="utf-8")


def _prose(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _charts(study: Study, about: StudySection, page: Path) -> Iterator[str]:
    """Write a chart of each metric of an answer; yields references to them."""
    first = {one.metric: one for one in reversed(about.answers)}
    for metric in dict.fromkeys(one.metric for one in about.answers):
        answer = first[metric]
        chosen = replace(study, axes={**study.axes, answer.best_of: _compared(study, answer)})
        if left_out := panels_left_out(chosen, answer.along):
            yield left_out
        picture = comparison_chart(chosen, metric, answer.along)
        if picture is not None:
            name = f"{page.stem}-{picture.name.removeprefix('compare-')}.svg"
            (page.parent / name).write_bytes(picture.svg)
            yield f"![{picture.caption}]({name})\n\n*{picture.caption}*"


# Answers


def _answer(study: Study, answer: AnswerSection) -> str:
    """A line for each combination of the other axes: the best value, and its range of `along`."""
    others = [name for name in study.axes if name not in answer.axes()]
    lines = []
    for values in itertools.product(*(study.axes[name] for name in others)):
        where = dict(zip(others, values, strict=True))
        if found := _best_along(study, answer, where):
            said = ", ".join(f"{name} `{value}`" for name, value in where.items())
            lines.append(f"- {said + ': ' if said else ''}{'; '.join(found)}.")
    known = METRICS.get(answer.metric)
    meaning = "" if known is None else f" {known.meaning} Aggregation: {known.over}."
    among = f" among {', '.join(f'`{one}`' for one in answer.among)}" if answer.among else ""
    head = f"**The best {answer.best_of} by {label_of(answer.metric)}**{among}"
    head += f" ({answer.better} is better).{meaning}"
    return f"{head}\n\n" + ("\n".join(lines) or "No run has this metric.")


def _best_along(study: Study, answer: AnswerSection, where: Mapping[str, Any]) -> list[str]:
    """The best value at each value of `along`; neighbours with the same best value are merged."""
    along = answer.along
    found: list[tuple[Any, list[str]]] = []
    for place in [None] if along is None else study.axes[along]:
        point = dict(where) if along is None else {**where, along: place}
        best, said = _best_at(study, answer, point)
        if best is None:
            continue
        at = "" if along is None else f" at {along} `{place}`"
        if found and found[-1][0] == best:
            found[-1][1].append(f"{at.removeprefix(' at ')} ({said})")
        else:
            found.append((best, [f"`{best}`{at} ({said})"]))
    return [" and ".join(parts) for _, parts in found]


def _compared(study: Study, answer: AnswerSection) -> list[Any]:
    values = study.axes[answer.best_of]
    if answer.among is None:
        return values
    return [value for value in values if any(is_value(one, value) for one in answer.among)]


def _best_at(study: Study, answer: AnswerSection, point: Mapping[str, Any]) -> tuple[Any, str]:
    """The best value at a point, its mean, and the values that do not differ significantly."""
    values = _compared(study, answer)
    best = best_of(study, answer.metric, answer.best_of, values, point, answer.better)
    if best is None:
        return None, ""
    mean = best.means[best.value]
    worst = max(best.means.values(), key=lambda other: abs(other - mean))
    said = f"{shown(mean)}, the worst {shown(worst)}"
    if best.seeds < best.every:
        count = "one repetition" if best.seeds == 1 else f"{best.seeds} repetitions"
        said += f"; by the {count} that all of them have"
    if best.undecided:
        alike = ", ".join(f"`{one}` {shown(best.means[one])}" for one in best.undecided)
        said += f"; not significantly different: {alike}"
    return best.value, said


# Tables


def _cost(study: Study) -> str:
    seconds = [
        sum(float(one) for one in clock["cpu_seconds"].values()) for clock in study.clocks.values()
    ]
    whole = sum(seconds)
    together = f"{shown(whole / 60)} minutes" if whole >= 120 else f"{shown(whole)} s"
    return (
        f"{len(seconds)} runs of {shown(min(seconds))} to {shown(max(seconds))} CPU seconds, "
        f"{together} in total."
    )
