"""Partial utility (PU): selections compared on four virtual organizations."""

from __future__ import annotations

from collections.abc import Iterator

from grid.lab.claims import Claim, Paper, Part, Settled, Source, Studies, Verdict
from grid.lab.comparisons import above, below, difference, not_run, ratio, wider_gap
from grid.lab.papers.pu_readings import LEFT_OUT, READINGS, WHY
from grid.lab.report.charts import Labels, bars
from grid.lab.report.style import Picture
from grid.lab.statistics import Region
from grid.lab.study import Study
from grid.lab.sweep_page import series_of

MAIN = "partial-utility"
PU, BU, MM = ({"scheduler": name} for name in ("PU", "BU", "MM"))
FAR = 0.8
"""Far below: at most so many times as high."""
NEARLY = Region(0.9, 1.0)
"""Slightly below: so many times as high."""
SLIGHTLY = Region(0.0, 0.1, open=True)
"""Slightly better balanced: by so much of Eq. 6, whose best value is 1."""
SMALLER = 'conclusions: "smaller job submission [...] times"'
SUCCESS = '"outperforms all the others in terms of [...] job\'s success" (4.3)'
UTILITY = "user_utility_of_jobs_that_ran"


def success(study: Study) -> Iterator[Part]:
    """PU-1: every job of every repetition, but for matchmaking; and PU above the others."""
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
    yield more_successful(study)


def more_successful(study: Study) -> Part:
    """Is PU above BU? Not where BU completes all jobs, since nothing is above that."""
    metric = "user_success_ratio"
    one = above(
        study, metric, PU, BU, setting="job's success", unit="% of jobs", factor=100, paper=SUCCESS
    )
    ratios = study.values(metric, BU)
    if isinstance(one, Settled) or min(ratios.values()) < 1.0:
        return one
    bound = "BU completes every job, as the paper says too, and no ratio is above 100 %"
    return Settled(one.what, one.setting, Verdict.IMPOSSIBLE, bound, one.unit, one.ours, one.paper)


def utility(study: Study) -> Iterator[Part]:
    """PU-2: the mean utility of the resources that the user's jobs ran on."""
    for higher, lower, words in (
        (PU, BU, '"outperforms the others"'), (PU, MM, '"outperforms the others"'),
        (BU, MM, '"followed by the BU scheduler"'),
    ):  # fmt: skip
        yield above(study, UTILITY, higher, lower, setting="", unit="utility", paper=words)


def submission(study: Study) -> Iterator[Part]:
    """PU-3: PU above each of the others; and so are the jobs that it forwards, the reason given.

    The conclusions say the opposite of the times, so half of those sub-claims cannot hold together.
    """
    time = "submission_time_mean"
    for other in (BU, MM):
        yield above(
            study, time, PU, other, setting="submission time", unit="s",
            paper='"higher submission time" (4.3)',
        )  # fmt: skip
        yield below(study, time, PU, other, setting="submission time", unit="s", paper=SMALLER)
    for other in (BU, MM):
        yield above(
            study, "jobs_forwarded", PU, other, setting="jobs that are forwarded", unit="jobs",
            paper='our reading of "due to the fact that jobs may be forwarded"',
        )  # fmt: skip


def execution(study: Study) -> Iterator[Part]:
    """PU-4: below both; far below one and slightly below the other."""
    metric = "execution_time_mean"
    for other, words in ((MM, "way better"), (BU, "slightly better")):
        yield below(study, metric, PU, other, setting="", unit="s", paper=words)
    yield ratio(
        study, metric, PU, MM, Region(high=FAR), what=f"PU at most {FAR:g} times MM",
        setting="far below", paper="way better",
    )  # fmt: skip
    yield ratio(
        study, metric, PU, BU, NEARLY, what=f"PU {NEARLY.low:g} to {NEARLY.high:g} times BU",
        setting="only slightly below", paper="slightly better",
    )  # fmt: skip
    yield wider_gap(
        study, metric, lambda other: (PU, {"scheduler": other}), "MM", "BU",
        what="the gap to MM is wider than that to BU", setting="far and slightly", unit="s",
        paper="way better and slightly better",
    )  # fmt: skip


def balance(study: Study) -> Iterator[Part]:
    """PU-5: the load balance of Eq. 6 above each of the others', above BU's by little."""
    for other in (BU, MM):
        yield above(
            study, "load_balance", PU, other, setting="better", unit="Eq. 6",
            paper='"a more well-balanced grid" (conclusions)',
        )  # fmt: skip
    yield difference(
        study, "load_balance", PU, BU, SLIGHTLY,
        what=f"PU above BU by at most {SLIGHTLY.high:g}", setting="by little", unit="Eq. 6",
        paper='"slightly more balanced" (abstract)',
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
        Claim(
            "PU-1",
            "PU and BU complete every job; MM rejects some; PU is above the others",
            "Fig. 3",
            (MAIN,),
            success,
            beside={"jobs_rejected": "jobs rejected, of 1400", "jobs_failed": "jobs failed"},
        ),
        Claim(
            "PU-2",
            "user utility: PU > BU > MM",
            "Fig. 4",
            (MAIN,),
            utility,
            beside={
                "user_utility": "utility, rejected jobs count 0",
                "user_utility_one_minus_root": "Eq. 3 to the letter",
            },
        ),
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
            f"far below: at most {100 * FAR:g} % of the other's time; slightly below: between "
            f"{100 * NEARLY.low:g} and {100 * NEARLY.high:g} % of it",
            {
                "wait_mean": "wait, mean (s)",
                "response_time_mean": "submission to end, mean (s)",
            },
        ),
        Claim(
            "PU-5",
            "load balance: slightly better with PU",
            "abstract and conclusions; no figure",
            (MAIN,),
            balance,
            f"slightly: above BU's by no more than {SLIGHTLY.high:g}",
            {"wait_mean": "wait, mean (s)", "utilization": "utilisation"},
        ),
    ),
    figures,
    READINGS,
    WHY,
    LEFT_OUT,
    gives_confidence=True,
)
