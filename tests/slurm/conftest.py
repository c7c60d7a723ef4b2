"""Folders for real Slurm clusters, which are stopped after the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.slurm.real_slurm import SLURM


@pytest.fixture
def folder() -> Iterator[Path]:
    """A path that does not exist, short enough for Unix sockets."""
    with TemporaryDirectory(prefix="slurm-") as parent:
        path = Path(parent).resolve() / "f"
        yield path
        if path.exists():
            SLURM["stop"](path)
