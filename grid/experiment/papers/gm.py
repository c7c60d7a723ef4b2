"""Gangs with migration (GM): two clusters, with and without migration and adaptive dispatching."""

from __future__ import annotations

from collections.abc import Iterator

from grid.experiment.claims import Check, Claim, Finding, Paper, Studies, all_hold, below, ordered
from grid.experiment.papers.drawing import along_axis, mean_courses, points
from grid.experiment.study import Study
from grid.report.charts import Labels
from grid.report.style import Picture

MAIN = "gang-migration"
POLICIES = ("AFCFS", "LGFS")
SCENES = ("S1", "S2", "S3")
MIGRATIONS = "migrations_local+migrations_external"


def at(policy: str, scene: str) -> dict[str, str]:
    """The point of a policy in one of the paper's three scenarios."""
    return {"policy": policy, "scene": scene}


def in_every_scene(study: Study, metric: str, factor: float = 1.0) -> list[Check]:
    """AFCFS below LGFS, scenario by scenario."""
    return [below(study, metric, at("AFCFS", s), at("LGFS", s), factor) for s in SCENES]


def response(study: Study) -> Finding:
    """GM-1."""
    checks = [
        check
        for policy in POLICIES
        for check in ordered(
            study, "response_time_mean", [at(policy, scene) for scene in reversed(SCENES)]
        )
    ]
    return all_hold([*checks, *in_every_scene(study, "response_time_mean")])


def utilization(study: Study) -> Finding:
    """GM-2: that it rises; the paper's levels are those of its own unnamed trace."""
    checks = [
        check
        for policy in POLICIES
        for check in ordered(study, "utilization", [at(policy, s) for s in SCENES], 100)
    ]
    return all_hold(checks, "judged by its rise, for the levels depend on the load of the trace")


def capacity(study: Study) -> Finding:
    """GM-3: lower from scenario to scenario; AFCFS below LGFS in the first two."""
    metric = "loss_of_capacity"
    checks = [
        check
        for policy in POLICIES
        for check in ordered(study, metric, [at(policy, s) for s in reversed(SCENES)])
    ]
    checks += in_every_scene(study, metric)[:2]
    return all_hold(checks, cluster_by_cluster(study))


def cluster_by_cluster(study: Study) -> str:
    """The other reading of Eq. 6, which is not judged; see `grid.results.loss`."""
    found = []
    for policy in POLICIES:
        intervals = [study.interval("loss_of_capacity_in_clusters", at(policy, s)) for s in SCENES]
        figures = ", ".join(f"{one.mean:.1f}" for one in intervals if one is not None)
        found += [f"{policy} {figures} %"] if figures else []
    if not found:
        return ""
    return f"where idle processors count for gangs of the same cluster only: {'; '.join(found)}"


def migrations(study: Study) -> Finding:
    """GM-4: local and external ones together."""
    return all_hold([below(study, MIGRATIONS, at(p, "S3"), at(p, "S2")) for p in POLICIES])


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 2 to 4."""
    if MAIN not in studies.found:
        return
    study = studies.of(MAIN)
    named = [(f"{policy} {scene}", at(policy, scene)) for scene in SCENES for policy in POLICIES]
    caption = "GM Fig. 2 with our data: average response time of the jobs executed so far."
    labels = Labels("gm-figure-2", caption, "jobs executed", "response time (s)")
    yield from mean_courses(labels, study, "response_time", "jobs", named)
    caption = "GM Fig. 3 with our data: utilization over time, averaged over repetitions."
    labels = Labels("gm-figure-3", caption, "", "utilization", over_time=True)
    yield from mean_courses(labels, study, "utilization", "time_s", named)
    caption = "GM Fig. 4 with our data: loss of capacity."
    labels = Labels("gm-figure-4", caption, "scenario", "loss of capacity (%)")
    wheres = points("policy", POLICIES)
    yield from along_axis(labels, study, "loss_of_capacity", "scene", wheres)


PAPER = Paper(
    "GM",
    "Gangs with migration",
    (
        Claim(
            "GM-1",
            "average response time: S3 < S2 < S1, and AFCFS < LGFS in each",
            "Fig. 2",
            (MAIN,),
            response,
        ),
        Claim(
            "GM-2",
            "utilization rises from S1 over S2 to S3",
            "AFCFS 50 to 60 %, LGFS 42.5 to 50 %, then about 75 %",
            (MAIN,),
            utilization,
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
)
