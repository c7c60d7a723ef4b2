"""Gangs with migration (GM): two clusters, with and without migration and adaptive dispatching."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from grid.experiment.claims import Claim, Paper, Part, Source, Studies
from grid.experiment.comparisons import below, over, within
from grid.experiment.papers.drawing import along_axis, mean_courses, points
from grid.experiment.papers.gm_readings import LEFT_OUT, READINGS, WHY
from grid.experiment.statistics import Region
from grid.experiment.study import Study
from grid.report.charts import Labels
from grid.report.style import Picture

MAIN = "gang-migration"
POLICIES = ("AFCFS", "LGFS")
SCENES = ("S1", "S2", "S3")
MIGRATIONS = "migrations_local+migrations_external"
SHOWN_LOAD = 0.55
"""The figures are drawn at this load, or at the only one that there is."""
LEVEL = 5.0
"""A utilisation is at the paper's level within so many points."""
UTILIZATIONS = {
    ("AFCFS", "S1"): 50.0, ("AFCFS", "S2"): 60.0, ("AFCFS", "S3"): 75.0,
    ("LGFS", "S1"): 42.5, ("LGFS", "S2"): 50.0, ("LGFS", "S3"): 75.0,
}  # fmt: skip
UTILIZATION = "utilization_shown_percent"
"""Eq. 5 over the part of the run that Fig. 3 shows; see `grid.experiment.record`."""
LOSS = "loss_of_capacity_in_clusters"


def at(policy: str, scene: str, load: float) -> dict[str, Any]:
    """The point of a policy in one of the paper's three scenarios."""
    return {"policy": policy, "scene": scene, "load": load}


def loads(study: Study) -> Sequence[float]:
    """The loads of the study, which the paper does not give."""
    return sorted(study.axes["load"])


def over_loads(
    study: Study, what: str, setting: str, part: Callable[[float], Part], paper: str = ""
) -> Part:
    """The comparison at each load."""
    return over(what, setting, "the load", {f"{x:g}": part(x) for x in loads(study)}, paper)


def falls(study: Study, metric: str, unit: str, factor: float = 1.0) -> Iterator[Part]:
    """Scenario by scenario, the metric below that of the scenario before."""
    for policy in POLICIES:
        for less, more in (("S2", "S1"), ("S3", "S2")):
            yield ordered(study, metric, (policy, less), (policy, more), policy, unit, factor)


def in_every_scene(
    study: Study, metric: str, unit: str, factor: float = 1.0, first: str = "AFCFS"
) -> Iterator[Part]:
    """One policy below the other, scenario by scenario."""
    second = next(policy for policy in POLICIES if policy != first)
    for scene in SCENES:
        yield ordered(study, metric, (first, scene), (second, scene), scene, unit, factor)


def ordered(
    study: Study,
    metric: str,
    less: tuple[str, str],
    more: tuple[str, str],
    setting: str,
    unit: str,
    factor: float,
) -> Part:
    """Is the metric below that of another policy or scenario, at each load?"""
    names = [f"{policy} {scene}" for policy, scene in (less, more)]

    def part(load: float) -> Part:
        first, second = at(*less, load), at(*more, load)
        return below(study, metric, first, second, setting=setting, unit=unit, factor=factor)

    return over_loads(study, f"{names[0]} below {names[1]}", setting, part)


def response(study: Study) -> Iterator[Part]:
    """GM-1: lower from scenario to scenario, and AFCFS below LGFS in each."""
    yield from falls(study, "response_time_mean", "s")
    yield from in_every_scene(study, "response_time_mean", "s")


def utilization(study: Study) -> Iterator[Part]:
    """GM-2: it rises from scenario to scenario, AFCFS above LGFS, and the paper's levels."""
    for policy in POLICIES:
        for less, more in (("S1", "S2"), ("S2", "S3")):
            yield ordered(study, UTILIZATION, (policy, less), (policy, more), policy, "%", 1.0)
    for scene in SCENES[:2]:
        yield ordered(study, UTILIZATION, ("LGFS", scene), ("AFCFS", scene), scene, "%", 1.0)
    for (policy, scene), level in UTILIZATIONS.items():
        yield at_level(study, policy, scene, level)


def at_level(study: Study, policy: str, scene: str, level: float) -> Part:
    """Is the utilisation at the paper's level, at each load?"""
    what = f"{policy} at {level:g} % (within {LEVEL:g} points)"
    region = Region(level - LEVEL, level + LEVEL)

    def part(load: float) -> Part:
        where = at(policy, scene, load)
        return within(study, UTILIZATION, where, region, what=what, setting=scene, unit="%")

    return over_loads(study, what, scene, part, f"{level:g} %")


def capacity(study: Study) -> Iterator[Part]:
    """GM-3: lower from scenario to scenario, and AFCFS below LGFS in each."""
    yield from falls(study, LOSS, "%")
    yield from in_every_scene(study, LOSS, "%")


def migrations(study: Study) -> Iterator[Part]:
    """GM-4: local and external ones together."""
    for policy in POLICIES:
        yield ordered(study, MIGRATIONS, (policy, "S3"), (policy, "S2"), policy, "migrations", 1.0)


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 2 to 4 at one load, and Fig. 4 over all of them."""
    if MAIN not in studies.found:
        return
    study = studies.found[MAIN]
    load = SHOWN_LOAD if SHOWN_LOAD in loads(study) else loads(study)[0]
    named = [
        (f"{policy} {scene}", at(policy, scene, load)) for scene in SCENES for policy in POLICIES
    ]
    caption = f"GM Fig. 2 with our data: average response time of the jobs executed, load {load:g}."
    labels = Labels("gm-figure-2", caption, "jobs executed", "average response time (s)")
    yield from mean_courses(labels, study, "response_time", "jobs", named)
    caption = f"GM Fig. 3 with our data: utilisation by interaction, load {load:g}."
    axes = ("number of interactions", "utilisation (%)")
    labels = Labels("gm-figure-3", caption, *axes)
    yield from mean_courses(labels, study, "utilization_percent", "interactions", named)
    caption = f"GM Fig. 4 with our data: loss of capacity, load {load:g}."
    labels = Labels("gm-figure-4", caption, "scenario", "loss of capacity (%)")
    wheres = [{**where, "load": load} for where in points("policy", POLICIES)]
    yield from along_axis(labels, study, LOSS, "scene", wheres)
    if len(loads(study)) > 1:
        for name, metric, label in (
            ("loss", LOSS, "loss of capacity (%)"),
            ("utilization", UTILIZATION, "utilisation (%)"),
        ):
            caption = f"GM, over the load, which the paper leaves open: {label}."
            labels = Labels(f"gm-load-{name}", caption, "load", label, log_x=True)
            pairs = [{"policy": p, "scene": s} for s in SCENES for p in POLICIES]
            yield from along_axis(labels, study, metric, "load", pairs)


PAPER = Paper(
    "GM",
    "Gangs with migration",
    Source(
        "Analysis of Scheduling Algorithms with Migration Strategies in Distributed Systems",
        "Francisca Aparecida P. Pinto, Chesley B. Chaves, Lucas G. Leite, Francisco Herbert L. "
        "Vasconcelos, Giovanni C. Barroso",
        2014,
        "",
        "ICNS 2014: The Tenth International Conference on Networking and Services, pages 12-17; "
        "ISBN 978-1-61208-330-8",
    ),
    "Gangs of tasks wait in the queues of the processors of two clusters under AFCFS or LGFS. "
    "Scenario S1 is without migration, S2 with it, S3 with it and a Local Dispatcher that knows "
    "what runs.",
    (
        Claim(
            "GM-1",
            "average response time: S3 < S2 < S1, and AFCFS < LGFS in each",
            "Fig. 2; LGFS 1.063e6 in S2 and 1.076e6 in S3, which the text calls a reduction",
            (MAIN,),
            response,
        ),
        Claim(
            "GM-2",
            "utilisation rises from S1 over S2 to S3",
            "AFCFS 50 to 60 %, LGFS 42.5 to 50 %, then about 75 %, which the text calls 10 more",
            (MAIN,),
            utilization,
            f"at the paper's level: the interval within {LEVEL:g} points of it",
        ),
        Claim(
            "GM-3",
            "loss of capacity falls from S1 over S2 to S3, and is lower with AFCFS",
            "S1 30.4 % (AFCFS), 31.1 % (LGFS); S2 7.08 %, 24.3 %; S3 lower still",
            (MAIN,),
            capacity,
        ),
        Claim("GM-4", "aLD lowers the number of migrations", "text", (MAIN,), migrations),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
)
