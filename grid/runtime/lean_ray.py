"""Ray on this machine, started with no more of it than a run needs, and without needless waiting.

`ray.init` starts more: what asks a cloud for machines, what collects the output of all processes,
and a web server. It looks for its own node once a second, and at the end waits a second for the
first of these. It has no options for that, so its parts are exchanged while it starts. What a
newer Ray may not have is then not exchanged, and is only slower.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import ray
import ray._private.node
import ray._private.parameter
import ray._private.services
import ray._private.state

_node: Any = ray._private.node
_parameter: Any = ray._private.parameter
_services: Any = ray._private.services
_state: Any = ray._private.state

LOOK_SECONDS = 0.02
PATIENCE_SECONDS = 5.0
"""After so long Ray looks for its node in its own way, which has a time limit and an error."""


@contextmanager
def lean_ray() -> Iterator[None]:
    """Ray that starts meanwhile consists of the control process, the raylet and its agents."""
    parameters, get_node = _parameter.RayParams, _services.get_node
    start_web_server = _node.Node.start_api_server
    _parameter.RayParams = partial(parameters, no_monitor=True, include_log_monitor=False)
    _services.get_node = partial(_get_node_soon, get_node)
    _node.Node.start_api_server = _start_nothing
    try:
        yield
    finally:
        _parameter.RayParams, _services.get_node = parameters, get_node
        _node.Node.start_api_server = start_web_server


def _start_nothing(*_: Any, **__: Any) -> None:
    pass


def _get_node_soon(get_node: Any, gcs_address: str, node_id: str) -> Any:
    """`get_node`, once the node is there."""
    state = _state.GlobalState()
    state._initialize_global_state(_services._get_gcs_client_options(gcs_address))
    latest = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < latest and all(
        node["NodeID"] != node_id or not node["Alive"] for node in state.node_table()
    ):
        time.sleep(LOOK_SECONDS)
    return get_node(gcs_address, node_id)
