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


class OtherParams:
    """Those of a Ray that has another name for what is not started."""

    def __init__(self, monitor: bool = True) -> None:
        self.monitor = monitor


def test_what_a_newer_ray_does_not_have_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    parameter, services = ray._private.parameter, ray._private.services
    monkeypatch.setattr(parameter, "RayParams", OtherParams)
    monkeypatch.delattr(ray._private.node.Node, "start_api_server")
    monkeypatch.setattr(services, "get_node", lambda *where: where)
    monkeypatch.delattr(services, "_get_gcs_client_options")
    with lean_ray():
        assert parameter.RayParams().monitor
        assert services.get_node("here", "me") == ("here", "me")
        assert not hasattr(ray._private.node.Node, "start_api_server")
    monkeypatch.delattr(parameter, "RayParams")
    monkeypatch.delattr(services, "get_node")
    with lean_ray():
        assert not hasattr(parameter, "RayParams") and not hasattr(services, "get_node")
