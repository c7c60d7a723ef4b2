"""Convergent Scheduling 2.0 (CS2): several jobs a machine, against two backfillings."""

from __future__ import annotations

from collections.abc import Iterator

from grid.experiment.bound import slowdown_bound
from grid.experiment.claims import (
    Check,
    Claim,
    Finding,
    Paper,
    Studies,
    Verdict,
    all_hold,
    along,
    below,
    difference,
    not_above,
    within,
)
from grid.experiment.papers.drawing import along_axis, mean_courses, points
from grid.experiment.study import Study
from grid.report.charts import Labels
from grid.report.style import Picture
from grid.scenario.workload import realize

MAIN, TIMING, SCALING = "convergent-2", "convergent-2-timing", "convergent-2-scaling"
AXIS = "interarrival"
QUICKSORT, TIMED, COUNTING, COUNTING_TIMED = points(
    "scheduler", ["CS 2.0", "CS 2.0 Td", "CS 2.0 Cs", "CS 2.0 Cs Td"]
)
OURS = [QUICKSORT, TIMED, COUNTING, COUNTING_TIMED]
EASY, FLEXIBLE = BASELINES = points("scheduler", ["EASY", "Flexible"])
ALL = [*BASELINES, *OURS]
CONTENDED = (1, 4)
LICENSES_CONTENDED = (1, 4, 6)
NEAR_ONE = 1.1
"""A mean slowdown up to here is called very close to 1."""
BOUNDED = 5
"""The bound is computed for so many repetitions: it takes seconds each."""
NEAR_FULL = 95.0
"""A usage from here on is called near 100 %."""
LONGEST_PLAN_S = 0.120
PLAN = "plan_seconds_max"
"""Jobs come so fast that all are in the system at once, in the longest of the plans."""


def at(where: dict[str, str], interarrival: int) -> dict[str, object]:
    """The point of a scheduler at a mean inter-arrival time."""
    return {**where, AXIS: interarrival}


def times(study: Study) -> list[int]:
    """The mean inter-arrival times of the study, in rising order."""
    return sorted(study.axes[AXIS])


def better_than_baselines(study: Study, metric: str) -> list[Check]:
    """CS 2.0 below both baselines, time by time."""
    return [
        below(study, metric, at(QUICKSORT, time), at(other, time))
        for time in times(study)
        for other in BASELINES
    ]


def late(study: Study) -> Finding:
    """CS2-1: below both at every time, and by most where jobs contend most."""
    checks = better_than_baselines(study, "late_percent")
    for other in BASELINES:
        gaps = {
            time: difference(study, "late_percent", at(other, time), at(QUICKSORT, time)).mean
            for time in times(study)
        }
        contended = [time for time in gaps if time in CONTENDED]
        rest = max((gap for time, gap in gaps.items() if time not in CONTENDED), default=0.0)
        for time in contended:
            name = other["scheduler"]
            text = f"at {time} {gaps[time]:.3g} points below {name}, elsewhere up to {rest:.3g}"
            checks.append(Check(text, gaps[time] > rest))
    return all_hold(checks, ours=f"late % {along(study, 'late_percent', AXIS, times(study), ALL)}")


def slowdown(study: Study) -> Finding:
    """CS2-2: below both baselines, and near one; impossible where the work itself forbids it."""
    checks = better_than_baselines(study, "slowdown_mean")
    lower = sum(check.holds for check in checks)
    later = [time for time in times(study) if time > 1]
    checks += [within(study, "slowdown_mean", at(QUICKSORT, time), 0.0, NEAR_ONE) for time in later]
    ours = along(study, "slowdown_mean", AXIS, times(study), ALL)
    told = f"very close means up to {NEAR_ONE:g}"
    bound = least_slowdown(study, later[0]) if later else 1.0
    if bound <= NEAR_ONE:
        return all_hold(checks, told, ours)
    reason = (
        f"at Ta = {later[0]} the jobs bring more work than the farm can do in time: no schedule at "
        f"all has a mean slowdown below {bound:.2f} there; CS 2.0 is below the baselines in "
        f"{lower} of {len(BASELINES) * len(times(study))} comparisons ({told})"
    )
    return Finding(Verdict.IMPOSSIBLE, ours, reason)


def least_slowdown(study: Study, time: int) -> float:
    """The mean over some repetitions of what no schedule can beat; one where nothing is known."""
    scenarios = study.scenarios(at(QUICKSORT, time))[:BOUNDED]
    bounds = [slowdown_bound(realize(one, study.name)[0]) or 1.0 for one in scenarios]
    return sum(bounds) / len(bounds) if bounds else 1.0


def machine_usage(study: Study) -> Finding:
    """CS2-3: Eq. 15 and 16."""
    checks = [
        within(study, "machine_usage", at(QUICKSORT, time), NEAR_FULL, 1.0) for time in times(study)
    ]
    ours = along(study, "machine_usage", AXIS, times(study), ALL)
    return all_hold(checks, f"near means from {NEAR_FULL:g} % on", f"% {ours}")


def license_usage(study: Study) -> Finding:
    """CS2-4: Eq. 17 and 18, above both baselines at the paper's three times."""
    checks = [
        below(study, "license_usage", at(other, time), at(QUICKSORT, time))
        for time in LICENSES_CONTENDED
        if time in times(study)
        for other in BASELINES
    ]
    ours = along(study, "license_usage", AXIS, times(study), ALL)
    return all_hold(checks, ours=f"% {ours}")


def plan_cost(study: Study) -> Finding:
    """CS2-5: the mean time of a plan against the baselines; mean and total among the four."""
    mean_s, total_s = "plan_seconds_mean", "plan_seconds_total"
    checks = []
    for time in times(study):
        for baseline in BASELINES:
            for one in OURS:
                checks.append(below(study, mean_s, at(baseline, time), at(one, time), 1000))
        for metric in (mean_s, total_s):
            for one in OURS[:3]:
                least = at(COUNTING_TIMED, time)
                checks.append(below(study, metric, least, at(one, time), 1000))
    ours = along(study, mean_s, AXIS, times(study), ALL, 1000)
    return all_hold(checks, ours=f"mean ms {ours}")


def sorting(study: Study, timing: Study) -> Finding:
    """CS2-6: better means fewer late jobs, or at least not more; faster is the mean plan."""
    checks = []
    for time in times(study):
        for fine, coarse in ((QUICKSORT, COUNTING), (TIMED, COUNTING_TIMED)):
            first, second = at(fine, time), at(coarse, time)
            checks.append(not_above(study, "late_percent", first, second))
            checks.append(below(timing, "plan_seconds_mean", second, first, 1000))
    ours = along(study, "late_percent", AXIS, times(study), OURS)
    plans = along(timing, "plan_seconds_mean", AXIS, times(study), OURS, 1000)
    return all_hold(checks, ours=f"late % {ours}. Mean ms a plan {plans}")


def scaling(study: Study) -> Finding:
    """CS2-7: the time of the longest plan, that with all jobs in the system."""
    numbers = sorted(study.axes["jobs"])
    checks = [
        within(study, PLAN, {**one, "jobs": jobs}, 0.0, LONGEST_PLAN_S, 1000)
        for jobs in numbers
        for one in OURS
    ]
    ours = along(study, PLAN, "jobs", [numbers[0], numbers[-1]], ALL, 1000)
    return all_hold(checks, ours=f"ms for the longest plan {ours}")


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 1 to 8."""
    time = "mean inter-arrival time (s)"
    if MAIN in studies.found:
        study = studies.of(MAIN)
        named = [(f"Ta = {value}", at(QUICKSORT, value)) for value in times(study)]
        caption = "CS2 Fig. 1 with our data: jobs in the system, under CS 2.0."
        labels = Labels("cs2-figure-1", caption, "", "jobs", over_time=True)
        yield from mean_courses(labels, study, "jobs_in_system", "time_s", named)
        for number, metric, label in (
            (2, "late_percent", "late jobs (%)"),
            (3, "slowdown_mean", "slowdown"),
            (4, "machine_usage", "machine usage (%)"),
            (5, "license_usage", "license usage (%)"),
        ):
            caption = f"CS2 Fig. {number} with our data: {label}."
            labels = Labels(f"cs2-figure-{number}", caption, time, label)
            yield from along_axis(labels, study, metric, AXIS, ALL)
    if TIMING in studies.found:
        for number, metric, label in (
            (6, "plan_seconds_mean", "time for a plan, mean (s)"),
            (7, "plan_seconds_total", "time for all plans (s)"),
        ):
            caption = f"CS2 Fig. {number} with our data: {label}."
            labels = Labels(f"cs2-figure-{number}", caption, time, label, log_y=True)
            yield from along_axis(labels, studies.of(TIMING), metric, AXIS, ALL)
    if SCALING in studies.found:
        caption = "CS2 Fig. 8 with our data: time for a plan by number of jobs."
        labels = Labels("cs2-figure-8", caption, "jobs", "time for a plan (s)")
        yield from along_axis(labels, studies.of(SCALING), PLAN, "jobs", ALL)


PAPER = Paper(
    "CS2",
    "Convergent Scheduling 2.0",
    (
        Claim(
            "CS2-1",
            "fewer late jobs than Flexible backfilling, and than EASY, most clearly at Ta = 1, 4",
            "Fig. 2",
            (MAIN,),
            late,
        ),
        Claim(
            "CS2-2",
            "slowdown lower than both; very close to 1 for Ta > 1",
            "Fig. 3",
            (MAIN,),
            slowdown,
        ),
        Claim("CS2-3", "machine usage stays near 100 %", "Fig. 4", (MAIN,), machine_usage),
        Claim("CS2-4", "better license usage at Ta = 1, 4, 6", "Fig. 5", (MAIN,), license_usage),
        Claim(
            "CS2-5",
            "planning costs more than backfilling; CS 2.0 Cs Td costs least of the four",
            "Fig. 6, 7",
            (TIMING,),
            plan_cost,
        ),
        Claim(
            "CS2-6",
            "quicksort gives the better schedules, counting sort the faster plans",
            "text",
            (MAIN, TIMING),
            sorting,
        ),
        Claim(
            "CS2-7",
            "time for a plan against the number of jobs, 100 to 1000",
            "Fig. 8, under 120 ms",
            (SCALING,),
            scaling,
        ),
    ),
    figures,
)
