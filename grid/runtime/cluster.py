"""The Ray cluster that a run uses, and where on it its actors go."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import ray
from ray._private import ray_constants
from ray.job_config import JobConfig
from ray.util.placement_group import PlacementGroup, placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from grid.model.errors import RunFailed
from grid.model.plugins.calls import in_one_line
from grid.model.plugins.registry import Plugins
from grid.runtime.address import knock, not_let_in
from grid.runtime.cpus import usable_cpus
from grid.runtime.lean_ray import lean_ray
from grid.runtime.ray_watch import (
    RayFailed,
    end,
    keep_own_handler,
    own_groups,
    put_off,
    watched,
)

_raylet: Any = ray._raylet

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
ACTOR_BYTES = 100_000_000
"""What an actor takes of memory at least, with Python and what it loads, before its own state."""


class NoRoom(RunFailed):
    """The cluster has no place for the actors of a run."""


class RayDidNotStart(RunFailed):
    """Ray has none of its own processes up in time, or they have died at once."""


TO_DO = {
    "OutOfMemoryError": "the machine has too little memory free: end other programs, or use fewer "
    "actors (--placement 1), fewer runs at once (--cpus 1) or --in-process",
    "ObjectStoreFullError": "Ray's memory is full: end other programs, or use --in-process",
    "OutOfDiskError": "the disk is full: make room in the folder for temporary files (RAY_TMPDIR)",
    "LocalRayletDiedError": "Ray has ended on this machine: it had no memory or was killed; run it "
    "again, or use --in-process",
    "NodeDiedError": "a node was lost: run it again",
    "ActorDiedError": "an actor was lost, maybe for want of memory: run it again, or with "
    "--placement 1 or --in-process",
    "AuthenticationError": "the cluster has another token than this machine: set "
    "RAY_AUTH_MODE=token and the same RAY_AUTH_TOKEN_PATH as on its nodes",
}
"""What to do about errors of Ray, by their names."""
OTHERWISE = "run it again, or with --in-process, which needs no Ray"


def advice(error: Exception) -> str:
    """One line for an error of Ray: what it is, and what to do."""
    names = [kind.__name__ for kind in type(error).__mro__ if kind.__name__ in TO_DO]
    what = TO_DO[names[0]] if names else OTHERWISE
    if not names and "memory" in str(error).lower():
        what = TO_DO["OutOfMemoryError"]
    return f"Ray failed ({type(error).__name__}: {_first_line(error)}); {what}"


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason")


def refuse_unsendable(parts: Plugins) -> None:
    """Raises RunFailed, in one line, where an object that is plugged in cannot be sent."""
    for kind, objects in parts.objects.items():
        for name, one in objects.items():
            try:
                ray.cloudpickle.dumps(one)
            except Exception as error:
                reason = in_one_line(error.__cause__ or error)
                raise RunFailed(
                    f"{kind} {name} cannot be sent to other processes: {reason}; make what it "
                    "needs in its __init__, or run it in this process"
                ) from None


@contextmanager
def ray_cluster(
    address: str | None, cpus: int | None = None, *, watch: bool = True
) -> Iterator[str]:
    """The Ray cluster that is connected, else that of `connected`. Raises RayFailed."""
    try:
        if ray.is_initialized():
            yield ray.util.get_node_ip_address()
        else:
            with connected(address, cpus, watch=watch) as place:
                yield place
    except ray.exceptions.RayTaskError as error:
        if isinstance(error, ray.exceptions.TaskCancelledError):
            raise RayFailed("something interrupted a Ray actor: run it again") from None
        # A mistake in what runs on Ray, not in Ray.
        raise
    except ray.exceptions.RayError as error:
        raise RayFailed(advice(error)) from None


@contextmanager
def connected(address: str | None, cpus: int | None = None, *, watch: bool = True) -> Iterator[str]:
    """Connect to the Ray cluster at `address` or `RAY_ADDRESS`, else start one on this machine.

    Gives the address of this machine in that cluster. A cluster that was running goes on; one that
    was started here, with `cpus` CPUs (default: all that it may use), ends with the block, and
    nothing of it listens beyond this machine. Dashboard and usage reports are off. With `watch`,
    the block ends soon after Ray does; who begins anew then does without. Raises InputError where
    nothing is at the address that we can use, and RayDidNotStart.
    """
    option = "--address" if address else "RAY_ADDRESS"
    address = address or os.environ.get("RAY_ADDRESS")
    if address == "local":
        # Ray's word for none that runs.
        address = None
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    # Each death of an actor is news to Ray, and printed among our results, whatever
    # `log_to_driver` says. We tell of those that matter ourselves.
    ray._private.worker.print_to_stdstream = _do_nothing
    if callable(signal.getsignal(signal.SIGTERM)):
        # What this process does when it is told to end stays; Ray's way leaves a stack trace.
        ray._private.utils.set_sigterm_handler = _do_nothing
    # Its handler of crashes prints a stack for SIGTERM, too.
    ray_constants.RAY_DISABLE_FAILURE_SIGNAL_HANDLER = True
    with own_groups() as groups:
        try:
            # Broken off in the middle, Ray leaves processes, and a part of it that crashes at exit.
            with put_off(signal.SIGINT, signal.SIGTERM):
                if address:
                    _join(address, option)
                else:
                    _start(cpus or usable_cpus())
            keep_own_handler(signal.SIGTERM)
            with watched() if watch else nullcontext():
                yield ray.util.get_node_ip_address() if address else LOOPBACK
        finally:
            with put_off(signal.SIGINT, signal.SIGTERM):
                _shut_down()
                end(groups)


class _PathOfWorkers(list[str]):
    """The folders that go before all others on the path of Ray's workers.

    Ray adds the current folder, where a file of the user's may have the name of a module of ours,
    of a library or of Python. It is added only where this process looks for modules there, too.
    """

    def extend(self, folders: Iterable[str]) -> None:
        here = [str(Path(folder).absolute()) for folder in sys.path]
        super().extend(folder for folder in folders if folder in here)


def _options() -> dict[str, Any]:
    job = JobConfig()
    job._py_driver_sys_path = _PathOfWorkers()
    return {"log_to_driver": False, "logging_level": "ERROR", "job_config": job}


def _join(address: str, option: str) -> None:
    knock(address, option)
    try:
        with _at_home(address.startswith((LOOPBACK, "localhost"))):
            ray.init(address=address, **_options())
    except Exception as error:  # Ray raises almost anything, RuntimeError among it.
        raise not_let_in(address, option, error) from None


def _start(cpus: int) -> None:
    options = {**_options(), "include_dashboard": False, "num_cpus": cpus}
    try:
        with _at_home(True), lean_ray():
            ray.init(address="local", _node_ip_address=LOOPBACK, **options)
    except Exception as error:  # Ray raises nothing more special.
        why = _first_line(error)
        raise RayDidNotStart(f"Ray did not start on this machine ({why}); {_hint()}") from None


def _shut_down() -> None:
    """Disconnect from Ray, and end what was started of it here.

    Disconnected, Ray gives SIGTERM back to the system, whose way is to end this process at once,
    and then waits for its processes for a second or two, in which we are to hear it.
    """
    node: Any = ray._private.worker._global_node
    if node is not None:
        end_processes = node.kill_all_processes

        def and_hear(**options: Any) -> None:
            keep_own_handler(signal.SIGTERM)
            end_processes(**options)

        node.kill_all_processes = and_hear
    ray.shutdown()


def _hint() -> str:
    """What may help where Ray does not start."""
    folder = os.environ.get("RAY_TMPDIR", "/tmp")
    return (
        f"it needs 1 GB of memory, room in /dev/shm and {folder}, and free ports: end other "
        "programs, or run with --in-process, which needs no Ray"
    )


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


@contextmanager
def places(count: int, actors: int | None = None) -> Iterator[list[dict[str, Any]]]:
    """Options for actors at `count` places that are spread over the nodes of the cluster.

    `actors` says how many there will be (default: one at each place).

    Over several nodes they belong to a placement group, which moves its actors to other nodes when
    one is lost. Raises NoRoom where the cluster has too little memory for so many actors, or does
    not find room for the group in time.
    """
    _refuse_too_many(actors or count)
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


def _refuse_too_many(actors: int) -> None:
    """Raise NoRoom for actors that would fill all memory, which ends other programs, too."""
    resources = ray.cluster_resources()
    # Of what Ray keeps for its own objects we use little.
    has_gb = (resources.get("memory", 0) + resources.get("object_store_memory", 0)) / 1e9
    needs_gb = actors * ACTOR_BYTES / 1e9
    if needs_gb > has_gb:
        raise NoRoom(
            f"{actors:,} Ray actors need {needs_gb:,.0f} GB of memory or more, the Ray cluster has "
            f"{has_gb:,.0f} GB: use fewer (--placement 1, 2, ...), more nodes or, "
            "without --live, --in-process"
        )


def _in_bundle(group: PlacementGroup, number: int) -> dict[str, Any]:
    strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=number)
    return {"num_cpus": 0, "scheduling_strategy": strategy}
