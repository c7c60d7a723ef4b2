"""Ray on this machine, started with no more of it than a run needs, and without needless waiting.

`ray.init` starts more: what asks a cloud for machines, what collects the output of all processes,
and a web server. It looks for its own node once a second, and at the end waits a second for the
first of these. It has no options for that, so its parts are exchanged while it starts. What a
newer Ray does not have, or has in another way, stays as it is there, and is only slower.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from inspect import signature
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

NOT_STARTED = {"no_monitor": True, "include_log_monitor": False}
LOOK_SECONDS = 0.02
PATIENCE_SECONDS = 5.0
"""After so long Ray looks for its node in its own way, which has a time limit and an error."""


@contextmanager
def lean_ray() -> Iterator[None]:
    """Ray that starts meanwhile consists of the control process, the raylet and its agents."""
    with ExitStack() as given_back:
        for owner, name, lean in _exchanges():
            given_back.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, lean)
        yield


def _exchanges() -> Iterator[tuple[Any, str, Any]]:
    """What of Ray is exchanged for what: whose it is, its name, and what takes its place."""
    if hasattr(_parameter, "RayParams"):
        known = signature(_parameter.RayParams).parameters
        wanted = {name: value for name, value in NOT_STARTED.items() if name in known}
        yield _parameter, "RayParams", partial(_parameter.RayParams, **wanted)
    if hasattr(_node.Node, "start_api_server"):
        yield _node.Node, "start_api_server", _start_nothing
    if hasattr(_services, "get_node"):
        yield _services, "get_node", partial(_get_node_soon, _services.get_node)


def _start_nothing(*_: Any, **__: Any) -> None:
    pass


def _get_node_soon(get_node: Any, gcs_address: str, node_id: str) -> Any:
    """`get_node`, once the node is there."""
    with suppress(AttributeError, KeyError, TypeError):
        state = _state.GlobalState()
        state._initialize_global_state(_services._get_gcs_client_options(gcs_address))
        latest = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < latest and all(
            node["NodeID"] != node_id or not node["Alive"] for node in state.node_table()
        ):
            time.sleep(LOOK_SECONDS)
    return get_node(gcs_address, node_id)
