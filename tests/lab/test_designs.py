"""Designs of experiments: axes that vary together, excluded and conditional cells, samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.lab.experiment import PlannedRun, expand, key_of, load_experiment
from grid.lab.sweep import Workers, run_sweep
from grid.model.errors import InputError
from tests.lab.small_experiments import write

DESIGN = """\
name: design
scenario: scenario.yaml
axes:
  protocol.ttl: [0, 2]
  protocol.snapshots.period_s: [1, 5, 20]
  selection: [partial, binary]
seeds: 1
"""


def cases_of(folder: Path, more: str, text: str = DESIGN) -> list[PlannedRun]:
    path = write(folder, text + more)
    cases, refused = expand(load_experiment(path), path)
    assert not refused
    return cases


def points_of(cases: list[PlannedRun]) -> list[tuple[object, ...]]:
    return [tuple(case.point.values()) for case in cases]


def test_zipped_axes_vary_together(tmp_path: Path) -> None:
    cases = cases_of(tmp_path, "zip: [[protocol.ttl, selection]]\n")
    assert points_of(cases) == [
        (ttl, period, selection)
        for ttl, selection in ((0, "partial"), (2, "binary"))
        for period in (1, 5, 20)
    ]
    assert cases[-1].scenario.protocol.ttl == 2


def test_excluded_cells_are_left_out(tmp_path: Path) -> None:
    more = "exclude: [{protocol.ttl: 0, protocol.snapshots.period_s: [5, 20]}]\n"
    points = points_of(cases_of(tmp_path, more))
    assert len(points) == 12 - 4
    assert [point[1] for point in points if point[0] == 0] == [1, 1]


def test_an_axis_without_effect_is_run_once(tmp_path: Path) -> None:
    more = "conditions: {protocol.snapshots.period_s: {protocol.ttl: 2}}\n"
    cases = cases_of(tmp_path, more)
    keys = {str(case.point): key_of(case, "") for case in cases}
    assert len(keys) == 12 and len(set(keys.values())) == 2 + 6
    path = tmp_path / "experiment.yaml"
    workers = Workers(in_process=True)
    sweep = run_sweep(load_experiment(path), path, tmp_path / "out", workers)
    assert sweep.runs == 8 and not sweep.failures


@pytest.mark.parametrize("method", ["latin_hypercube", "random"])
def test_samples_are_in_their_ranges(tmp_path: Path, method: str) -> None:
    ranges = """\
  protocol.snapshots.period_s: {low: 1, high: 100, scale: log}
  network.latency_s: {low: 0.1, high: 0.5}
  protocol.ttl: {low: 1, high: 8, integer: true}
"""
    text = "name: samples\nscenario: scenario.yaml\nseeds: 1\naxes:\n"
    text += f"  selection: [partial, binary]\n{ranges}"
    more = f"sampling: {{samples: 8, method: {method}, seed: 3}}\n"
    cases = cases_of(tmp_path, more, text)
    points = points_of(cases)
    assert points == points_of(cases_of(tmp_path, more, text))
    assert len(points) == 16 and points[0][1:] == points[8][1:]
    periods, latencies, ttls = zip(*(point[1:] for point in points[:8]), strict=True)
    assert all(1 <= one <= 100 for one in periods)
    assert all(isinstance(one, int) and 1 <= one <= 8 for one in ttls)
    eighths = sorted(int((one - 0.1) / 0.05) for one in latencies)
    assert (eighths == list(range(8))) == (method == "latin_hypercube")


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ("zip: [[protocol.ttl, nothing]]", "zip"),
        ("zip: [[protocol.ttl, protocol.snapshots.period_s]]", "zip"),
        ("zip: [[protocol.ttl, selection], [selection, protocol.ttl]]", "zip"),
        ("exclude: [{protocol.ttl: 7}]", "exclude"),
        ("exclude: [{protocol.ttl: [0, 2]}]", "exclude"),
        ("conditions: {protocol.ttl: {nothing: 1}}", "conditions.protocol.ttl"),
        ("sampling: {samples: 3}", "sampling"),
        ("sampling: {samples: 0}", "sampling.samples"),
    ],
)
def test_errors_of_designs_have_line_and_field(tmp_path: Path, more: str, field: str) -> None:
    path = write(tmp_path, f"{DESIGN}{more}\n")
    with pytest.raises(InputError) as wrong:
        load_experiment(path)
    first = wrong.value.errors[0]
    assert (first.file, first.field) == (str(path), field)
    assert first.line == len(DESIGN.splitlines()) + 1
