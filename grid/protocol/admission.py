"""PeerLists a VO takes jobs in from: `everyone`, `nobody`, or within limits."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from grid.model.job import Job
from grid.model.time import Time

Names = Annotated[
    tuple[str, ...] | None, Field(description="VOs whose jobs are taken in; none: of all")
]
Limit = Annotated[int, Field(ge=0, le=10_000_000)]


class Request(NamedTuple):
    """A job of another VO that shall be assigned a resource of this one.

    `jobs` of that other VO, with so many `processors` in all, are here: running, waiting, or with a
    place held for them. `assigned` of the `cpus` of this VO are promised to jobs of any VO.
    """

    job: Job
    jobs: int
    processors: int
    assigned: int
    cpus: int
    now: Time


def everyone(request: Request) -> bool:
    """Every job is taken in."""
    del request
    return True


def nobody(request: Request) -> bool:
    """No job of another VO is taken in."""
    del request
    return False


def limited(
    request: Request,
    *,
    from_vos: Names = None,
    jobs: Annotated[
        Limit | None, Field(description="jobs of one other VO at once, running and waiting")
    ] = None,
    cpus: Annotated[
        Limit | None, Field(description="CPUs that they hold and wait for, of one other VO")
    ] = None,
    cpus_of: Annotated[
        dict[str, Limit], Field(description="the same for single VOs, by name")
    ] = {},  # noqa: B006
    load: Annotated[
        float | None, Field(gt=0, le=1000, description="assigned CPUs over CPUs, with the job")
    ] = None,
) -> bool:
    """Jobs of listed VOs are taken in, up to a quota for each VO, and up to a load.

    Quotas by VO and a load above which guests are refused are how sites of EGEE and OSG shared
    what they had: Dumitrescu and Foster, Usage policy-based CPU sharing in virtual organizations
    (2004).
    """
    job = request.job
    quota = cpus_of.get(job.vo, cpus)
    return (
        (from_vos is None or job.vo in from_vos)
        and (jobs is None or request.jobs + 1 <= jobs)
        and (quota is None or request.processors + job.processors <= quota)
        and (load is None or request.assigned + job.processors <= load * request.cpus)
    )


def unknown_vos(
    rule: str, settings: Iterable[tuple[str, Any]], known: Container[str]
) -> Iterator[tuple[str, str]]:
    """The settings of `limited` that name VOs which are not there, and those names."""
    for setting, value in settings if rule == "limited" else ():
        if setting in ("from_vos", "cpus_of") and isinstance(value, list | tuple | dict):
            yield from ((setting, name) for name in value if name not in known)
