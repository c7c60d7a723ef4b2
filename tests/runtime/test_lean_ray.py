"""Of Ray only what a run needs is started, and Ray itself is as before afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import ray
import ray._private.node
import ray._private.parameter
import ray._private.services

from grid.runtime.lean_ray import lean_ray
from tests.runtime.ray_processes import commands

EXCHANGED: list[tuple[Any, str]] = [
    (ray._private.parameter, "RayParams"),
    (ray._private.services, "get_node"),
    (ray._private.node.Node, "start_api_server"),
]


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_ray_is_its_control_process_the_raylet_and_agents() -> None:
    """Seen in what it needs and does not: a newer Ray may start other things under new names."""
    started = [Path(word).name for line in commands() for word in line.split()[:4]]
    assert {"gcs_server", "raylet"} <= {*started}
    needless = {"monitor.py", "log_monitor.py", "dashboard.py"}
    assert needless & {*started} == set()


def test_what_was_exchanged_is_put_back_whatever_happens() -> None:
    before = [getattr(owner, name) for owner, name in EXCHANGED]
    with pytest.raises(KeyboardInterrupt), lean_ray():
        assert all(
            getattr(owner, name) is not one
            for (owner, name), one in zip(EXCHANGED, before, strict=True)
        )
        raise KeyboardInterrupt
    assert [getattr(owner, name) for owner, name in EXCHANGED] == before
