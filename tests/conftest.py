"""What many tests share for the whole session: one small Ray cluster, one browser, some reports."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.lab.report import chromium, small_reports

# How long an example takes says more about the machine than about the code.
settings.register_profile("grid", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("grid")

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would the commands
# that they interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """A Ray cluster on this machine; runs find it and leave it running."""
    from grid.runtime.cluster import ray_cluster

    with ray_cluster(None, cpus=2):
        yield


@pytest.fixture(scope="session")
def open_browser() -> Iterator[chromium.Browser]:
    """A browser, which takes seconds to start."""
    if chromium.PROGRAM is None:
        pytest.skip("no Chromium on this machine")
    with chromium.browser() as page:
        yield page


@pytest.fixture
def browser(open_browser: chromium.Browser) -> Iterator[chromium.Browser]:
    """The same browser, which goes on with nothing after the test."""
    yield open_browser
    open_browser.show("about:blank", 800)


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The reports of small runs and sweeps, by name.

    Their charts take seconds to draw: processes that share the tests share them, too.
    """
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "reports"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "written").exists():
            small_reports.write(folder)
            (folder / "written").touch()
    return {name: folder / name / "report.html" for name in small_reports.NAMES}
