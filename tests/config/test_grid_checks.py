"""Validation of grids that are made in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.config.faults import FaultsSection
from grid.config.schema import GridSettings
from grid.model.errors import InputError
from grid.model.fields import PluginRef
from grid.model.job import Option, Requirement, RequirementKind
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, License, Machine, VirtualOrganization
from grid.model.time import SECOND_US

S = SECOND_US
JOBS: dict[str, Any] = {
    "number": [1, 2, 3],
    "submit_us": [0, S, S],
    "processors": [1, 2, 1],
    "estimate_us": [5 * S] * 3,
    "run_us": [4 * S] * 3,
}
SPEED = Requirement(RequirementKind.SPEED, (Option(500.0, 1.0),))


def table(**columns: Any) -> JobTable:
    return JobTable.of(**{**JOBS, **columns})


def cluster(**changes: Any) -> Cluster:
    farm = (Machine("m0", 2), Machine("m1", 2, licenses=("solver",)))
    licensed = (License("solver", 1),)
    return replace(Cluster("farm", farm, licenses=licensed), **changes)


def made(**changes: Any) -> grid.Grid:
    """A valid grid of two VOs, with changes."""
    vos = (VirtualOrganization("a", (cluster(),)), VirtualOrganization("b", (cluster(),)))
    parts: dict[str, Any] = {
        "settings": GridSettings(),
        "vos": vos,
        "submitted": (table(), None),
        "direct": (None, table(number=[4, 5, 6])),
    }
    return grid.Grid(**(parts | changes))


def of_vo(**changes: Any) -> Callable[[], grid.Grid]:
    return lambda: made(vos=(replace(made().vos[0], **changes), made().vos[1]))


def of_cluster(**changes: Any) -> Callable[[], grid.Grid]:
    return of_vo(clusters=(cluster(**changes),))


def of_settings(**given: Any) -> Callable[[], grid.Grid]:
    return lambda: made(settings=GridSettings.model_validate(given))


def of_jobs(**columns: Any) -> Callable[[], grid.Grid]:
    return lambda: made(submitted=(table(**columns), None))


def of_raw(**columns: Any) -> Callable[[], grid.Grid]:
    """Columns that `JobTable.of` would convert."""
    return lambda: made(submitted=(replace(table(), **columns), None))


FARM = "vos.0.clusters.0"
WRONG: list[tuple[Callable[[], grid.Grid], str, str]] = [
    (lambda: made(vos=(made().vos[0],) * 2), "vos.1.name"),
    (of_vo(selection=PluginRef("best")), "vos.0.selection.name"),
    (
        of_vo(admission=PluginRef("limited", {"from_vos": ("a", "d")})),
        "vos.0.admission.settings.from_vos",
    ),
    (
        of_settings(network={"links": [{"between": ["a", "c"], "latency_s": 5}]}),
        "network.links.0.between.1",
    ),
    (
        of_settings(
            protocol={"information": {"name": "edges", "settings": {"edges": ((0, 1), (1, 2))}}}
        ),
        "protocol.information.settings.edges.1",
    ),
    (of_cluster(policy="nosuch"), f"{FARM}.policy.name"),
    (of_cluster(policy=PluginRef("fcfs", {"deep": 4})), f"{FARM}.policy.settings.deep"),
    (of_cluster(licenses=()), f"{FARM}.machines.1.licenses.0"),
    (lambda: made(submitted=(None,)), "submitted"),
    (lambda: made(submitted=([], None)), "submitted.0"),
    (of_jobs(processors=[1, 2, 3]), "submitted.0.processors.2"),
    (of_jobs(run_us=[4, -4, 4]), "submitted.0.run_us.1"),
    (of_jobs(submit_us=[0, 2, 1]), "submitted.0.submit_us.2"),
    (of_jobs(reference_mips=[float("nan")] * 3), "submitted.0.reference_mips.0"),
    (of_jobs(resources={"ram_mb": [0.0, 5.0, 0.0]}), "submitted.0.resources.ram_mb.1"),
    (
        lambda: made(direct=(None, table(number=[4, 5, 6], resources={"ram_mb": [7.5, 0.0, 0.0]}))),
        "direct.1.resources.ram_mb.0",
    ),
    (of_jobs(number=[1, 2, 1]), "vos.0"),
    (lambda: made(direct=(table(number=[7, 3, 8]), None)), "vos.0"),
    (of_raw(processors=np.ones(3)), "submitted.0.processors"),
    (of_jobs(requirements=[(SPEED,)]), "submitted.0.requirements"),
    (of_jobs(requirements=[(), (SPEED._replace(weight=2.0),), ()]), "submitted.0.requirements.1"),
    (
        lambda: made(
            vos=of_vo(clusters=(cluster(), cluster(name="c")))().vos,
            direct=(table(number=[7, 8, 9]), None),
        ),
        "direct.0",
    ),
]


@pytest.mark.parametrize(("make", "field"), WRONG, ids=[field for _, field in WRONG])
def test_an_invalid_grid_is_one_error(make: Callable[[], grid.Grid], field: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    (error,) = caught.value.errors
    assert (error.file, error.field) == ("grid", field)
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: Machine(cpus=-4), ("cpus",)),
        (lambda: Cluster(machines=(Machine("m"), 5)), ("machines", "tuple[Machine, ...]", 1)),
        (lambda: Cluster("c"), ()),
        (lambda: VirtualOrganization(name="a b", clusters=(cluster(),)), ("name",)),
    ],
)
def test_values_are_validated_where_they_are_given(
    make: Callable[[], object], place: tuple[object, ...]
) -> None:
    with pytest.raises(ValidationError) as caught:
        make()
    assert [error["loc"] for error in caught.value.errors()][:1] == [place]


def test_a_valid_grid_runs() -> None:
    run = grid.run(made(settings=GridSettings(faults=FaultsSection(heal_s=100))))
    assert run.metrics["grid"]["jobs_completed"] == 6


def test_a_run_beyond_the_end_of_virtual_time_is_an_error(tmp_path: Path) -> None:
    """Both machines together have enough time, but not for nine jobs in sequence."""
    file = tmp_path / "endless.yaml"
    jobs = ", ".join(["{run_s: 1.0e+9}"] * 9)
    file.write_text(
        "vos: [{name: a, clusters: [{machines: [{count: 2, mips: 1}]}], "
        f"workload: {{jobs: [{jobs}]}}}}]\n"
    )
    command = ["run", str(file), "--in-process", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 2, done.output
    assert done.stderr.splitlines()[-1].startswith(f"{file}: workload: found jobs")


def test_a_generator_that_does_not_fit_the_machines_is_an_error() -> None:
    gangs = {"jobs": 4, "tasks": 20, "load": 0.5, "mean_run_s": 60}
    vo = {
        "name": "a",
        "clusters": [{"machines": [{"cpus": 1}], "resource": "cluster", "policy": "fcfs"}],
        "workload": {"generator": "gang", "settings": gangs, "entry_point": "cluster"},
    }
    with pytest.raises(InputError) as caught:
        grid.run({"name": "s", "vos": [vo]})
    (error,) = caught.value.errors
    assert error.field == "vos.0.workload.settings"
    assert "1 processors" in error.found
