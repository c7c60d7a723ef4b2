"""What many tests share: one small Ray cluster for the whole session.

Where two processes share the tests, all that need Ray go to one of them, and the others of a file
stay together.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("grid", deadline=None)
settings.load_profile("grid")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests on Ray come first: they take longest, and wait a lot."""
    for item in items:
        group = "ray" if item.get_closest_marker("ray") else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.get_closest_marker("ray") is None)


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """A Ray cluster on this machine; runs find it and leave it running."""
    from grid.runtime.cluster import ray_cluster

    with ray_cluster(None, cpus=2):
        yield
