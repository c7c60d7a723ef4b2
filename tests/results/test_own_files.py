"""A run is not written over files of somebody's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.model.errors import InputError
from grid.results.run_folder import check_folder


@pytest.mark.parametrize("name", ["scenario.yaml", "metrics.json", "jobs.csv", "events.parquet"])
def test_a_file_of_one_s_own_is_not_replaced_because_of_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("# mine")
    with pytest.raises(InputError, match="found a folder that is no run"):
        check_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "# mine"


def test_a_path_through_a_folder_that_is_not_there_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match="found a path through a folder that does not exist"):
        check_folder(tmp_path / "none" / "..")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
