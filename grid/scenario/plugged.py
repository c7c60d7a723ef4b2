"""What a scenario plugs in by name, policies and generators: are there such, with such settings?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from grid.model.errors import Mistake, Path, expected_name
from grid.policies.registry import make_policy, policy_names
from grid.scenario.schema import (
    GeneratedMachinesSection,
    PolicySection,
    Scenario,
    WorkloadSection,
)
from grid.scenario.validate import validate
from grid.scenario.yaml_tree import Node, nearest

_SETTING = re.compile(r"(\w+): found (.*), expected (.*)", re.DOTALL)


def plugged_mistakes(root: Node, scenario: Scenario) -> list[Mistake]:
    """What is wrong with the names and settings of policies and generators in `scenario`.

    `root` is the tree that it was read from. A policy with settings is made for a trial, because
    only itself knows what it accepts.
    """
    known = policy_names()
    mistakes: list[Mistake] = []
    for path, policy in _policies(scenario):
        mistakes += _policy_mistakes(root, path, policy, known)
    return [*mistakes, *_generator_mistakes(root, scenario)]


def _policies(scenario: Scenario) -> Iterator[tuple[Path, PolicySection | str]]:
    for v, vo in enumerate(scenario.vos or ()):
        for c, cluster in enumerate(vo.clusters):
            yield ("vos", v, "clusters", c, "policy"), cluster.policy
    if scenario.vos_from_trace is not None:
        yield ("vos_from_trace", "policy"), scenario.vos_from_trace.policy


def _policy_mistakes(
    root: Node, path: Path, policy: PolicySection | str, known: Sequence[str]
) -> list[Mistake]:
    name = policy if isinstance(policy, str) else policy.name
    if name not in known:
        where = path if isinstance(policy, str) else (*path, "name")
        expected = expected_name(name, known, "a policy")
        return [nearest(root, where).mistake(where, expected, repr(name))]
    if isinstance(policy, str) or not policy.settings:
        return []
    try:
        make_policy(name, policy.settings)
    except (ValueError, TypeError) as error:
        return [_refused(root, (*path, "settings"), name, str(error))]
    return []


def _refused(root: Node, path: Path, name: str, reason: str) -> Mistake:
    named = _SETTING.fullmatch(reason)
    if named is None:
        expected = f"what {name} accepts ({' '.join(reason.split())})"
        return nearest(root, path).mistake(path, expected, "other settings")
    setting, found, expected = named.groups()
    where = (*path, setting)
    return nearest(root, where).mistake(where, expected, found[:60])


def _generator_mistakes(root: Node, scenario: Scenario) -> Iterator[Mistake]:
    machines: list[tuple[Path, str]] = [
        (("vos", v, "clusters", c, "machines"), cluster.machines.generator)
        for v, vo in enumerate(scenario.vos or ())
        for c, cluster in enumerate(vo.clusters)
        if isinstance(cluster.machines, GeneratedMachinesSection)
    ]
    workloads: list[tuple[Path, WorkloadSection | None]] = [
        (("workload",), scenario.workload),
        *((("vos", v, "workload"), vo.workload) for v, vo in enumerate(scenario.vos or ())),
    ]
    jobs = [
        (path, workload.generator)
        for path, workload in workloads
        if workload is not None and workload.generator is not None
    ]
    if not machines and not jobs:
        return
    from grid.workload.generators import JOB_GENERATORS, MACHINE_GENERATORS

    of_machines = {name: generator.settings for name, generator in MACHINE_GENERATORS.items()}
    of_jobs = {name: generator.settings for name, generator in JOB_GENERATORS.items()}
    for path, name in machines:
        yield from _mistakes_of(root, path, name, of_machines, "a generator of machines")
    for path, name in jobs:
        yield from _mistakes_of(root, path, name, of_jobs, "a generator of jobs")


def _mistakes_of(
    root: Node, path: Path, name: str, known: dict[str, type[BaseModel]], what: str
) -> list[Mistake]:
    if name not in known:
        where = (*path, "generator")
        return [nearest(root, where).mistake(where, expected_name(name, known, what), repr(name))]
    settings = validate(root, known[name], (*path, "settings"))
    return settings if isinstance(settings, list) else []
