"""Where what an extra brings is not installed, a line says which one, in a Python without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

HIDING = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""
INSTALL = f"{sys.executable} -m pip install "
OF_BATSIM, OF_LEARNING = ["zmq"], ["gymnasium", "pettingzoo", "greenlet"]


def python(code: str, hidden: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """`code` in a process of its own, in which the `hidden` packages cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", HIDING.format(hidden=hidden) + code],
        cwd=folder, text=True, capture_output=True, timeout=300, check=False,
    )  # fmt: skip


def command(words: list[str], hidden: list[str], folder: Path) -> tuple[int, list[str]]:
    """The exit code of `grid` with these words, and the lines that it says of errors."""
    done = python(
        f"from grid.cli.app import main\nsys.argv[1:] = {words!r}\nmain()", hidden, folder
    )
    return done.returncode, done.stderr.splitlines()


def scenario(policy: object) -> str:
    pool = {"name": "pool", "cpus": 4, "policy": policy}
    listed = {"jobs": [{"submit_s": 0, "run_s": 5}]}
    lab = {"name": "lab", "clusters": [pool], "workload": listed}
    return yaml.safe_dump({"name": "small", "vos": [lab]})


def test_a_run_says_that_policy_batsim_needs_its_extra(tmp_path: Path) -> None:
    asked = {"name": "batsim", "settings": {"command": "pybatsim fcfs -s {endpoint}"}}
    (tmp_path / "asked.yaml").write_text(scenario(asked))
    assert command(["check", "asked.yaml"], OF_BATSIM, tmp_path) == (0, [])
    words = ["run", "asked.yaml", "--in-process", "--quiet", "--out", "out"]
    line = "policy batsim of cluster lab/pool requires zmq, from the extra `batsim`: "
    line += INSTALL + '"pyzmq>=25"'
    assert command(words, OF_BATSIM, tmp_path) == (1, [line])
    assert not (tmp_path / "out").exists()


def test_an_export_says_that_it_needs_its_extra(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(scenario("easy"))
    words = ["run", "own.yaml", "--in-process", "--quiet", "--out", "run"]
    assert command(words, OF_BATSIM + OF_LEARNING, tmp_path) == (0, [])
    words = ["export", "run", "--to", "perfetto", "--quiet"]
    line = "--to perfetto requires perfetto, from the extra `perfetto`: "
    line += INSTALL + '"perfetto>=0.59"'
    assert command(words, ["perfetto"], tmp_path) == (1, [line])
    assert not [one.name for one in (tmp_path / "run").iterdir() if "pftrace" in one.name]


@pytest.mark.parametrize("hidden", OF_LEARNING)
@pytest.mark.parametrize("module", ["learning", "learning.environments"])
def test_an_environment_names_its_extra(hidden: str, module: str, tmp_path: Path) -> None:
    """Trained agents decide without it."""
    done = python(
        "from grid.integrations.learning import AgentForwarding, AgentPolicy, AgentSelection\n"
        f"try:\n    from grid.integrations.{module} import ClusterEnv\n"
        "except ImportError as error:\n    print(error)\n",
        [hidden],
        tmp_path,
    )
    needs = "an environment of grid.integrations.learning requires"
    line = f"{needs} {hidden}, from the extra `learning`: {INSTALL}"
    packages = '"gymnasium>=1.1" "pettingzoo>=1.25" "greenlet>=3.1"'
    assert done.stdout == f"{line}{packages}\n", done.stderr
