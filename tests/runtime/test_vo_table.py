"""The table of VOs on a terminal; it does not change the results of a run."""

from __future__ import annotations

from pathlib import Path

from grid.config.load import load_scenario
from grid.results.look import NO_OBSERVER, Observers
from grid.runtime.observers import HEADERS, ROWS, VoTable
from grid.runtime.run import execute
from tests.lab.report.small_reports import SCENARIO


class Eager(VoTable):
    def is_due(self) -> bool:
        return True


def run_with(folder: Path, vos: int, *tables: VoTable) -> object:
    file = folder / "scenario.yaml"
    file.write_text(SCENARIO.replace("count: 3\n    selection", f"count: {vos}\n    selection"))
    observer = Observers(tables) if tables else NO_OBSERVER
    return execute(load_scenario(file), str(file), in_process=True, observer=observer)


def test_the_table_has_the_figures_of_the_run(tmp_path: Path) -> None:
    table, seldom = Eager(), VoTable()
    run, alone = run_with(tmp_path, 3, table, seldom), run_with(tmp_path, 3)
    assert run.manifest["digest"] == alone.manifest["digest"]  # type: ignore[attr-defined]
    assert table.rows == seldom.rows
    for row in table.rows:
        figures = run.metrics["vos"][row[0]]  # type: ignore[attr-defined]
        assert row[1] == row[2] == str(figures["jobs_submitted"])
        assert row[3:5] == ("0%", "0") and row[5] == str(figures["jobs_forwarded"])
    assert len(table.rows[0]) == len(HEADERS)


def test_of_many_vos_some_are_shown(tmp_path: Path) -> None:
    table = VoTable()
    run_with(tmp_path, ROWS + 3, table)
    assert len(table.rows) == ROWS + 1 and table.rows[-1][0] == "and 3 more"
