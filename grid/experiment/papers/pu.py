"""Partial utility (PU): selections compared on four virtual organizations."""

from __future__ import annotations

from collections.abc import Iterator

from grid.experiment.claims import Claim, Paper, Part, Settled, Source, Studies, Verdict
from grid.experiment.comparisons import below, close, not_run, ratio, wider_gap
from grid.experiment.papers.pu_readings import LEFT_OUT, READINGS, WHY
from grid.experiment.statistics import Region
from grid.experiment.study import Study
from grid.experiment.sweep_page import series_of
from grid.report.charts import Labels, bars
from grid.report.style import Picture

MAIN = "partial-utility"
PU, BU, MM = ({"scheduler": name} for name in ("PU", "BU", "MM"))
FAR = 0.8
"""Far below: at most so many times as high."""
SLIGHTLY = 0.1
"""Slightly better balanced: by at most so much of Eq. 6, whose best value is 1."""


def success(study: Study) -> Iterator[Part]:
    """PU-1: every job of every repetition, but for matchmaking."""
    metric = "user_success_ratio"
    for where in (PU, BU):
        what = f"{where['scheduler']} completes every job of every repetition"
        ratios = study.values(metric, where)
        if not ratios:
            yield not_run(study, metric, [where], what, "")
            continue
        least = min(ratios.values())
        verdict = Verdict.HOLDS if least == 1.0 else Verdict.CONTRADICTED
        measured = f"counted: {len(ratios)} repetitions, {100 * least:.4g} % in the worst"
        yield Settled(what, "", verdict, measured, "% of jobs", f"{100 * least:.4g}", "100 %")
    yield below(
        study, metric, MM, PU, setting="rejects some", unit="% of jobs", factor=100,
        paper="less than all",
    )  # fmt: skip


def utility(study: Study) -> Iterator[Part]:
    """PU-2: the mean utility of the resources that the user's jobs ran on."""
    for lower, higher in ((BU, PU), (MM, BU)):
        yield below(
            study, "user_utility_of_jobs_that_ran", lower, higher, setting="", unit="utility",
            paper="lower (Fig. 4)",
        )  # fmt: skip


def submission(study: Study) -> Iterator[Part]:
    """PU-3: PU above each of the others; and so are the jobs that it forwards, the reason given."""
    for other in (BU, MM):
        yield below(
            study, "submission_time_mean", other, PU, setting="submission time", unit="s",
            paper="lower (Fig. 5)",
        )  # fmt: skip
    for other in (BU, MM):
        yield below(
            study, "jobs_forwarded", other, PU, setting="jobs that are forwarded", unit="jobs",
            paper="fewer: PU's time is higher since jobs may be forwarded",
        )  # fmt: skip


def execution(study: Study) -> Iterator[Part]:
    """PU-4: below both; far below one and slightly below the other."""
    metric = "execution_time_mean"
    for other in (MM, BU):
        yield below(study, metric, PU, other, setting="", unit="s", paper="higher (Fig. 6)")
    yield ratio(
        study, metric, PU, MM, Region(high=FAR), what=f"PU at most {FAR:g} times MM",
        setting="far below", paper="way better",
    )  # fmt: skip
    yield ratio(
        study, metric, PU, BU, Region(low=FAR), what=f"PU at least {FAR:g} times BU",
        setting="only slightly below", paper="slightly better",
    )  # fmt: skip
    yield wider_gap(
        study, metric, lambda other: (PU, {"scheduler": other}), "MM", "BU",
        what="the gap to MM is wider than that to BU", setting="far and slightly", unit="s",
    )  # fmt: skip


def balance(study: Study) -> Iterator[Part]:
    """PU-5: the load balance of Eq. 6 above each of the others', by little."""
    for other in (BU, MM):
        yield below(study, "load_balance", other, PU, setting="better", unit="Eq. 6")
        yield close(
            study, "load_balance", PU, other, SLIGHTLY, setting="by little", unit="Eq. 6",
            paper="slightly more balanced",
        )  # fmt: skip


def figures(studies: Studies) -> Iterator[Picture]:
    """Fig. 3 to 6."""
    if MAIN not in studies.found:
        return
    study = studies.found[MAIN]
    for number, metric, label in (
        (3, "user_success_ratio", "user success ratio"),
        (4, "user_utility_of_jobs_that_ran", "user utility"),
        (5, "submission_time_mean", "submission time (s)"),
        (6, "execution_time_mean", "execution time (s)"),
    ):
        points = [PU, BU, MM]
        one = series_of(study, metric, "", [where["scheduler"] for where in points], points)
        if one is not None:
            caption = f"PU Fig. {number} with our data: {label}."
            yield bars(Labels(f"pu-figure-{number}", caption, "scheduler", label), [one])


PAPER = Paper(
    "PU",
    "Partial utility",
    Source(
        "A decentralized utility-based grid scheduling algorithm",
        "João Vasques, Luís Veiga",
        2013,
        "10.1145/2480362.2480480 (its public record; the text gives no DOI)",
        "28th Annual ACM Symposium on Applied Computing (SAC 2013), pages 619-624; title, authors "
        "and year from its public record, for the text that we have begins with the abstract",
    ),
    "Local Schedulers of four virtual organizations send each job to the resource of the highest "
    "partial utility, and forward it between each other; binary utility and matchmaking are the "
    "comparison.",
    (
        Claim("PU-1", "PU and BU complete every job; MM rejects some", "Fig. 3", (MAIN,), success),
        Claim("PU-2", "user utility: PU > BU > MM", "Fig. 4", (MAIN,), utility),
        Claim(
            "PU-3",
            "submission time: PU is the highest, since jobs are forwarded",
            'Fig. 5; the conclusions say the opposite: "smaller job submission and execution '
            'times"',
            (MAIN,),
            submission,
        ),
        Claim(
            "PU-4",
            "execution time: PU far below MM, slightly below BU",
            "Fig. 6",
            (MAIN,),
            execution,
            f"far: at most {FAR:g} times; slightly: at least {FAR:g} times, and below",
        ),
        Claim(
            "PU-5",
            "load balance: slightly better with PU",
            "abstract and conclusions",
            (MAIN,),
            balance,
            f"slightly: better, and the interval within ± {SLIGHTLY:g}",
        ),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
)
