"""Settings with several values are the axes of an experiment; others are settings of all runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.lab.experiment import expand, experiment_of, has_several

TWO_VOS = Path(__file__).parents[2] / "scenarios" / "two-vos.yaml"


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("ttl=0,1", True), ("ttl=0", False), ("x=[0,1]", False), ("x={a: 1, b: 2}", False),
     ('name="a,b"', False), ("name='a,b'", False), ("ttl", False), ("a.b.0.c=x, y", True)],
)  # fmt: skip
def test_which_settings_have_several_values(setting: str, expected: bool) -> None:
    assert has_several(setting) is expected


def test_all_combinations_and_seeds_are_run() -> None:
    settings = ["protocol.ttl=0,2", "vos.0.selection=binary,partial", "protocol.forwarding=queue"]
    made = experiment_of(TWO_VOS, settings, 3)
    assert made.axes == {"protocol.ttl": (0, 2), "vos.0.selection": ("binary", "partial")}
    assert made.set == {"protocol.forwarding": "queue"}
    cases, wrong = expand(made, None)
    assert (len(cases), wrong) == (12, [])
    assert {case.scenario.protocol.ttl for case in cases} == {0, 2}
    assert {case.seed for case in cases} == {1, 2, 3}


def test_a_setting_is_given_once() -> None:
    with pytest.raises(grid.InputError, match=r"protocol\.ttl: found 0,1, and then 1,2"):
        experiment_of(TWO_VOS, ["protocol.ttl=0,1", "protocol.ttl=1,2"])


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["run", "two-vos", "--in-process", "--quiet"]
    result = CliRunner().invoke(app, [*command, "--set", "protocol.ttl=0,1", "--seeds", "2"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == "report: sweeps/two-vos/report.html"
    table = grid.load_results(Path("sweeps/two-vos"))
    assert table.column_names[:2] == ["protocol.ttl", "seed"]
    assert set(table["protocol.ttl"].to_pylist()) == {0, 1}
    one = CliRunner().invoke(app, [*command, "--set", "protocol.ttl=0,x"])
    assert one.exit_code == 2
    assert one.stderr.startswith("--set protocol.ttl=")
    dry = CliRunner().invoke(app, ["sweep", "snapshot-age", "--quick", "--dry-run"])
    assert dry.stdout.splitlines()[:2] == [
        "snapshot-age: 12 runs (2 ttl x 2 snapshot_period x 1 workload.settings.users x 3 seeds)",
        "0 of them are in sweeps/snapshot-age, 12 are to be run",
    ]
    assert not Path("sweeps/snapshot-age").exists()
