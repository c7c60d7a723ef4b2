"""What a cluster may require of its policy, and which policies support it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from grid.model.job_table import JobTable
from grid.model.platform import Cluster, PreemptionOverheads
from grid.model.time import NEVER
from grid.policies.gang_policy import GangPolicy
from grid.policies.queue import form_of


class JobFeatures(NamedTuple):
    """Whether any job may hold resources, may be cancelled while it waits, has a prediction.

    `sizes` are the most of a moldable job, 0 if all are rigid.
    """

    resources: bool = True
    cancellations: bool = False
    predictions: bool = False
    sizes: int = 0

    @classmethod
    def of(cls, tables: Iterable[JobTable | None]) -> JobFeatures:
        """Those of the jobs of all tables."""
        each = [table for table in tables if table is not None]
        return cls(
            any(held.any() for table in each for held in table.resources.values()),
            any(bool((table.cancel_us < NEVER).any()) for table in each),
            any(bool(table.predicted_us.any()) for table in each),
            max((len(sizes) for table in each for sizes in table.sizes), default=0),
        )


ANY_JOBS = JobFeatures()


class ClusterSpec(NamedTuple):
    """A cluster, whether its machines may go down, and what its jobs may require."""

    platform: Cluster
    outages: bool = False
    jobs: JobFeatures = ANY_JOBS


class Feature(NamedTuple):
    """A feature of clusters: its `field` in a cluster's description, and its value there.

    The value is false if the feature is not required. `gangs` and `pools`: whether gang policies
    and the kernels of `grid.cluster.pool` support it; other policies do, unless their `ignores`
    name it.
    """

    field: str
    found: Callable[[ClusterSpec], Any]
    gangs: bool = False
    pools: bool = False


def _resources(spec: ClusterSpec) -> str:
    limited = spec.jobs.resources and spec.platform.resource_names
    return f"resources ({', '.join(limited)})" if limited else ""


def _factor(platform: Cluster) -> str:
    is_used = platform.estimates != "exact" and platform.estimate_factor != 1
    return f"{platform.estimate_factor:g}" if is_used else ""


FEATURES = {
    "several machines": Feature(
        "machines", lambda spec: len(spec.platform.machines) > 1 and "several", gangs=True
    ),
    "machine outages": Feature(
        "machines", lambda spec: spec.outages and "outages of machines", gangs=True
    ),
    "resources": Feature("machines", _resources, gangs=True),
    "licenses": Feature("licenses", lambda spec: spec.platform.licenses and "licenses"),
    "reservations": Feature(
        "reservations", lambda spec: spec.platform.reservations and "reservations"
    ),
    "binding to machines": Feature(
        "resource", lambda spec: spec.platform.resource == "machine" and "machine", pools=True
    ),
    "one job per machine": Feature(
        "one_job_per_machine", lambda spec: spec.platform.one_job_per_machine and "true"
    ),
    "preemption costs": Feature(
        "preemption", lambda spec: spec.platform.preemption != PreemptionOverheads() and "costs"
    ),
    "processor placement": Feature(
        "processor_choice", lambda spec: spec.platform.processor_choice and "a choice", gangs=True
    ),
    "switching machines off": Feature(
        "machines",
        lambda spec: (
            any(one.switch_off for one in spec.platform.machines) and "machines with switch_off"
        ),
    ),
    "overrunning jobs": Feature(
        "overrun", lambda spec: spec.platform.overrun == "extend" and "extend", gangs=True
    ),
    "exact estimates": Feature(
        "estimates", lambda spec: spec.platform.estimates == "exact" and "exact", pools=True
    ),
    "estimate factors": Feature("estimate_factor", lambda spec: _factor(spec.platform), pools=True),
    "predicted estimates": Feature(
        "estimates",
        lambda spec: (
            (spec.platform.estimates == "average" and "average")
            or (spec.jobs.predictions and "jobs with predictions")
        ),
    ),
    "cancellations": Feature(
        "policy", lambda spec: spec.jobs.cancellations and "jobs that may be cancelled", gangs=True
    ),
    "moldable jobs": Feature("policy", lambda spec: spec.jobs.sizes and "moldable jobs"),
}


def required(spec: ClusterSpec) -> list[str]:
    return [name for name, feature in FEATURES.items() if feature.found(spec)]


def is_pool(spec: ClusterSpec, policy: Any) -> bool:
    """Whether a kernel of `grid.cluster.pool` can simulate the cluster."""
    form = form_of(policy)
    return bool(form and form.pool) and all(FEATURES[name].pools for name in required(spec))


def unsupported(policy: Any) -> list[str]:
    """The features that the policy does not support."""
    if isinstance(policy, GangPolicy):
        own = [name for name, feature in FEATURES.items() if not feature.gangs]
    else:
        form = form_of(policy)
        is_able = form is not None and form.moldable
        own = ["processor placement", *([] if is_able else ["moldable jobs"])]
    return [name for name in FEATURES if name in own or name in getattr(policy, "ignores", ())]


def refusals(spec: ClusterSpec, policy: Any) -> Iterator[tuple[str, str, str]]:
    """Field, value and what is expected of each feature that the policy does not support."""
    refused = unsupported(policy)
    origin = getattr(policy, "origin", None)
    kind = "gang policy" if isinstance(policy, GangPolicy) else "policy"
    name = f"{kind} {spec.platform.policy.name if origin is None else origin.name}"
    for feature in required(spec):
        if feature in refused:
            field, found, *_ = FEATURES[feature]
            yield field, str(found(spec)), f"none, since {name} does not support {feature}"


def can_break(platform: Cluster, policy: Any, jobs: JobFeatures = ANY_JOBS) -> bool:
    """Whether machines that go down are supported under the policy."""
    return not [*refusals(ClusterSpec(platform, True, jobs), policy)]
