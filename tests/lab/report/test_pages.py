"""Pages: escaped texts, atomic files, tables, and one-line errors for broken folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid
from grid.lab.report.page import Section, Source, Table, html_page, write_report
from grid.lab.report.run_data import read_run
from grid.lab.report.run_page import _by_vo
from grid.model.errors import InputError
from tests.lab.report.small_reports import one_job

NEVER = {"protocol.forwarding": "never"}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    grid.run(one_job(tmp_path), out=tmp_path / "run")
    return tmp_path / "run"


def test_markup_in_texts_is_escaped() -> None:
    nasty = "<script>alert('&')</script>"
    sections = [Section(nasty, [nasty, Table([nasty], [[nasty]]), Source(nasty, nasty)])]
    page = html_page(nasty, [nasty], sections)
    assert "<script>" not in page
    assert page.count("&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;") == 9


def test_columns_of_words_are_aligned_left_and_keys_may_break() -> None:
    rows = [["1", "two 2", "-3,000.5 ± 0.25"], ["4", "5", "–"], ["4", "5", "6.5 (undecided)"]]
    page = html_page("a", [], [Section("c", [Table(["x", "words", "figures"], rows)])])
    assert page.count('<th scope="col" class="words">') == 1
    assert page.count('<td class="words">') == 3
    page = html_page("a", [], [Section("c", [Table(["key"], [["plan_seconds.cs2"]], prose=True)])])
    assert "plan_<wbr>seconds.<wbr>cs2" in page
    assert "Nothing" not in html_page("a", [], [Section("Nothing")])


def vo(name: str, jobs: list[dict[str, Any]], **cluster: Any) -> dict[str, Any]:
    return {"name": name, "clusters": [{"cpus": 1} | cluster], "workload": {"jobs": jobs}}


@pytest.mark.parametrize(("vos", "first"), [(2, "metric"), (7, "VO")])
def test_few_vos_have_a_column_each_in_the_table_of_all_metrics(
    tmp_path: Path, vos: int, first: str
) -> None:
    named = [vo(f"v{n}", [{"run_s": 10}] * (n + 1)) for n in range(vos)]
    grid.run({"vos": named}, out=tmp_path / "run", set=NEVER)
    (table,) = (one for one in _by_vo(read_run(tmp_path / "run")) if isinstance(one, Table))
    rows = [table.headers, *table.rows]
    by_metric = {
        row[0]: [*row[1:]] for row in (rows if first == "metric" else zip(*rows, strict=True))
    }
    assert table.headers[0] == first
    assert by_metric[first] == [f"v{n}" for n in range(vos)]
    assert by_metric["jobs submitted"] == [str(n + 1) for n in range(vos)]


def test_a_run_without_started_jobs_has_a_report(tmp_path: Path) -> None:
    wide = {"run_s": 1, "requirements": [{"kind": "cores", "options": [{"value": 8}]}]}
    given = {"vos": [{"name": "a", "clusters": [{"machines": [{"cpus": 1}]}],
                      "workload": {"jobs": [wide]}}]}  # fmt: skip
    run = grid.run(given, out=tmp_path / "run")
    assert run.metrics["grid"]["jobs_completed"] == 0
    assert "1 rejected" in write_report(tmp_path / "run").read_text()


# Errors


def error_of(folder: Path, page: Path | None = None) -> str:
    with pytest.raises(InputError) as caught:
        write_report(folder, page)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_folder_of_something_else_has_no_report(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text("")
    for folder in (tmp_path, tmp_path / "none", tmp_path / "log.swf", Path("x" * 300)):
        assert "expected" in error_of(folder)
