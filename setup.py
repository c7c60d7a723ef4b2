"""Puts the scenarios into the package that is installed; all else stands in pyproject.toml."""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SCENARIOS = Path(__file__).parent / "scenarios"


class BuildWithScenarios(build_py):
    """Copies scenarios/ to grid/shipped, where `grid.config.shipped` looks first.

    An editable install finds them where they are.
    """

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            shipped = Path(self.build_lib) / "grid" / "shipped"
            shutil.rmtree(shipped, ignore_errors=True)
            shutil.copytree(SCENARIOS, shipped)


setup(cmdclass={"build_py": BuildWithScenarios})
