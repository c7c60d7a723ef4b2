"""From the wheel alone, in an empty folder: all that a new user does first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("grid", "scenarios", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md")
PIP = (sys.executable, "-m", "pip", "-qq", "--disable-pip-version-check", "--no-input")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `grid` of a fresh environment that has the wheel and, of this one, what it depends on."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "sources"
    copy.mkdir()
    for name in SOURCES:
        path, target = ROOT / name, copy / name
        ignored = shutil.ignore_patterns("__pycache__")
        _ = (
            shutil.copytree(path, target, ignore=ignored)
            if path.is_dir()
            else shutil.copy(path, target)
        )
    offline = ("--no-index", "--no-deps")
    wheel = (*PIP, "wheel", *offline, "--no-build-isolation", "--wheel-dir", str(folder), str(copy))
    subprocess.run(wheel, check=True, cwd=folder)
    (made,) = folder.glob("grid_emulator-*.whl")
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    # A path in a .pth file is searched, but the .pth files in it, such as ours, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = str(environment / "bin" / "python")
    subprocess.run((*PIP, "--python", python, "install", *offline, str(made)), check=True)
    shutil.rmtree(copy)
    return environment / "bin" / "grid"


@pytest.fixture
def grid(installed: Path, tmp_path: Path) -> object:
    """Runs `grid` in an empty folder; gives its exit code and what it printed."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}

    def call(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [installed, *arguments],
            cwd=tmp_path,
            env=kept | {"NUMBA_DISABLE_JIT": "1", "COLUMNS": "120"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    return call


@pytest.mark.thorough
def test_a_new_user_gets_far(grid: object, tmp_path: Path) -> None:
    assert callable(grid)
    code, printed = grid("--version")
    assert (code, printed[:29]) == (0, "grid-emulator 0.1.0, sources "), printed
    code, listed = grid("scenarios")
    assert code == 0 and " partial-utility " in listed and " snapshot-age " in listed
    code, said = grid("check", "partial-utility")
    assert code == 0 and "shipped/partial-utility.yaml: " in said
    assert "is a valid experiment of 90 runs" in said
    settings = ("--set", "workload.settings.jobs_per_user=2", "--quiet", "--in-process")
    code, said = grid("run", "partial-utility", *settings)
    assert code == 0 and "results in runs/partial-utility" in said, said
    code, said = grid("init", "snapshot-age", "study")
    assert code == 0 and "next: grid sweep study/snapshot-age.yaml" in said
    code, said = grid("sweep", "snapshot-age", "--quick", *settings)
    assert code == 0 and "12 of 12 runs are in sweeps/snapshot-age" in said, said
    assert (tmp_path / "sweeps" / "snapshot-age" / "report.html").is_file()
    code, said = grid("reproduce", "PU-2", "--quick", "--as-is")
    assert code == 1 and "PU-2: not run" in said, said
