"""Every figure and column that is written is defined, once, and shown under its own title."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import grid
from grid.lab.record import clock_of, record_of
from grid.results.definitions import FILES, GROUPS, METRICS, label_of, row_texts
from grid.runtime.clock import Pace
from grid.runtime.live import LiveOutcome
from grid.runtime.outcome import RunOutcome
from grid.runtime.run import save

SCENARIOS = Path(__file__).parents[2] / "scenarios"


def names_of(*groups: str) -> set[str]:
    return {one.name for group in groups for one in GROUPS[group].metrics}


GANGS = {
    "vos": [
        {
            "name": "a",
            "clusters": [{"machines": [{"count": 2, "cpus": 1}], "policy": "afcfs"}],
            "workload": {"jobs": [{"run_s": 5, "cpus": 2}, {"run_s": 5}]},
        }
    ]
}


@pytest.mark.parametrize("scenario", [SCENARIOS / "two-vos.yaml", GANGS])
def test_every_metric_of_a_run_and_of_a_sweep_is_defined(scenario: Any) -> None:
    run = grid.run(scenario)
    assert run.scenario is not None
    of_runs = names_of("jobs", "machines", "decisions")
    for figures in (run.metrics["grid"], *run.metrics["vos"].values()):
        assert not figures.keys() - of_runs
    assert not record_of(run, run.scenario)["more"].keys() - names_of("sweeps")
    clock = clock_of(run)
    kept = {f"cpu_seconds_{part}" for part in clock["cpu_seconds"]} | {"wall_seconds"}
    for plans in clock["plan_seconds"].values():
        kept |= {f"plan_seconds_{figure}" for figure in plans if "below" not in figure}
    assert not kept - names_of("clock")


def test_the_columns_of_the_files_are_those_defined_in_their_order(tmp_path: Path) -> None:
    save(grid.run(SCENARIOS / "two-vos.yaml"), tmp_path / "run")
    header = (tmp_path / "run" / "jobs.csv").read_text().splitlines()[0].split(",")
    assert header == list(FILES["jobs"].columns)
    series = pyarrow.parquet.read_table(tmp_path / "run" / "series.parquet")
    assert series.column_names == list(FILES["series"].columns)


def keys(content: dict[str, Any], before: str = "") -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, dict):
            yield from keys(value, f"{before}{key}.")
        else:
            yield before + key


def is_defined(key: str) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in FILES["manifest"].columns)


def test_every_key_of_a_manifest_is_defined() -> None:
    run = grid.run(SCENARIOS / "two-vos.yaml")
    live = LiveOutcome(RunOutcome()).report(Pace(), run.results)
    manifest = run.manifest | {"live": live}
    assert not [key for key in keys(manifest) if not is_defined(key)]
    assert not is_defined("some_new_key")


def test_no_two_metrics_share_a_name_or_a_label() -> None:
    every = [one for group in GROUPS.values() for one in group.metrics]
    assert len(METRICS) == len(every)
    assert max(Counter(one.label for one in every).values()) == 1
    assert (label_of("some_figure"), label_of("work_kwh")) == ("some figure", "work (kWh)")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([1, 2000, None], ["1", "2,000", "-"]),
        ([100.0, 39.8], ["100.0", "39.8"]),
        ([60.943, 53.094, 1], ["60.943", "53.094", "1.000"]),
        ([0.00012, 0.0], ["0.000120", "0.000000"]),
        ([-3776.5, -0.03, 0.04], ["-3,776.5", "0.0", "0.0"]),
        ([None], ["-"]),
    ],
)
def test_values_of_a_row_have_the_same_decimals(
    values: list[float | None], texts: list[str]
) -> None:
    assert row_texts(values) == texts


def test_every_key_of_what_a_sweep_keeps_is_defined(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    experiment = {
        "name": "two",
        "scenario": "two-vos",
        "axes": {"protocol.ttl": [0, 1]},
        "seeds": 1,
    }
    grid.sweep(experiment, folder, in_process=True)
    (run, *_) = sorted((folder / "runs").iterdir())
    for path, file in ((folder / "sweep.json", "sweep"), (run, "sweep_run")):
        found = list(keys(json.loads(path.read_text())))
        unknown = [
            k for k in found if not any(fnmatchcase(k, pattern) for pattern in FILES[file].columns)
        ]
        assert len(found) > 10 and not unknown
