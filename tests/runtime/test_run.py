"""One run, asked for by a command, in Python, by a mapping, or by a grid that was made by hand."""

from __future__ import annotations

import platform
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.config.schema import GridSettings
from grid.model.errors import InputError
from grid.model.fields import PluginRef
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine, VirtualOrganization
from grid.model.time import SECOND_US

S = SECOND_US
DESCRIBED: dict[str, Any] = {
    "name": "by-hand",
    "seed": 11,
    "network": {"latency_s": 0.2, "links": [{"between": ["a", "b"], "latency_s": 0.5}]},
    "protocol": {"ttl": 1, "snapshots": {"period_s": 5, "load_above": 0.9, "jobs_above": 10}},
    "vos": [
        {
            "name": "a",
            "clusters": [{"name": "c", "policy": "easy", "cpus": 4, "mips": 2000}],
            "workload": {
                "jobs": [
                    {"submit_s": n, "run_s": 7 + n, "estimate_s": 20, "cpus": 1 + n % 4}
                    for n in range(9)
                ]
            },
        },
        {"name": "b", "clusters": [{"name": "c", "machines": [{"count": 2, "cpus": 3}]}]},
    ],
}


def by_hand() -> grid.Grid:
    """What `DESCRIBED` describes."""
    number = list(range(9))
    jobs = JobTable.of(
        number=[n + 1 for n in number],
        user=[0] * 9,
        submit_us=[n * S for n in number],
        processors=[1 + n % 4 for n in number],
        estimate_us=[20 * S] * 9,
        run_us=[(7 + n) * S for n in number],
    )
    settings = {
        "name": "by-hand",
        "seed": 11,
        "network": {"latency_s": 0.2, "links": [{"between": ["a", "b"], "latency_s": 0.5}]},
        "protocol": {"ttl": 1, "snapshots": {"period_s": 5, "load_above": 0.9, "jobs_above": 10}},
    }
    pool = Cluster("c", (Machine("pool", 4, 2000.0),), PluginRef("easy"))
    pair = Cluster("c", (Machine("m0", 3), Machine("m1", 3)))
    return grid.Grid(
        GridSettings.model_validate(settings),
        (VirtualOrganization("a", (pool,)), VirtualOrganization("b", (pair,))),
        (jobs, None),
        (None, None),
    )


def test_a_grid_made_by_hand_runs_as_the_scenario_that_describes_it(tmp_path: Path) -> None:
    described = grid.run(DESCRIBED, out=tmp_path / "described")
    made = grid.run(by_hand(), out=tmp_path / "made")
    assert made.manifest["digest"] == described.manifest["digest"]
    assert made.metrics == described.metrics
    assert made.metrics["grid"]["jobs_forwarded"]
    assert (described.name, made.name, made.scenario) == ("by-hand", "by-hand", None)
    for name in ("jobs.csv", "metrics.json"):
        assert (tmp_path / "made" / name).read_bytes() == (
            tmp_path / "described" / name
        ).read_bytes()


def test_the_command_and_python_write_the_same_files(tmp_path: Path) -> None:
    """Also where the scenario has another name than its file."""
    file = tmp_path / "another-name.yaml"
    file.write_text(Path("scenarios/two-vos.yaml").read_text().replace("two-vos", "some-name", 1))
    command = ["run", str(file), "--in-process", "--seed", "5", "--out", str(tmp_path / "command")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    scenario = grid.load_scenario(file, ["seed=5"])
    assert scenario.name == "some-name"
    grid.run(scenario, out=tmp_path / "python")
    grid.run(str(file), set={"seed": 5}, out=str(tmp_path / "file"))
    for name in ("jobs.csv", "metrics.json", "scenario.yaml"):
        written = (tmp_path / "command" / name).read_bytes()
        assert (tmp_path / "python" / name).read_bytes() == written, name
        assert (tmp_path / "file" / name).read_bytes() == written, name
    rows = (tmp_path / "command" / "jobs.csv").read_text().splitlines()
    tables = [
        pyarrow.parquet.read_table(tmp_path / way / "jobs.parquet")
        for way in ("command", "python", "file")
    ]
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])
    assert tables[0].to_pylist() == grid.run(scenario).jobs_table().to_pylist()
    assert all("some-name" in row for row in rows[1:])


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"placement": "nodes", "ray": True}, "placement: found 'nodes', expected vo, cluster"),
        ({"placement": 0, "ray": True}, "placement: found '0', expected vo, cluster"),
        ({"placement": "9" * 5000, "ray": True}, "placement: found '99999"),
        ({"placement": "vo"}, "placement: found 'vo', expected no value in a single-process run"),
        ({"address": "auto"}, "address: found 'auto', expected no value in a single-process run"),
        ({"set": {"sed": 4}}, "--set sed=4: sed: found an unknown parameter or key, expected seed"),
    ],
)
def test_settings_without_effect_are_errors(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        grid.run(DESCRIBED, **settings)
    assert str(caught.value).startswith(says)


def test_the_manifest_has_the_logs_and_versions_of_a_run(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    digests = []
    for more in ("", "; a comment\n"):
        log.write_text("1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n" + more)
        run = grid.run("trace-replay", set={"trace": str(log), "cpus": 2})
        assert run.manifest["logs"] == {str(log): sha256(log.read_bytes()).hexdigest()}
        assert run.manifest["cpus"] == 2
        digests.append(run.manifest["digest"])
    assert digests[0] == digests[1]
    versions = run.manifest["versions"]
    assert versions["numpy"] == np.__version__
    assert versions["python"] == platform.python_version()
    assert "numba" in versions
