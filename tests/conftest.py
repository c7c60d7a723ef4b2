"""Fixtures of the session: a small Ray cluster, a browser, some reports."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from grid.model import compiled
from tests.examples import examples
from tests.lab.report import chromium, small_reports

# The time of an example depends on the machine.
settings.register_profile(
    "grid", deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("grid")

# Processes that a shell starts in the background ignore SIGINT, and so would commands under test.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


INTERPRETED_SECONDS = 5.0


@pytest.fixture(autouse=True)
def interpreted_kernels() -> None:
    """Let each test interpret kernels that are not cached: most end before one is compiled."""
    compiled._Interpreted.limit_s = compiled._Interpreted.spent_s + INTERPRETED_SECONDS


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """A Ray cluster on this machine; runs find it and leave it running."""
    from grid.runtime.cluster import ray_cluster

    with ray_cluster(None, cpus=2):
        yield


@pytest.fixture(scope="session")
def open_browser() -> Iterator[chromium.Browser]:
    """A browser."""
    if chromium.PROGRAM is None:
        pytest.skip("no Chromium on this machine")
    with chromium.browser() as page:
        yield page


@pytest.fixture
def browser(open_browser: chromium.Browser) -> Iterator[chromium.Browser]:
    """The same browser, which shows nothing after the test."""
    yield open_browser
    open_browser.show("about:blank", 800)


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of small runs and sweeps, by name; the processes of a session share them."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "reports"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "written").exists():
            small_reports.write(folder)
            (folder / "written").touch()
    return {name: folder / name / "report.html" for name in small_reports.NAMES}
