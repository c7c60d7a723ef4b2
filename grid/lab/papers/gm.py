"""Gangs with migration (GM): two clusters, with and without migration and adaptive dispatching."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from grid.lab.claims import Claim, Paper, Part, Source, Studies
from grid.lab.comparisons import (
    above,
    at_most_times,
    below,
    compared,
    difference,
    not_run,
    over,
    ratio,
    together,
    within,
)
from grid.lab.papers.drawing import along_axis, mean_courses
from grid.lab.papers.gm_readings import LEFT_OUT, READINGS, WHY
from grid.lab.papers.points import points
from grid.lab.report.charts import Labels
from grid.lab.report.style import Picture
from grid.lab.statistics import BELOW_ZERO, Region
from grid.lab.study import Study

MAIN = "gang-migration"
POLICIES = ("AFCFS", "LGFS")
SCENES = ("S1", "S2", "S3")
MIGRATIONS = "migrations_local+migrations_external"
SHOWN_LOAD = 0.55
"""The figures are drawn at this load, or at the only one that there is."""
LEVEL = 5.0
"""A utilisation or a loss is at the paper's level within so many points."""
CONSIDERABLE = 0.8
"""A considerable, or fairly significant, reduction: to at most so many times as much."""
SMALL = Region(0.9, 1.0)
"""A small reduction: to so many times as much."""
MORE = Region(10.0 - LEVEL, 10.0 + LEVEL)
"""An increase of 10 %, in points of utilisation."""
UTILIZATIONS = {
    ("AFCFS", "S1"): 50.0, ("AFCFS", "S2"): 60.0, ("AFCFS", "S3"): 75.0,
    ("LGFS", "S1"): 42.5, ("LGFS", "S2"): 50.0, ("LGFS", "S3"): 75.0,
}  # fmt: skip
UTILIZATION = "utilization_shown_percent"
"""Eq. 5 over the part of the run that Fig. 3 shows; see `grid.lab.record`."""
RISES_OVER = ("utilization_percent[0.1333:0.5333]", "utilization_percent[0.5333:0.8]")
"""By interaction: from 400 to 1600 of 3000, and from 1600 to 2400."""
LOSS = "loss_of_capacity_in_clusters"
LOSSES = {
    ("AFCFS", "S1"): 30.4, ("AFCFS", "S2"): 7.08, ("LGFS", "S1"): 31.1, ("LGFS", "S2"): 24.3,
}  # fmt: skip
RESPONSE, FIRST_HALF = "response_time_mean", "response_time_of_first_half_mean"


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
    return over(what, setting, "the load", {f"load {x:g}": part(x) for x in loads(study)}, paper)


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
    factor: float = 1.0,
    paper: str = "lower",
) -> Part:
    """Is the metric below that of another policy or scenario, at each load?"""
    names = [f"{policy} {scene}" for policy, scene in (less, more)]

    def part(load: float) -> Part:
        first, second = at(*less, load), at(*more, load)
        return below(study, metric, first, second, setting=setting, unit=unit, factor=factor)

    return over_loads(study, f"{names[0]} below {names[1]}", setting, part, paper)


def response(study: Study) -> Iterator[Part]:
    """GM-1: lower from scenario to scenario, much so at first, and AFCFS below LGFS in each.

    It grows with the number of jobs executed, and aLD shortens the wait, too (conclusions).
    """
    yield from falls(study, RESPONSE, "s")
    yield from in_every_scene(study, RESPONSE, "s")
    for scene in SCENES:
        yield ordered(
            study, FIRST_HALF, ("AFCFS", scene), ("LGFS", scene),
            f"{scene}, the first half of the jobs executed", "s",
            paper='"the lowest ART of all amounts of jobs"',
        )  # fmt: skip
    yield small_reduction(study)
    for policy in POLICIES:
        yield considerable(study, RESPONSE, policy, "s", "a fairly significant reduction")
        yield ordered(study, "wait_mean", (policy, "S3"), (policy, "S2"), "waiting time", "s")
        for scene in SCENES:
            yield growing(study, policy, scene)


def small_reduction(study: Study) -> Part:
    """Is the response time of LGFS in S3 slightly below that in S2, at each load?"""
    what = f"LGFS S3 {SMALL.low:g} to {SMALL.high:g} times S2"

    def part(load: float) -> Part:
        first, second = at("LGFS", "S3", load), at("LGFS", "S2", load)
        return ratio(study, RESPONSE, first, second, SMALL, what=what, setting="LGFS")

    return over_loads(study, what, "LGFS", part, '"a small reduction"; its figures rise by 1.2 %')


def considerable(study: Study, metric: str, policy: str, unit: str, paper: str) -> Part:
    """Is the metric in S2 far below that in S1, at each load?"""
    what = f"{policy} S2 at most {CONSIDERABLE:g} times S1"

    def part(load: float) -> Part:
        first, second = at(policy, "S2", load), at(policy, "S1", load)
        return at_most_times(
            study, metric, first, second, CONSIDERABLE, setting=policy, unit=unit
        )  # fmt: skip

    return over_loads(study, what, policy, part, paper)


def growing(study: Study, policy: str, scene: str) -> Part:
    """Is the response time of the jobs executed first below that of all, at each load?"""
    what = f"{policy}: the first half of the jobs executed below all"

    def part(load: float) -> Part:
        where = at(policy, scene, load)
        first, every = study.values(FIRST_HALF, where), study.values(RESPONSE, where)
        values = {seed: first[seed] - every[seed] for seed in first if seed in every}
        if not values:
            return not_run(study, FIRST_HALF, [where], what, scene)
        measured = " against ".join(
            f"{sum(side[seed] for seed in values) / len(values):,.0f}" for side in (first, every)
        )
        return compared(values, BELOW_ZERO, what, scene, "s", measured)

    return over_loads(study, what, scene, part, "grows with the number of jobs executed")


def utilization(study: Study) -> Iterator[Part]:
    """GM-2: it rises from scenario to scenario, AFCFS above LGFS, and the paper's levels."""
    for policy in POLICIES:
        for less, more in (("S1", "S2"), ("S2", "S3")):
            yield higher(study, (policy, more), (policy, less), policy)
    for scene in SCENES[:2]:
        yield higher(study, ("AFCFS", scene), ("LGFS", scene), scene)
    levels = [at_level(study, UTILIZATION, *key, level) for key, level in UTILIZATIONS.items()]
    yield from levels
    yield together("all six levels at one load", "", levels, "one trace, so one load")
    for policy in POLICIES:
        yield ten_more(study, policy)
    yield rising_in_between(study)


def higher(study: Study, more: tuple[str, str], less: tuple[str, str], setting: str) -> Part:
    """Is the utilisation above that of another policy or scenario, at each load?"""
    names = [f"{policy} {scene}" for policy, scene in (more, less)]

    def part(load: float) -> Part:
        first, second = at(*more, load), at(*less, load)
        return above(study, UTILIZATION, first, second, setting=setting, unit="%")

    return over_loads(study, f"{names[0]} above {names[1]}", setting, part, "higher")


def ten_more(study: Study, policy: str) -> Part:
    """Is the utilisation in S3 about 10 points above that in S2, at each load?"""
    what = f"{policy} S3 above S2 by {MORE.low:g} to {MORE.high:g} points"

    def part(load: float) -> Part:
        first, second = at(policy, "S3", load), at(policy, "S2", load)
        return difference(
            study, UTILIZATION, first, second, MORE, what=what, setting=policy, unit="%"
        )

    words = '"an increase of 10 % over S2", which its levels of 60, 50 and 75 % contradict'
    return over_loads(study, what, policy, part, words)


def rising_in_between(study: Study) -> Part:
    """Is the utilisation of LGFS in S1 higher in interactions 1600 to 2400 than from 400 on?"""
    what, setting = "LGFS: interactions 1600 to 2400 above 400 to 1600", "S1"

    def part(load: float) -> Part:
        where = at("LGFS", "S1", load)
        before, then = (study.values(metric, where) for metric in RISES_OVER)
        values = {seed: then[seed] - before[seed] for seed in then if seed in before}
        if not values:
            return not_run(study, RISES_OVER[0], [where], what, setting)
        measured = " against ".join(
            f"{sum(side[seed] for seed in values) / len(values):.1f}" for side in (then, before)
        )
        return compared(values, Region(low=0.0, open=True), what, setting, "%", measured)

    words = '"an increase in the range from 1600-2400", taken as against 400 to 1600'
    return over_loads(study, what, setting, part, words)


def at_level(study: Study, metric: str, policy: str, scene: str, level: float) -> Part:
    """Is the metric, in per cent, at the paper's level, at each load?"""
    what = f"{policy} at {level:g} % (within {LEVEL:g} points)"
    region = Region(level - LEVEL, level + LEVEL)

    def part(load: float) -> Part:
        where = at(policy, scene, load)
        return within(study, metric, where, region, what=what, setting=scene, unit="%")

    return over_loads(study, what, scene, part, f"{level:g} %")


def capacity(study: Study) -> Iterator[Part]:
    """GM-3: lower from scenario to scenario, much so at first, AFCFS below LGFS; its levels."""
    yield from falls(study, LOSS, "%")
    yield from in_every_scene(study, LOSS, "%")
    for policy in POLICIES:
        yield considerable(study, LOSS, policy, "%", "a considerable decrease")
    yield ordered(
        study, LOSS, ("AFCFS", "S3"), ("LGFS", "S2"), "AFCFS with aLD, LGFS without", "%",
        paper="less fragmentation (conclusions)",
    )  # fmt: skip
    levels = [at_level(study, LOSS, *key, level) for key, level in LOSSES.items()]
    yield from levels
    yield together("all four levels at one load", "", levels, "one trace, so one load")


def migrations(study: Study) -> Iterator[Part]:
    """GM-4: local and external ones together."""
    for policy in POLICIES:
        yield ordered(study, MIGRATIONS, (policy, "S3"), (policy, "S2"), policy, "migrations")


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
            "average response time: S3 < S2 < S1, S2 much below S1, and AFCFS < LGFS in each; it "
            "grows with the jobs executed, and aLD shortens the wait, too",
            "Fig. 2; LGFS 1.063e6 in S2 and 1.076e6 in S3, which the text calls a reduction",
            (MAIN,),
            response,
            f"fairly significant: at most {CONSIDERABLE:g} times; small: {SMALL.low:g} to "
            f"{SMALL.high:g} times. The first half of the jobs executed are those that complete "
            "first, as on the x-axis of Fig. 2; by submission it was not measured",
            {"wait_mean": "wait, mean (s)", "interruptions": "interruptions, by 150 priority jobs"},
        ),
        Claim(
            "GM-2",
            "utilisation rises from S1 over S2 to S3",
            "AFCFS 50 to 60 %, LGFS 42.5 to 50 %, then about 75 %, which the text calls 10 more",
            (MAIN,),
            utilization,
            f"at the paper's level: the interval within {LEVEL:g} points of it; an increase of "
            f"10 %: by {MORE.low:g} to {MORE.high:g} points. A level that is missed from below at "
            "one load and from above at the next is passed between them, and undecided",
            {
                "utilization_percent": "over the whole run (%)",
                "utilization_percent[0.1333:0.8667]": "averaged over interactions (%)",
            },
        ),
        Claim(
            "GM-3",
            "loss of capacity falls from S1 over S2 to S3, and is lower with AFCFS",
            "S1 30.4 % (AFCFS), 31.1 % (LGFS); S2 7.08 %, 24.3 %; S3 lower still",
            (MAIN,),
            capacity,
            f"considerable: at most {CONSIDERABLE:g} times; at the paper's level: the interval "
            f"within {LEVEL:g} points of it",
            {"loss_of_capacity": "over the whole grid (%)"},
        ),
        Claim(
            "GM-4",
            "aLD lowers the number of migrations",
            "text",
            (MAIN,),
            migrations,
            "counted by gangs that move, within clusters and between them",
            {
                "migrations_local": "gangs, within clusters",
                "migrations_external": "gangs, between clusters",
                "tasks_migrated_local": "tasks, within clusters",
            },
        ),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
    gives_confidence=True,
)
