"""The page of a study, in Markdown: question, set-up, pictures, answer, conditions, cost."""

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
from grid.lab.axes import stands_for
from grid.lab.repetitions import read_repeated
from grid.lab.report.labels import shown
from grid.lab.schema import AnswerSection, ExperimentSection, OldBoardsSection, StudySection
from grid.lab.study import Study, read_study
from grid.lab.sweep_page import charts_left_out, comparison_charts
from grid.lab.sweep_texts import (
    SAME,
    SAME_TOLD,
    cells_of,
    fewer_seeds,
    jobs_turned_away,
    listed_numbers,
    measured_line,
    missing_told,
    own_bounds,
)
from grid.lab.telling import without_effect
from grid.results.bounds import OwnBounds
from grid.results.definitions import METRICS, label_of

LONGEST_PERIOD = 150.0
"""Of longer ones, in mean run times, the equations cannot be solved as they are."""
CLOSE_ENOUGH = 1e-7

Rows = Sequence[Sequence[str]]


def write_study_page(
    experiment: ExperimentSection,
    folder: Path,
    page: Path,
    *,
    options: Sequence[str] = (),
    file: Path | None = None,
) -> None:
    """Write the page of the study in `folder`, and its pictures beside it.

    The page says how it was made: `file` is where the experiment stands (None: by its name), and
    `options` are those of the command that changed the experiment.
    """
    study, about = read_repeated(folder), experiment.study
    assert about is not None
    runs = read_study(folder)
    varied = _axes(runs, experiment.repeated_over, len(study.runs) > len(study.points))
    warnings = missing_told(folder), fewer_seeds(runs), jobs_turned_away(study)
    said_first = map(_plain, filter(None, [*warnings, without_effect(study)]))
    if measured := measured_line(folder):
        varied += f"\n- {measured[0].lower()}{measured[1:-1]}"
    pictures = list(_pictures(study, about, page, own_bounds(folder)))
    command = ["grid", "sweep", _given(study.name, file), *options, "--page", str(page)]
    parts = [
        f"# {about.title}",
        f"Written by `{shlex.join(command)}`.{_if_quick('--quick' in options)}",
        f"## Question\n\n{_prose(about.question)}",
        f"## Set-up\n\n{_prose(about.set_up)}\n\n{_set(experiment)}{varied}",
        "## Pictures\n\n" + "\n\n".join(pictures),
        "\n\n".join(["## Answer", *said_first, *(_answer(study, one) for one in about.answers)]),
    ]
    if about.old_boards is not None:
        parts.append("## Beside the theory\n\n" + _old_boards(study, about.old_boards))
    parts += [
        f"## What it depends on\n\n{_prose(about.hangs_on)}",
        "## All figures\n\n" + _explained(_means(study, _metrics(study, about))),
        f"## Cost\n\n{_cost(study)}",
    ]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _explained(table: str) -> str:
    """The table, with what its sign for equal repetitions means, if that is in it."""
    return f"{table}\n\n{SAME_TOLD}." if f" {SAME} |" in table else table


def _given(name: str, file: Path | None) -> str:
    """What `grid sweep` was given: a path, but of a shipped experiment its name."""
    if file is None or file.resolve().parent == experiments_folder().resolve():
        return name
    return str(file)


def _if_quick(quick: bool) -> str:
    if not quick:
        return ""
    said = "fewer values and seeds than the study has, and what stands under Set-up as set"
    return f" With `--quick`: {said}, whatever the text says."


def _prose(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _set(experiment: ExperimentSection) -> str:
    """What is set in all runs, a line for each, as it is written in a file."""
    written = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in experiment.set.items()
    }
    return "".join(f"- set: `{key}: {value}`\n" for key, value in written.items())


def _axes(study: Study, repeated_over: str | None, is_repeated: bool) -> str:
    lines = []
    for name, values in study.axes.items():
        listed = ", ".join(f"`{value}`" for value in values)
        said = "; repetitions, from which the intervals are" if name == repeated_over else ""
        lines.append(f"- {name}: {listed}{said}")
    seeds = sorted({seed for _, seed, _ in study.runs})
    said = "the same seed means the same jobs, unless an axis changes them"
    if is_repeated:
        said += (
            ". Values are *not told apart* where the interval of their difference, paired by "
            f"{repeated_over or 'seed'}, "
            f"has 0 in it (Student's, at {100 * study.level:g} %, one by one)"
        )
    return "\n".join(
        [*lines, f"- {'seeds' if len(seeds) > 1 else 'seed'}: {listed_numbers(seeds)}; {said}"]
    )


def _metrics(study: Study, about: StudySection) -> tuple[str, ...]:
    decisive = [one.metric for one in about.answers]
    return tuple(dict.fromkeys([*decisive, *study.metrics]))


def _pictures(study: Study, about: StudySection, page: Path, bounds: OwnBounds) -> Iterator[str]:
    """Draw what decides, and say where it is."""
    first = {one.metric: one for one in reversed(about.answers)}
    for metric in dict.fromkeys(one.metric for one in about.answers):
        answer = first[metric]
        held = replace(study, axes={**study.axes, answer.best_of: _held(study, answer)})
        if left_out := charts_left_out(held, answer.along):
            yield left_out
        for picture in comparison_charts(held, metric, bounds, answer.along):
            name = f"{page.stem}-{picture.name.removeprefix('compare-')}.svg"
            (page.parent / name).write_bytes(picture.svg)
            yield f"![{picture.caption}]({name})\n\n*{picture.caption}*"


# Answers


def _answer(study: Study, answer: AnswerSection) -> str:
    """A line for each combination of the other axes: what is best, and from where to where."""
    others = [name for name in study.axes if name not in answer.axes()]
    combinations = itertools.product(*(study.axes[name] for name in others))
    lines = []
    for values in combinations:
        where = dict(zip(others, values, strict=True))
        found = _best_along(study, answer, where)
        if found:
            said = ", ".join(f"{name} `{value}`" for name, value in where.items())
            lines.append(f"- {said + ': ' if said else ''}{'; '.join(found)}.")
    return f"{_head(answer)}\n\n" + ("\n".join(lines) or "No run has this figure.")


def _head(answer: AnswerSection) -> str:
    """What is answered, and what the figure is by which."""
    known = METRICS.get(answer.metric)
    meaning = "" if known is None else f" {known.meaning} Taken over: {known.over}."
    metric = label_of(answer.metric)
    among = (
        "" if answer.among is None else f" among {', '.join(f'`{one}`' for one in answer.among)}"
    )
    head = f"**The best {answer.best_of} by {metric}**{among} ({answer.better} is better)."
    return f"{head}{meaning}"


def _best_along(study: Study, answer: AnswerSection, where: Mapping[str, Any]) -> list[str]:
    """What is best along the axis, neighbours with the same winner in one."""
    along = answer.along
    places = [None] if along is None else study.axes[along]
    found: list[tuple[Any, str, list[str]]] = []
    for place in places:
        point = dict(where) if along is None else {**where, along: place}
        best, said = _best_at(study, answer, point)
        if best is None:
            continue
        at = "" if along is None else f" at {along} `{place}`"
        if found and found[-1][0] == best:
            found[-1][2].append(f"{at.removeprefix(' at ')} ({said})")
        else:
            found.append((best, f"`{best}`{at} ({said})", []))
    return [" and ".join([first, *more]) for _, first, more in found]


def _held(study: Study, answer: AnswerSection) -> list[Any]:
    """The values that are held against each other."""
    values = study.axes[answer.best_of]
    if answer.among is None:
        return values
    return [value for value in values if any(stands_for(one, value) for one in answer.among)]


def _best_at(study: Study, answer: AnswerSection, point: Mapping[str, Any]) -> tuple[Any, str]:
    """The best value at a point, its mean, and what cannot be told apart from it; None: nothing."""
    axis, metric = answer.best_of, answer.metric
    by_seed = {
        value: study.values(metric, {**point, axis: value}) for value in _held(study, answer)
    }
    by_seed = {value: of_seeds for value, of_seeds in by_seed.items() if of_seeds}
    if not by_seed:
        return None, ""
    # Means of different seeds would be of different jobs.
    every = set.union(*map(set, by_seed.values()))
    seeds = sorted(every.intersection(*by_seed.values()))
    if not seeds:
        return None, ""
    means = {
        value: sum(of_seeds[seed] for seed in seeds) / len(seeds)
        for value, of_seeds in by_seed.items()
    }
    best = (min if answer.better == "less" else max)(means, key=lambda value: means[value])
    like = []
    for value, mean in means.items():
        if value == best:
            continue
        apart = study.difference(metric, {**point, axis: best}, {**point, axis: value})
        if apart is not None and apart.count > 1 and apart.low <= 0 <= apart.high:
            like.append(f"`{value}` {shown(mean)}")
    worst = (max if answer.better == "less" else min)(means.values())
    said = f"{shown(means[best])}, the worst {shown(worst)}"
    if len(seeds) < len(every):
        counted = "one repetition" if len(seeds) == 1 else f"{len(seeds)} repetitions"
        said += f"; by the {counted} that all of them have"
    return best, said + (f"; not told apart: {', '.join(like)}" if like else "")


# Tables


def _means(study: Study, metrics: Sequence[str]) -> str:
    columns = [[str(point[axis]) for point in study.points] for axis in study.axes]
    columns += [cells_of([study.interval(one, point) for point in study.points]) for one in metrics]
    header = [*study.axes, *map(label_of, metrics)]
    return table(header, list(zip(*columns, strict=True)))


def table(header: Sequence[str], rows: Rows) -> str:
    """A table in Markdown, of plain texts."""
    lines = [map(_plain, header), ["---"] * len(header), *(map(_plain, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    """Text such as a label, so that Markdown takes nothing in it for its own."""
    return html.escape(text, quote=False).replace("|", "\\|")


def _old_boards(study: Study, theory: OldBoardsSection) -> str:
    """Measured and expected mean times, in mean run times, where the equations can be solved."""
    from grid.lab.verify.old_board import of_many

    rows = []
    for point in study.points:
        choices, load = str(point[theory.choices]), float(str(point[theory.load]))
        period = float(str(point[theory.period_s])) / theory.work_s
        interval = study.interval("response_time_mean", point)
        if not choices.isdecimal() or period > LONGEST_PERIOD or interval is None:
            continue
        # One choice needs no board: an M/M/1 queue, of which the equations take long to say so.
        alone = 1.0 / (1.0 - load)
        choice = int(choices)
        longest = 150 + round(4 * period)
        given = choice, load, period, longest
        expected = alone if choice == 1 else of_many(*given, close=CLOSE_ENOUGH)
        measured = interval.mean / theory.work_s
        off = f"{100.0 * (measured / expected - 1.0):+.1f} %"
        rows.append([*map(str, point.values()), shown(measured), shown(expected), off])
    said = (
        "Mean time in the system in mean run times: measured, and by the equations for very many "
        "servers whose jobs know nothing but the board (Mitzenmacher 2000). Here a VO also knows "
        "its own server as it is, and there are finitely many."
    )
    return f"{said}\n\n{table([*study.axes, 'measured', 'theory', 'off'], rows)}"


def _cost(study: Study) -> str:
    seconds = [
        sum(float(one) for one in clock["cpu_seconds"].values()) for clock in study.clocks.values()
    ]
    whole = sum(seconds)
    together = f"{shown(whole / 60)} minutes" if whole >= 120 else f"{shown(whole)} s"
    return (
        f"{len(seconds)} runs of {shown(min(seconds))} to {shown(max(seconds))} s of processor "
        f"time each, {together} together."
    )
