"""The version of the code that a sweep's results are kept by."""

from __future__ import annotations

from pathlib import Path

import grid
from grid.lab.code import MODULES, PACKAGES, code_version


def test_the_modules_that_decide_a_result_exist() -> None:
    root = Path(grid.__file__).parent
    assert all((root / module).is_file() for module in MODULES)
    assert all((root / package / "__init__.py").is_file() for package in PACKAGES)
    assert len(code_version()) == 16
