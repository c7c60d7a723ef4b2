"""What CS2 leaves open, as data: readings, why verdicts come out so, what is left out."""

from __future__ import annotations

from grid.experiment.readings import Other, Reading, View

MAIN, TIMING, SCALING = "convergent-2", "convergent-2-timing", "convergent-2-scaling"
QUALITY = ("CS2-1", "CS2-2", "CS2-3", "CS2-4")
PLAN = "plan_seconds_mean_waiting"


def _all(reading: str) -> dict[str, View]:
    """The runs of all schedulers under a reading of the jobs or machines."""
    return {MAIN: View("convergent-2-readings", {"reading": reading})}


def _some(reading: str) -> dict[str, View]:
    """The runs of the backfillings under another reading; the others as in the main experiment."""
    return {MAIN: View("convergent-2-backfilling", {"reading": reading}, rest="scheduler")}


def _timed(metric: str) -> dict[str, View]:
    return {name: View(name, metrics={PLAN: metric}) for name in (TIMING, SCALING)}


READINGS = (
    Reading(
        "deadline [25-150]",
        "a percentage: submission + estimate x (1 + U / 100), on the job's reference machine",
        "A number of seconds would be 1 to 30 % of a job's estimate; as slack it would be less "
        "than what machines differ by.",
        (
            Other("seconds after the estimated end", _all("deadline in seconds")),
            Other("a percentage of the estimate alone", _all("deadline of the estimate alone")),
        ),
        QUALITY,
        "workload setting deadline: beyond_estimate",
    ),
    Reading(
        "the farm",
        "machines drawn anew for every repetition",
        'The text says "for each simulation, we randomly generated a list of jobs and machines".',
        (Other("one farm for all repetitions", _all("one farm")),),
        QUALITY,
        "machine setting farm: null; the makespan by farm is in the figure below",
    ),
    Reading(
        "late jobs",
        "of the jobs that have a deadline",
        "A job without a deadline cannot be late.",
        (
            Other(
                'of all jobs ("percentage of jobs executed")',
                {MAIN: View(MAIN, metrics={"late_percent": "late_percent_of_all"})},
            ),
        ),
        ("CS2-1", "CS2-6"),
        "metric late_percent",
    ),
    Reading(
        "priority of Flexible backfilling",
        "the largest element of a job's row of the matrix",
        "By its largest element the paper's own matching ranks a job; no text says how a row "
        "becomes a number.",
        (Other("the mean of the row", _some("Flexible by the mean")),),
        ("CS2-1", "CS2-2", "CS2-4"),
        "policy setting row: largest",
        "Before, the mean was the only one, taken over from C07 4.2.",
    ),
    Reading(
        "backfilling and preemption",
        "backfilling does not preempt",
        '"CS 2.0 versions, which supports the preemption feature, require more [time] than the '
        'backfilling-based algorithms": so these do not support it.',
        (
            Other(
                'baselines preempt ("It exploits the jobs preemptive feature to free resources to '
                'execute first new submitted job with an earliest deadline")',
                lacking="neither policy can preempt here, and the text gives no rule by which it "
                "would choose whom to preempt; the sentence is the one on EDF in the authors' "
                "paper of 2007. So what preemption alone gives CS 2.0 is not known",
            ),
        ),
        ("CS2-1", "CS2-2", "CS2-4", "CS2-5"),
        "policies easy and flexible",
    ),
    Reading(
        "copies of a licence",
        "floor(ratio x machines on which it is usable); jobs that share a machine share a copy; a "
        "suspended job holds none",
        '"When more jobs require the same license and are executed on the same machine, only one '
        'license copy is accounted."',
        (
            Other(
                "a copy a job",
                lacking="the clusters count copies by machine and have no setting to count them "
                "by job; the quoted sentence leaves no doubt",
            ),
        ),
        QUALITY,
        "grid/cluster/general/licenses.py",
    ),
    Reading(
        "preemption",
        "on its own machine a job goes on; on another it starts again, unless it is checkpointable",
        "Suspend/resume is a machine's, checkpoint/restart a job's (section III).",
        (),
        QUALITY,
        "preemption of the cluster",
    ),
    Reading(
        'usage "near 100 %"',
        "over the time in which jobs still arrive; near: 95 % or more",
        "Eq. 15 is of the whole simulation, at whose end the last jobs run alone whatever the "
        "scheduler does.",
        (
            Other(
                "to the last completion",
                {MAIN: View(MAIN, metrics={"machine_usage_arriving": "machine_usage"})},
            ),
        ),
        ("CS2-3",),
        "metric machine_usage_arriving",
        "Before, usage to the last completion was judged, and its percentage compared with 1.0. "
        "Then the margin ended at 100 %, which no usage passes but intervals of high usages do: "
        "these were undecided for that alone, and after that was seen it became 95 % or more.",
    ),
    Reading(
        "licence usage",
        "Eq. 18 over the whole simulation",
        "So the equation; licences are the claim's point at contention, not in the drain.",
        (
            Other(
                "while jobs still arrive",
                {MAIN: View(MAIN, metrics={"license_usage": "license_usage_arriving"})},
            ),
        ),
        ("CS2-4",),
        "metric license_usage",
        'The margin for "efficiently" ended at 100 % at first; it is 90 % or more, as that of the '
        "machines is 95 % or more.",
    ),
    Reading(
        "time for a plan (Fig. 6, 8)",
        "the mean time of the plans that were made while a job waited",
        'The figures are of "the average time spent to build a new scheduling plan"; an event at '
        "which a time-driven variant builds none is not one.",
        (
            Other(
                "all events count, those without anything to do included",
                _timed("plan_seconds_mean"),
            ),
            Other("the longest plan of a run", _timed("plan_seconds_max")),
        ),
        ("CS2-5", "CS2-6", "CS2-7"),
        "metric plan_seconds_mean_waiting",
        "Before, means were over all events, and the time-driven variants' over mostly idle ones.",
    ),
)

WHY = {
    "CS2-1": "Where Flexible backfilling orders its queue by CS 2.0's own priorities it has most "
    "of what CS 2.0 has. The gap is widest where deadlines can still be met: at Ta = 1 nearly all "
    "jobs are late under every policy. At Ta = 12 contention still grows: 1.38 times as many jobs "
    "in the last quarter of the arrivals as in the second.",
    "CS2-2": "At Ta = 4 no schedule can come near 1, see the bound. At 6 to 12 s the slowdown is "
    "2.29 to 1.39 and no bound forbids less; why is not known.",
    "CS2-3": "CS 2.0's usage falls from 92.9 % at Ta = 6 to 82.5 % at 12, and EASY's is 1.4 to "
    "4.9 points higher from Ta = 4 on; why is not known.",
    "CS2-4": "At Ta = 8 to 12 all six use 58 to 74 % of the licences, so none is at 90 %, which is "
    'our margin for "efficiently". Usage rises with Ta, as the paper says; why it stays lower is '
    "not known.",
    "CS2-5": "Flexible backfilling computes the same heuristics as CS 2.0 and plans reservations "
    "over all waiting jobs. In compiled code that costs as much as sorting pairs.",
    "CS2-6": "1024 classes separate nearly all pairs of the matrix, so both sortings give nearly "
    "the same plans. Differences in quality are within a few tenths of a per cent.",
    "CS2-7": "Plan time is dominated by the matrix, which grows with the number of jobs for both "
    "sortings alike.",
}
"""Why a claim is contradicted where it is; shown where it is."""

LEFT_OUT = (
    "Repetitions: the paper has 20, here there are 16, and 5 of plan times, for time alone.",
    "The numbers of Fig. 2 to 7, which the text that we have lacks.",
    "How run times relate to estimates: they are equal here.",
    "What a preemption costs beside the work that is lost: nothing here.",
    '"The weights were hand-tuned": those of the footnote are taken, none of ours.',
)
