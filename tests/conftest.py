"""What many tests share: one small Ray cluster for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("grid", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("grid")


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """A Ray cluster on this machine; runs find it and leave it running."""
    from grid.runtime.cluster import ray_cluster

    with ray_cluster(None, cpus=2):
        yield
