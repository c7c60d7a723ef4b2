"""Runs as Ray tasks: as many at once as the cluster has CPUs, each in a process without Ray."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import ray

from grid.experiment.code import code_version
from grid.experiment.record import Answer, Step, Work, attempt
from grid.runtime.cluster import ray_cluster
from grid.scenario.schema import ScenarioSection

WAITING_TASKS_PER_CPU = 3
"""So many are handed to Ray ahead, so that no CPU waits for the driver and memory stays flat."""

TICK_SECONDS = 1.0
RETRIES = 3


def _be_ready() -> None:
    """What a worker that comes to this has imported all that runs need."""


def _attempt_with(code: str, scenario: ScenarioSection, file: str) -> Answer:
    if code_version() != code:
        node = ray.util.get_node_ip_address()
        return f"the node {node} has another version of the code"
    return attempt(scenario, file)


class RayDied(Exception):
    """Ray itself has ended on this machine, and with it the runs in flight."""


def run_all(work: Sequence[Work], address: str | None, cpus: int | None) -> Iterator[Step]:
    """Run all of `work` as Ray tasks; answers come in the order they are ready.

    On the connected cluster, else on that at `address` or on a new one of `cpus` CPUs. A worker
    that dies is replaced and its run repeated, `RETRIES` times at most. So is Ray itself, which
    gives up on a machine that has no time for it.
    """
    left = {number: (number, scenario, file) for number, scenario, file in work}
    for _ in range(1 + RETRIES):
        try:
            with ray_cluster(address, cpus):
                for step in _run_on_ray(list(left.values())):
                    if step.number is not None:
                        del left[step.number]
                    yield step
            return
        except RayDied:
            ray.shutdown()
    for number in left:
        yield Step(0, number, "RayDied: Ray ended again and again")


def _run_on_ray(work: Sequence[Work]) -> Iterator[Step]:
    """Run `work` on the connected Ray cluster. Raises RayDied."""
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_attempt_with)
    code = code_version()
    resources = ray.cluster_resources()
    cpus = max(1, int(resources.get("CPU", 1)))
    limit = cpus * (1 + WAITING_TASKS_PER_CPU)
    warming = ray.remote(num_cpus=1)(_be_ready)
    _answers([warming.remote() for _ in range(min(cpus, len(work)))])
    yield Step(0, is_first=True)
    waiting = iter(work)
    running: dict[Any, int] = {}

    def submit() -> None:
        for number, scenario, file in waiting:
            running[task.remote(code, scenario, file)] = number
            if len(running) >= limit:
                return

    submit()
    while running:
        ready, _ = ray.wait(list(running), num_returns=1, timeout=TICK_SECONDS)
        if not ready:
            yield Step(min(len(running), cpus))
            continue
        number = running.pop(ready[0])
        submit()
        yield Step(min(len(running), cpus), number, _answer(ready[0]))


def _answers(references: list[Any]) -> Any:
    try:
        return ray.get(references)
    except ray.exceptions.LocalRayletDiedError:
        raise RayDied from None


def _answer(reference: Any) -> Answer:
    try:
        answer: Answer = ray.get(reference)
    except ray.exceptions.LocalRayletDiedError:
        raise RayDied from None
    except ray.exceptions.RayError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return answer
