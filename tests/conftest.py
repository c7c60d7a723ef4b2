"""What many tests share: one small Ray cluster, and one browser, for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.report import chromium

# How long an example takes says more about the machine than about the code.
settings.register_profile("grid", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("grid")


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
