"""The Ray cluster that a run uses, and where on it its actors go."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray._private import ray_constants
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from grid.model.errors import InputError, Mistake, RunFailed
from grid.runtime.cpus import usable_cpus

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    # Ray lets everything else go first; what runs against the clock cannot.
    "RAY_worker_niceness": "0",
}
LOOPBACK = "127.0.0.1"
PLACING_SECONDS = 60.0
SLIVER = 0.001
"""CPUs of a bundle: a bundle must ask for something, and actors share what CPUs there are."""


class NoRoom(RunFailed):
    """The cluster has no place for the actors of a run."""


class RayDidNotStart(RunFailed):
    """Ray has none of its own processes up in time, or they have died at once."""


@contextmanager
def ray_cluster(address: str | None, cpus: int | None = None) -> Iterator[str]:
    """Connect to the Ray cluster at `address` or `RAY_ADDRESS`, else start one on this machine.

    Gives the address of this machine in that cluster. A cluster that was running goes on; one that
    was started here, with `cpus` CPUs (default: all that it may use), ends with the block, and
    nothing of it listens beyond this machine. Dashboard and usage reports are off.
    """
    if ray.is_initialized():
        yield ray.util.get_node_ip_address()
        return
    address = address or os.environ.get("RAY_ADDRESS")
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    # Each death of an actor is news to Ray, and printed among our results, whatever
    # `log_to_driver` says. We tell of those that matter ourselves.
    ray._private.worker.print_to_stdstream = _do_nothing
    if callable(signal.getsignal(signal.SIGTERM)):
        # What this process does when it is told to end stays; Ray's way leaves a stack trace.
        ray._private.utils.set_sigterm_handler = _do_nothing
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address:
        _knock(address)
        try:
            with _at_home(address.startswith((LOOPBACK, "localhost"))):
                ray.init(address=address, **options)
        except ConnectionError:
            what = "a Ray cluster whose token is ours (RAY_AUTH_MODE, RAY_AUTH_TOKEN_PATH)"
            found = f"no connection to a cluster at {address}"
            raise InputError([Mistake("--address", None, "", found, what)]) from None
    else:
        options |= {"include_dashboard": False, "num_cpus": cpus or usable_cpus()}
        try:
            with _at_home(True):
                ray.init(address="local", _node_ip_address=LOOPBACK, **options)
        except Exception as error:  # Ray raises nothing more special.
            ray.shutdown()
            raise RayDidNotStart(f"Ray did not start on this machine: {error}") from None
    try:
        yield ray.util.get_node_ip_address() if address else LOOPBACK
    finally:
        ray.shutdown()


def _do_nothing(*_: Any, **__: Any) -> None:
    pass


@contextmanager
def _at_home(home: bool) -> Iterator[None]:
    """While Ray connects: whether this node and all others are on the loopback address.

    Ray takes a node that may have company to its outer address, even if it is told the loopback
    one, and then listens to everybody. One that is known to be alone stays at home.
    """
    company = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = company and not home
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = company


def _knock(address: str) -> None:
    """See whether anything answers at HOST:PORT; Ray itself would go on trying for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError):
        what = "a running Ray cluster"
        mistake = Mistake("--address", None, "", f"nothing that answers at {address}", what)
        raise InputError([mistake]) from None


@contextmanager
def places(count: int) -> Iterator[list[dict[str, Any]]]:
    """Options for `count` actors that are spread over the nodes of the cluster.

    Over several nodes they belong to a placement group, which moves its actors to other nodes when
    one is lost. Raises NoRoom where the cluster does not find room for it in time.
    """
    nodes = [node for node in ray.nodes() if node["Alive"]]
    if len(nodes) == 1:
        yield [{"num_cpus": 0} for _ in range(count)]
        return
    group = placement_group([{"CPU": SLIVER}] * count, strategy="SPREAD")
    try:
        if not group.wait(PLACING_SECONDS):
            raise NoRoom(f"no room for {count} actors on {len(nodes)} nodes")
        yield [_in_bundle(group, number) for number in range(count)]
    finally:
        remove_placement_group(group)


def _in_bundle(group: PlacementGroup, number: int) -> dict[str, Any]:
    strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number)
    return {"num_cpus": 0, "scheduling_strategy": strategy}
