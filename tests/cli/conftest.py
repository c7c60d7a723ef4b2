"""Commands print no progress in these tests, however slow the machine is."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.runtime.progress.FIRST_SECONDS", 3600.0)
