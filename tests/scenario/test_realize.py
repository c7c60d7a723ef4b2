"""Mistakes that show only when jobs are read and generated: a line each, and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.model.errors import InputError
from grid.scenario.load import load_scenario
from grid.scenario.workload import realize

LOG = "".join(
    f"{number} 0 -1 {run} 2 -1 -1 2 100 -1 1 7 1 -1 1 {partition} -1 -1\n"
    for number, run, partition in ((1, 100, 4), (2, 100, 9))
)
SITES = "vos_from_trace: {total_processors: 8}\nworkload: {trace: log.swf, route: partition}\n"
LISTED = (
    "vos: [{name: a, clusters: [{processors: 4}]}, {name: b, clusters: [{processors: 4}]}]\n"
    "workload: {trace: log.swf%s}\n"
)
TWO_SOURCES = (
    "vos: [{name: a, clusters: [{processors: 4}],\n"
    "  workload: {%sjobs: [{number: 3, run_s: 1}]}}]\n"
    "workload: {generator: partial_utility, settings: {users: 2, jobs_per_user: 2}}\n"
)


@pytest.mark.parametrize(
    ("scenario", "log", "says"),
    [
        (
            SITES,
            LOG.replace(" 100 2 ", " 0 2 "),
            "log.swf: found no job that can run, expected at least one",
        ),
        (
            SITES,
            LOG.replace(" 4 -1 -1\n", " -1 -1 -1\n").replace(" 9 -1 -1\n", " -1 -1 -1\n"),
            "workload.route: found 'partition', expected a field that jobs of ",
        ),
        (
            SITES + "network: {links: [{between: [site4, site5], latency_s: 1}]}\n",
            LOG,
            "network.links.0.between.1: found 'site5', expected the name of a VO, such as site",
        ),
        (LISTED % "", LOG, "workload.route: found nothing, expected a field that jobs of "),
        (
            TWO_SOURCES % "",
            LOG,
            "vos.0.workload: found job number 3 again, "
            "expected numbers that the grid's own workload does not use",
        ),
        (TWO_SOURCES % "enters: cluster, ", LOG, "vos.0.workload: found job number 3 again"),
    ],
    ids=["no job", "no value to route by", "link to nowhere", "no route", "number", "fed number"],
)
def test_a_mistake_is_a_line(tmp_path: Path, scenario: str, log: str, says: str) -> None:
    (tmp_path / "log.swf").write_text(log)
    path = tmp_path / "wrong.yaml"
    path.write_text(scenario)
    loaded = load_scenario(path)
    with pytest.raises(InputError) as raised:
        realize(loaded, str(path))
    (line,) = str(raised.value).splitlines()
    assert says in line


def test_jobs_are_shared_out_by_the_field_that_routes_them(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(LOG)
    path = tmp_path / "listed.yaml"
    path.write_text(LISTED % ", route: partition")
    grid, _ = realize(load_scenario(path), str(path))
    assert [table and table.number.tolist() for table in grid.submitted] == [[1], [2]]


def test_a_job_that_no_machine_of_the_grid_can_hold_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(LOG)
    path = tmp_path / "own.yaml"
    path.write_text(
        "vos: [{name: a, clusters: [{processors: 1}], workload: {trace: log.swf}},\n"
        "  {name: b, clusters: [{processors: 1}]}]\n"
    )
    grid, left_out = realize(load_scenario(path), str(path))
    assert (len(grid.submitted[0] or ()), dict(left_out)) == (0, {"too_large": 2})
    path.write_text(
        path.read_text().replace("b, clusters: [{processors: 1}", "b, clusters: [{processors: 2}")
    )
    assert realize(load_scenario(path), str(path))[0].jobs_by_vo() == [2, 0]


def test_a_farm_or_a_workload_with_its_own_seed_is_the_same_under_every_seed() -> None:
    def made(seed: int, *overrides: str) -> tuple[object, list[int]]:
        path = "scenarios/convergent-2.yaml"
        scenario = load_scenario(path, [f"seed={seed}", "jobs=5", "machines=20", *overrides])
        grid, _ = realize(scenario, path)
        (jobs,) = grid.direct
        assert jobs is not None
        return grid.vos[0].clusters[0].machines, jobs.submit_us.tolist()

    (machines, times), (others, later) = made(1), made(2)
    assert machines != others and times != later
    farm = "vos.0.clusters.0.machines.seed=1"
    (machines, times), (others, later) = made(1, farm), made(2, farm)
    assert machines == others and times != later
    workload = "vos.0.workload.seed=1"
    (machines, times), (others, later) = made(1, workload), made(2, workload)
    assert machines != others and times == later
