"""A virtual organization has one colour all over a report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grid
from grid.lab.report.charts import Labels, Series, bars, lines
from grid.lab.report.gantt import gantt_charts
from grid.lab.report.run_data import RunData, read_run
from grid.lab.report.run_pictures import _shades, courses, vo_bars
from grid.lab.report.style import COLOURS, DARK, LIGHT, Picture
from grid.lab.report.waiting import distributions, wait_against_size

VOS = ["delta", "alpha", "gamma", "beta"]
"""Not by name; and "delta" runs no job of its own."""


def run_of(
    folder: Path, vos: Sequence[str] = VOS, clusters: str = "[{machines: [{cpus: 2}]}]"
) -> RunData:
    jobs = [
        {"submit_s": 10 * n, "run_s": 30 + 50 * n, "requirements": cores(1 + n % 2)}
        for n in range(6)
    ]
    entries = [
        f"  - {{name: {vo}, clusters: {clusters}, workload: {{jobs: "
        f"{json.dumps(jobs if vo != VOS[0] else [])}}}}}"
        for vo in vos
    ]
    path = folder / "vos.yaml"
    path.write_text("vos:\n" + "\n".join(entries) + "\n")
    grid.run(path, out=folder / "run")
    return read_run(folder / "run")


def cores(count: int) -> list[dict[str, Any]]:
    return [{"kind": "cores", "options": [{"value": count}]}]


def pictures_of(run: RunData) -> Iterator[Picture]:
    yield from courses(run)
    yield from gantt_charts(run)
    yield from distributions(run)
    yield from wait_against_size(run)
    yield vo_bars(run, ["wait_mean"])


def colours_in(tree: Any) -> Iterator[tuple[str, str]]:
    """What has a colour in a chart, with its colour."""
    for one in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(one, dict | list):
            yield from colours_in(one)
    if isinstance(tree, dict) and "scale" in tree.get("color", ()):
        scale = tree["color"]["scale"]
        yield from zip(scale["domain"], scale["range"], strict=True)


def colours_of(run: RunData) -> dict[str, set[str]]:
    """The colours of each VO in all charts."""
    found: dict[str, set[str]] = {vo: set() for vo in run.vos}
    for picture in pictures_of(run):
        for name, colour in colours_in(picture.specification):
            vo = name.removeprefix("jobs of ").partition("/")[0]
            found.setdefault(vo, set()).add(colour)
    return found


def test_a_vo_has_one_colour_in_all_charts_of_a_run(tmp_path: Path) -> None:
    found = colours_of(run_of(tmp_path))
    assert {vo: found[vo] for vo in VOS} == {
        vo: {colour} for vo, colour in zip(VOS, COLOURS, strict=False)
    }
    others = set.union(*(colours for name, colours in found.items() if name not in VOS))
    assert others and not others & set(COLOURS[: len(VOS)])


def test_clusters_of_a_vo_share_its_colour_and_have_a_panel_each(tmp_path: Path) -> None:
    two = "[{name: x, machines: [{cpus: 2}]}, {name: y, machines: [{cpus: 2}]}]"
    run = run_of(tmp_path, VOS[1:], two)
    (picture, *_) = courses(run)
    colours = dict(colours_in(picture.specification))
    assert [colours[title] for title in run.cluster_titles] == [
        COLOURS[place] for place in (0, 0, 1, 1, 2, 2)
    ]
    assert picture.specification["facet"]["sort"] == run.cluster_titles
    assert picture.specification["spec"]["encoding"]["y"].get("scale") is None


def test_lines_of_two_clusters_of_a_vo_have_two_shades_of_its_colour(tmp_path: Path) -> None:
    two = "[{name: x, machines: [{cpus: 2}]}, {name: y, machines: [{cpus: 2}]}]"
    run = run_of(tmp_path, VOS[1:3], two)
    shades = _shades(run)
    assert [shades[title] for title in run.cluster_titles] == [0, 8, 1, 9]
    # On a dark screen as on a light one, shades are not the colours that others have.
    for of in (LIGHT, DARK):
        assert len({of[f"c{place}"] for place in shades.values()}) == 4


def test_lines_of_few_clusters_differ_in_dash(tmp_path: Path) -> None:
    (picture, *_) = courses(run_of(tmp_path, VOS[1:]))
    dashes = picture.specification["encoding"]["strokeDash"]["scale"]["range"]
    assert len(set(map(tuple, dashes))) == 3


def test_the_lower_half_of_an_interval_is_seen_on_its_bar() -> None:
    both = [Series(name, ["x", "y"], [2.0, 3.0], [1.0, 2.0], [3.0, 4.0]) for name in "ab"]
    fills = colours_in(bars(Labels("name", "caption", "x", "y"), both).specification)
    svg = bars(Labels("name", "caption", "x", "y"), both).svg.decode()
    rules = re.findall(r'<line [^>]*stroke="([^"]+)"[^>]*stroke-width="1.4"', svg)
    assert len(rules) == 4 and set(rules) == {LIGHT["ink"]}
    assert not set(rules) & {LIGHT[colour[6:-1]] for _, colour in fills}


def test_a_series_that_is_missing_in_a_chart_moves_no_colour() -> None:
    labels = Labels("name", "caption", "x", "y")
    both = [Series(name, [1, 2], [1.0, 2.0], place=n) for n, name in enumerate("ab")]
    first = dict(colours_in(lines(labels, both).specification))
    assert dict(colours_in(lines(labels, both[1:]).specification)) == {"b": first["b"]}
