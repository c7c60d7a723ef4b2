"""Pages and pictures as files: what is markup in a name is not markup on the page."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

import grid
from grid.lab.report.charts import Labels, Series, bars, chart, lines
from grid.lab.report.labels import shown
from grid.lab.report.page import Section, Source, Table, html_page
from grid.lab.report.run_data import read_run
from grid.lab.report.run_page import _by_vo, _results
from grid.lab.report.run_pictures import courses, vo_bars
from grid.lab.report.style import DARK, LIGHT, Picture
from grid.lab.report.waiting import distributions, wait_against_size
from grid.lab.reporting import write_report
from grid.model.errors import InputError
from grid.results.definitions import METRICS
from tests.lab.report.small_reports import one_job


def test_markup_in_texts_is_shown_and_not_obeyed() -> None:
    nasty = "<script>alert('&')</script>"
    sections = [Section(nasty, [nasty, Table([nasty], [[nasty]]), Source(nasty, nasty)])]
    page = html_page(nasty, nasty, sections)
    assert "<script>" not in page
    assert page.count("&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;") == 9


def test_a_report_that_is_broken_off_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = tmp_path / "one.yaml"
    scenario.write_text("vos: [{name: a, clusters: [{cpus: 1}], workload: {jobs: [{run_s: 1}]}}]")
    grid.run(scenario, out=tmp_path / "run")
    page = write_report(tmp_path / "run")
    pictures = tmp_path / "run" / "pictures"
    for path in (page, *pictures.iterdir()):
        path.write_text("earlier")
    drawn, count = Picture.files, len(list(pictures.glob("*.svg")))
    left = iter(range(count))

    def broken_off(picture: Picture) -> Iterator[tuple[str, bytes]]:
        yield from drawn(picture)
        if next(left) == count - 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Picture, "files", broken_off)
    with pytest.raises(KeyboardInterrupt):
        write_report(tmp_path / "run")
    assert {path.read_text() for path in (page, *pictures.iterdir())} == {"earlier"}
    monkeypatch.undo()
    write_report(tmp_path / "run")
    assert "earlier" not in {path.read_bytes()[:7].decode("latin-1") for path in pictures.iterdir()}
    assert not list((tmp_path / "run").rglob("*.partial"))


def test_columns_of_words_begin_at_one_place() -> None:
    rows = [["1", "two 2", "-3,000.5 ± 0.25"], ["4", "5", "–"], ["4", "5", "6.5 (unsure)"]]
    page = html_page("a", "b", [Section("c", [Table(["x", "words", "figures"], rows)])])
    assert page.count('<th scope="col" class="words">') == 1
    assert page.count('<td class="words">') == 3 and '<td class="words">5</td>' in page


def test_a_bar_is_labelled_as_the_table_has_it(tmp_path: Path) -> None:
    vos = [f"{{name: {vo}, clusters: [{{machines: [{{cpus: 1}}]}}], workload: {{jobs: "
           f"[{{run_s: {run_s}}}]}}}}" for vo, run_s in (("a", 21_129.6), ("b", 300))]  # fmt: skip
    scenario = tmp_path / "two.yaml"
    scenario.write_text(f"vos: [{', '.join(vos)}]\n")
    grid.run(scenario, out=tmp_path / "run")
    run = read_run(tmp_path / "run")
    picture = vo_bars(run, ["response_time_mean", "jobs_submitted"])
    assert picture.tables["vos"]["text"] == ["21,129.6", "300.0", "1", "1"] or (
        picture.tables["vos"]["text"] == ["21,129.6", "1", "300.0", "1"]
    )
    assert b">21,129.6<" in picture.svg


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ("", ""),
        ("joins_s: 5, ", "b from 5 s on."),
        ("leaves_s: 2.5, ", "b until 2.5 s."),
        ("joins_s: 5, leaves_s: 4000, ", "b from 5 s on until 4,000 s."),
    ],
)
def test_a_report_says_who_is_not_in_the_grid_all_the_time(
    times: str, told: str, tmp_path: Path
) -> None:
    rest = "clusters: [{cpus: 1}], workload: {jobs: [{run_s: 9}]}"
    vos = [f"{{name: {vo}, {more}{rest}}}" for vo, more in (("a", ""), ("b", times))]
    scenario, folder = tmp_path / "two.yaml", tmp_path / "run"
    scenario.write_text(f"vos: [{', '.join(vos)}]\n")
    grid.run(scenario, out=folder)
    page = write_report(folder).read_text()
    begin = "In the grid for a part of the time: "
    assert f"{begin}{told}" in page if told else begin not in page
    (folder / "scenario.yaml").write_text("leaves_s: 3\nvos: 7\n")
    assert begin not in write_report(folder).read_text()


def test_what_one_cluster_of_many_has_is_shown_of_it_alone(tmp_path: Path) -> None:
    jobs = "workload: {jobs: [{run_s: 10, cpus: 2}, {run_s: 10, cpus: 2}]}"
    vos = [f"{{name: vo{n}, clusters: [{{cpus: 3, policy: {policy}}}], {jobs}}}"
           for n, policy in enumerate(["easy"] * 7 + ["lgfs"])]  # fmt: skip
    scenario = tmp_path / "eight.yaml"
    scenario.write_text(f"protocol: {{forwarding: never}}\nvos: [{', '.join(vos)}]\n")
    grid.run(scenario, out=tmp_path / "run")
    pictures = {one.name: one for one in courses(read_run(tmp_path / "run"))}
    assert "Over 8 clusters: the median" in pictures["queued"].caption
    assert pictures["lost-cpus"].caption.endswith("Only vo7 has such.")
    assert set(pictures["lost-cpus"].tables["lost-cpus"]["series"]) == {"vo7"}


def test_both_charts_of_waits_against_size_have_one_axis(tmp_path: Path) -> None:
    """Long waits are only of jobs of one CPU: by CPUs they span much, by run time they do not."""
    jobs = [{"submit_s": 0, "run_s": 1000 if n < 9 else 10} for n in range(10)]
    more = [{"submit_s": 1e5, "run_s": 2000, "cpus": 2}]
    vos = [{"name": "a", "clusters": [{"cpus": 2, "policy": "fcfs"}],
            "workload": {"jobs": jobs + more}}]  # fmt: skip
    grid.run({"vos": vos}, out=tmp_path / "run")
    charts = list(wait_against_size(read_run(tmp_path / "run")))
    axes = [one.specification["layer"][1]["encoding"]["y"] for one in charts]
    assert [one.name for one in charts] == ["wait-by-cpus", "wait-by-run-time"]
    assert axes[0] == axes[1] and axes[0]["scale"]["domain"]


@pytest.mark.parametrize(("vos", "first"), [(2, "metric"), (7, "VO")])
def test_few_vos_have_a_column_each_in_the_table_of_all_metrics(
    tmp_path: Path, vos: int, first: str
) -> None:
    named = [{"name": f"v{n}", "clusters": [{"cpus": 1}],
              "workload": {"jobs": [{"run_s": 10}] * (n + 1)}} for n in range(vos)]  # fmt: skip
    grid.run({"vos": named}, out=tmp_path / "run", set={"protocol.forwarding": "never"})
    (table,) = (one for one in _by_vo(read_run(tmp_path / "run")) if isinstance(one, Table))
    names = [f"v{n}" for n in range(vos)]
    assert table.headers[0] == first
    assert names == (table.headers[1:] if first == "metric" else [row[0] for row in table.rows])
    rows = [table.headers, *table.rows]
    by_metric = {
        row[0]: row[1:] for row in (rows if first == "metric" else zip(*rows, strict=True))
    }
    assert [*by_metric["jobs submitted"]] == [str(n + 1) for n in range(vos)]


def test_the_distribution_of_stretch_is_that_of_the_table(tmp_path: Path) -> None:
    """Of completed jobs: one that is killed at its estimate has a stretch in the table, too."""
    scenario = one_job(tmp_path)
    jobs = "{run_s: 10}, {run_s: 30}, {run_s: 500, estimate_s: 5}, {run_s: 20}"
    scenario.write_text(scenario.read_text().replace("{run_s: 1}", jobs))
    grid.run(scenario, out=tmp_path / "run")
    run = read_run(tmp_path / "run")
    states = run.jobs["state"].to_pylist()
    assert states.count("completed") == 3 and states.count("failed") == 1
    (picture,) = (one for one in distributions(run) if one.name == "cdf-stretch")
    wanted = [
        value
        for value, state in zip(run.jobs["stretch"].to_pylist(), states, strict=True)
        if state == "completed"
    ]
    assert sorted(set(picture.tables["cdf-stretch"]["value"])) == sorted(set(wanted))


def test_no_name_in_a_legend_of_a_file_is_cut() -> None:
    names = ["machines drawn anew, at each mean inter-arrival time", "one farm for all"]
    both = [Series(name, [1, 2], [1.0, 2.0]) for name in names]
    svg = lines(Labels("name", "caption", "x", "y"), both).svg.decode()
    assert [name for name in names if f">{name}<" not in svg] == []


def test_keys_are_broken_between_their_words() -> None:
    page = html_page("a", "b", [Section("c", [Table(["key"], [["plan_seconds.cs2"]], prose=True)])])
    assert "plan_<wbr>seconds.<wbr>cs2" in page


def test_metrics_stand_in_the_order_of_their_definitions(tmp_path: Path) -> None:
    grid.run(one_job(tmp_path), out=tmp_path / "run")
    labels = [one.label for one in METRICS.values()]
    places = [labels.index(row[0]) for row in _results(read_run(tmp_path / "run")).rows]
    assert len(places) > 10 and places == sorted(places)


def test_a_section_without_anything_is_left_out() -> None:
    assert "Nothing" not in html_page("a", "b", [Section("Nothing", [])])


def test_pictures_of_equal_data_are_equal() -> None:
    series = [Series("a", [1, 2], [3.0, 4.0], [2.5, 3.5], [3.5, 4.5]), Series("b", [1], [2.0])]
    labels = Labels("name", "caption", "x", "y")
    assert lines(labels, series).svg == lines(labels, series).svg
    assert bars(labels, series).png == bars(labels, series).png
    ElementTree.fromstring(lines(labels, series).svg)


def test_names_along_an_axis_become_bars_and_numbers_lines() -> None:
    labels = Labels("name", "caption", "x", "y")
    names = [Series("", ["PU", "BU"], [1.0, 2.0])]
    numbers = [Series("", [1, 2], [1.0, 2.0])]
    assert chart(labels, names).svg == bars(labels, names).svg
    assert chart(labels, numbers).svg == lines(labels, numbers).svg


def test_unknown_intervals_are_drawn_without_bars() -> None:
    infinity = float("inf")
    one = Series("a", [1, 2], [3.0, 4.0], [-infinity, 3.5], [infinity, 4.5])
    assert lines(Labels("name", "caption", "x", "y"), [one]).svg


def luminance(colour: str) -> float:
    """Relative luminance (Web Content Accessibility Guidelines 2.1)."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
              for part in parts]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stand_out_from_the_page(colours: dict[str, str]) -> None:
    paper = luminance(colours["paper"])

    def contrast(colour: str) -> float:
        return (max(paper, luminance(colour)) + 0.05) / (min(paper, luminance(colour)) + 0.05)

    assert set(LIGHT) == set(DARK)
    assert contrast(colours["ink"]) > 7 and contrast(colours["soft"]) > 4.5
    for name in (f"c{number}" for number in range(16)):
        assert contrast(colours[name]) > 2.5, name


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (3.0, "3"),
        (12345, "12,345"),
        (0.12345678, "0.1235"),
        (1234.56, "1,234.6"),
        (0.00006419, "0.00006419"),
        (-0.00001, "-0.00001"),
    ],
)
def test_figures_as_people_read_them(value: float | None, text: str) -> None:
    assert shown(value) == text


def test_a_grid_in_which_nothing_ran_has_a_report(tmp_path: Path) -> None:
    scenario = tmp_path / "none.yaml"
    scenario.write_text(
        "vos: [{name: a, clusters: [{machines: [{cpus: 1}]}], workload: {jobs: [{run_s: 1, "
        "requirements: [{kind: cores, options: [{value: 8}]}]}]}}]\n"
    )
    run = grid.run(scenario, out=tmp_path / "run")
    assert run.metrics["grid"]["jobs_completed"] == 0
    page = write_report(tmp_path / "run").read_text()
    assert "1 rejected" in page


def test_what_is_neither_run_nor_sweep_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder of something else"):
        write_report(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        write_report(tmp_path / "none")
    (tmp_path / "log.swf").write_text("")
    with pytest.raises(InputError, match="found a file"):
        write_report(tmp_path / "log.swf")
    grid.run(one_job(tmp_path), out=tmp_path / "run")
    (tmp_path / "run" / "jobs.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="a broken file"):
        write_report(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", "[]"),
        ("manifest.json", "{}"),
        ("manifest.json", '{"seed": 1, "jobs": 3}'),
        ("manifest.json", "[" * 100_000),
        ("manifest.json", '{"a":' * 900 + "1" + "}" * 900),
        ("metrics.json", '{"grid": {}, "vos": []}'),
        ("metrics.json", '{"grid": 1, "vos": {"a": {}}}'),
        ("metrics.json", '{"grid": {"wait_mean": "long"}, "vos": {"a": {"jobs_submitted": {}}}}'),
        ("metrics.json", "NaN"),
        ("series.parquet", "jobs.parquet"),
        ("jobs.parquet", "series.parquet"),
        ("scenario.yaml", "\udcff"),
    ],
)
def test_files_of_another_shape_are_told_in_a_line(name: str, content: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    grid.run(one_job(tmp_path), out=run)
    other = run / content if len(content) < 100 else run / "none"
    data = other.read_bytes() if other.is_file() else content.encode(errors="surrogateescape")
    (run / name).write_bytes(data)
    with pytest.raises(InputError) as caught:
        write_report(run)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["jobs.parquet", "series.parquet"])
def test_a_column_whose_name_is_no_text_is_told_in_a_line(name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    grid.run(one_job(tmp_path), out=run)
    data = (run / name).read_bytes()
    assert b"cluster" in data
    (run / name).write_bytes(data.replace(b"cluster", b"clus\xdfer"))
    with pytest.raises(InputError) as caught:
        write_report(run)
    assert len(str(caught.value).splitlines()) == 1


def test_a_part_of_a_run_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    run = tmp_path / "run"
    grid.run(one_job(tmp_path), out=run)
    for name in ("metrics.json", "scenario.yaml", "jobs.parquet"):
        whole = (run / name).read_bytes()
        (run / name).unlink()
        os.mkfifo(run / name)
        with pytest.raises(InputError, match="found a device or pipe"):
            write_report(run)
        (run / name).unlink()
        (run / name).write_bytes(whole)


def test_a_page_where_none_can_be_is_told(tmp_path: Path) -> None:
    run = tmp_path / "run"
    grid.run(one_job(tmp_path), out=run)
    for page in (tmp_path, tmp_path / "none" / "page", tmp_path / ("x" * 300), Path("/proc/x")):
        with pytest.raises(InputError):
            write_report(run, page)
    with pytest.raises(InputError):
        write_report(Path("x" * 300))


@pytest.mark.parametrize(("interrupted", "why"), [(True, "interrupted"), (False, "out of time")])
def test_a_report_of_a_run_that_did_not_end_says_so(
    interrupted: bool, why: str, tmp_path: Path
) -> None:
    lab = {"name": "lab", "clusters": [{"cpus": 1}], "workload": {"jobs": [{"run_s": 9}]}}
    grid.run({"vos": [lab]}, out=tmp_path)
    assert "had not ended" not in write_report(tmp_path).read_text()
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"live": {"unfinished": 3, "interrupted": interrupted}}))
    page = write_report(tmp_path).read_text()
    assert f"3 jobs had not ended: the run was {why}." in page
