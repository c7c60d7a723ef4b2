"""The Ray cluster that a run uses, and where on it its actors go."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import ray
from ray._private import ray_constants
from ray.job_config import JobConfig
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from grid.model.errors import RunFailed, input_error
from grid.model.plugins.calls import in_one_line
from grid.model.plugins.registry import Plugins
from grid.runtime.cpus import usable_cpus

_private: Any = ray._private

SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    # Live runs follow the real clock; Ray gives its workers a low priority.
    "RAY_worker_niceness": "0",
}
SESSION_LOCK = "grid.lock"
LOOPBACK = "127.0.0.1"
WHICH_RAY_FINDS = "auto"
"""Not an address, but the cluster that Ray finds on this machine."""
CONNECT_SECONDS = 5.0
PLACING_SECONDS = 60.0
WATCH_SECONDS = 0.5
NEEDED = ("gcs_server", "raylet")
"""Processes of Ray without which a run cannot continue."""
SIGNAL_DELAY_SECONDS = 10.0
SLIVER = 0.001
"""CPUs of a bundle, which must require some; actors share the CPUs of their node."""
ADDRESS_BYTES = 10_000_000_000
"""Address space of a process of Ray, most of which is never used."""
ACTOR_BYTES = 100_000_000
"""Memory of an actor with Python and its imports, before its own state."""


class RayFailed(RunFailed):
    """Ray, or the machine under it, failed in the middle of a run."""


class NoRoom(RunFailed):
    """The cluster has no room for the actors of a run."""


class RayDidNotStart(RunFailed):
    """Ray's own processes did not start in time, or ended at once."""


def advice(error: Exception) -> str:
    """One line for an error of Ray: what it is, and what to do."""
    return (
        f"Ray failed ({type(error).__name__}: {_first_line(error)}); repeat the run. If memory is "
        "short, close other programs, or use fewer actors (--placement 1) or fewer concurrent runs "
        "(--cpus 1); --in-process does not require Ray"
    )


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason")


def refuse_unsendable(plugins: Plugins) -> None:
    """Raises RunFailed, in one line, if an object that is plugged in cannot be pickled."""
    for kind, objects in plugins.objects.items():
        for name, one in objects.items():
            try:
                ray.cloudpickle.dumps(one)
            except Exception as error:
                reason = in_one_line(error.__cause__ or error)
                raise RunFailed(
                    f"{kind} {name} cannot be sent to other processes: {reason}; create the "
                    f"objects that it needs in its __init__, or run it in this process"
                ) from None


@contextmanager
def ray_cluster(
    address: str | None, cpus: int | None = None, *, watch: bool = False
) -> Iterator[str]:
    """The Ray cluster that is connected, else that of `connected`. Raises RayFailed.

    With `watch`, also soon after one of Ray's own processes on this machine has ended.
    """
    try:
        if ray.is_initialized():
            yield ray.util.get_node_ip_address()
        else:
            with connected(address, cpus) as here, _watched() if watch else nullcontext():
                yield here
    except ray.exceptions.RayTaskError as error:
        if isinstance(error, ray.exceptions.TaskCancelledError):
            raise RayFailed("a Ray actor was interrupted: repeat the run") from None
        # An error in what runs on Ray, not in Ray.
        raise
    except ray.exceptions.RayError as error:
        raise RayFailed(advice(error)) from None


@contextmanager
def connected(address: str | None, cpus: int | None = None) -> Iterator[str]:
    """Connect to the Ray cluster at `address` or `RAY_ADDRESS`, else start one on this machine.

    Yields the address of this machine in that cluster. A cluster that is started here, with `cpus`
    CPUs (default: all that this process may use), ends with the block and listens on the loopback
    address only. Dashboard and usage reports are off. Raises InputError and RayDidNotStart.
    """
    option = "--address" if address else "RAY_ADDRESS"
    address = address or os.environ.get("RAY_ADDRESS")
    if address == "local":
        # Ray's word for a new cluster.
        address = None
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    # Ray prints each death of an actor, even without `log_to_driver`.
    _private.worker.print_to_stdstream = lambda *_, **__: None
    started: list[Any] = []
    with ExitStack() as session:
        try:
            with _signals_delayed():
                if address:
                    _join(address, option)
                else:
                    _start(cpus or usable_cpus())
                    node = _private.worker._global_node
                    started = [one for _, one in node.live_processes()]
                    session.enter_context(_session_lock(Path(node.get_session_dir_path())))
            yield ray.util.get_node_ip_address() if address else LOOPBACK
        finally:
            with _signals_delayed():
                agents = _children_of([one.pid for one in started])
                ray.shutdown()
                for process in agents:
                    with suppress(ProcessLookupError):
                        os.kill(process, signal.SIGKILL)


@contextmanager
def _session_lock(session: Path) -> Iterator[None]:
    """Lock the folder of a Ray session, and remove those of earlier runs that have ended.

    The kernel releases the lock of a process that is killed. Sessions of other programs have none.
    """
    unlocked = session / f"{SESSION_LOCK}.new"
    with unlocked.open("wb") as own:
        fcntl.flock(own, fcntl.LOCK_EX)
        unlocked.rename(session / SESSION_LOCK)
        for lock in session.parent.glob(f"session_*/{SESSION_LOCK}"):
            with suppress(OSError), lock.open("rb") as other:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        yield


def _children_of(parents: list[int]) -> list[int]:
    """The agents of a raylet, which outlive it for a minute if it was killed."""
    found = []
    for parent in parents:
        with suppress(OSError):
            listed = Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii")
            found += [int(child) for child in listed.split()]
    return found


def has_died() -> bool:
    """Whether Ray's control process or raylet was started here and has ended."""
    node: Any = _private.worker._global_node
    return any(kind in NEEDED for kind, _ in node.dead_processes())


@contextmanager
def _watched() -> Iterator[None]:
    """Raises RayFailed soon after `has_died`.

    Ray itself continues for a minute, and then ends this process. A KeyboardInterrupt is the only
    error that Ray lets out of its waiting; Python raises it in the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    main, over = threading.get_ident(), threading.Event()

    def watch() -> None:
        while not over.wait(WATCH_SECONDS):
            if has_died():
                signal.pthread_kill(main, signal.SIGUSR1)
                return

    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    except BaseException:
        if has_died():
            raise RayFailed(
                "a Ray process has ended; repeat the run, or use --in-process"
            ) from None
        raise
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)


@contextmanager
def _signals_delayed() -> Iterator[None]:
    """Handle SIGINT and SIGTERM at the end of the block, with the handlers from before it.

    Interrupted in the middle, Ray leaves processes; and it replaces the handler of SIGTERM. Python
    handles signals in the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = {number: handler for number, handler in before.items() if callable(handler)}
    latest = time.monotonic() + SIGNAL_DELAY_SECONDS
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if time.monotonic() > latest:
            ours[signal.Signals(number)](number, frame)
        came.append(number)

    for number in ours:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


class _PathOfWorkers(list[str]):
    """Folders that come first on the module path of Ray's workers.

    Ray adds the current folder, in which a file may have the name of a module of Python or of ours.
    It is added only if this process has it on its path, too.
    """

    def extend(self, folders: Iterable[str]) -> None:
        here = [str(Path(folder).absolute()) for folder in sys.path]
        super().extend(folder for folder in folders if folder in here)


def _options() -> dict[str, Any]:
    job = JobConfig()
    job._py_driver_sys_path = _PathOfWorkers()
    return {"log_to_driver": False, "logging_level": "ERROR", "job_config": job}


def _join(address: str, option: str) -> None:
    check_address(address, option)
    try:
        with _on_loopback(address.startswith((LOOPBACK, "localhost"))):
            ray.init(address=address, **_options())
    except Exception as error:  # Ray raises almost anything, RuntimeError among it.
        expected = "a running Ray cluster"
        if isinstance(error, ray.exceptions.AuthenticationError):
            expected = "a cluster with the same token (RAY_AUTH_MODE, RAY_AUTH_TOKEN_PATH)"
        found = f"no access to the Ray cluster at {address} ({_first_line(error)[:200]})"
        raise input_error(option, found, expected) from None


def check_address(address: str, option: str = "--address") -> None:
    """Raises InputError, which names `option`, if no Ray cluster answers at HOST:PORT.

    Ray itself tries for minutes.
    """
    if address == WHICH_RAY_FINDS:
        return
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdecimal() and 0 < int(port) < 1 << 16
    if not re.fullmatch(r"[^/\s:]+|\[[0-9A-Fa-f:]+\]", host) or not is_port:
        expected = f"HOST:PORT of a running Ray cluster, or {WHICH_RAY_FINDS}"
        raise input_error(option, f"{address!r}", expected)
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError:
        raise input_error(option, f"no reply from {address}", "a running Ray cluster") from None


def _start(cpus: int) -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if resource.RLIM_INFINITY != limit < ADDRESS_BYTES:
        # Ray would wait for a minute, or abort this process if it cannot start a thread.
        raise RayDidNotStart(
            f"Ray did not start: its processes need {ADDRESS_BYTES / 1e9:g} GB of address space, "
            f"but the limit is {limit / 1e9:g} GB (ulimit -v); raise it, or run with --in-process"
        )
    try:
        with _on_loopback(True), lean_ray():
            ray.init(
                address="local",
                _node_ip_address=LOOPBACK,
                include_dashboard=False,
                num_cpus=cpus,
                **_options(),
            )
    except Exception as error:  # Ray raises nothing more special.
        folder = os.environ.get("RAY_TMPDIR", "/tmp")
        raise RayDidNotStart(
            f"Ray did not start on this machine ({_first_line(error)}); it needs 1 GB of memory, "
            f"free space in /dev/shm and {folder}, and free ports: close other programs, or use "
            f"--in-process, which does not require Ray"
        ) from None


@contextmanager
def _on_loopback(is_alone: bool) -> Iterator[None]:
    """While Ray connects: whether this node and all others are on the loopback address.

    Ray moves a node that may get company to its outer address, where it listens to other machines.
    """
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = before and not is_alone
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


NODE_POLL_SECONDS = 0.02
NODE_SECONDS = 5.0


@contextmanager
def lean_ray() -> Iterator[None]:
    """Ray that starts in this block consists of the control process, the raylet and its agents.

    Without the autoscaler's monitor, the log monitor and the API server, and without waiting a
    second between two checks of its node, start and end take 1.3 s instead of 4.3 s. Ray has no
    options for that. A Ray without these functions starts in its own way.
    """
    parameter, node, services = _private.parameter, _private.node.Node, _private.services
    exchanged: tuple[tuple[Any, str, Any], ...] = ()
    with suppress(AttributeError):
        exchanged = (
            (parameter, "RayParams", partial(parameter.RayParams, **NOT_STARTED)),
            (node, "start_api_server", lambda *_, **__: None),
            (services, "get_node", partial(_get_node_soon, services.get_node)),
        )
    with ExitStack() as restored:
        for owner, name, lean in exchanged:
            restored.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, lean)
        yield


NOT_STARTED = {"no_monitor": True, "include_log_monitor": False}


def _get_node_soon(get_node: Any, gcs_address: str, node_id: str) -> Any:
    """`get_node`, once the node is registered."""
    state = _private.state.GlobalState()
    state._initialize_global_state(_private.services._get_gcs_client_options(gcs_address))
    latest = time.monotonic() + NODE_SECONDS
    while time.monotonic() < latest and all(
        node["NodeID"] != node_id or not node["Alive"] for node in state.node_table()
    ):
        time.sleep(NODE_POLL_SECONDS)
    return get_node(gcs_address, node_id)


@contextmanager
def places(count: int, actors: int | None = None) -> Iterator[list[dict[str, Any]]]:
    """Options for actors at `count` places that are spread over the nodes of the cluster.

    `actors` is how many there will be (default: one at each place). Over several nodes they belong
    to a placement group, which moves its actors when a node is lost. Raises NoRoom if the cluster
    has too little memory for the actors, or no room for the group in time.
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
        strategies = [PlacementGroupSchedulingStrategy(group, number) for number in range(count)]
        yield [{"num_cpus": 0, "scheduling_strategy": one} for one in strategies]
    finally:
        remove_placement_group(group)


def _refuse_too_many(actors: int) -> None:
    """Raise NoRoom for actors that would fill all memory, which ends other programs, too."""
    resources = ray.cluster_resources()
    has_gb = (resources.get("memory", 0) + resources.get("object_store_memory", 0)) / 1e9
    needs_gb = actors * ACTOR_BYTES / 1e9
    if needs_gb > has_gb:
        raise NoRoom(
            f"{actors:,} Ray actors need {needs_gb:,.0f} GB of memory or more; the Ray cluster has "
            f"{has_gb:,.0f} GB: use fewer (--placement 1, 2, ...), more nodes or, "
            "without --live, --in-process"
        )
