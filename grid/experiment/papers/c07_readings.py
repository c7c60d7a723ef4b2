"""What C07 leaves open, as data: readings, why verdicts come out so, what is left out."""

from __future__ import annotations

from grid.experiment.readings import Other, Reading, View

MAIN = "convergent-2007"
TIMING, SCALING = "convergent-2007-timing", "convergent-2007-scaling"
QUALITY = ("C07-3", "C07-4", "C07-5", "C07-6")


def _all(reading: str) -> dict[str, View]:
    """The runs of all schedulers under a reading of the jobs or machines."""
    return {MAIN: View("convergent-2007-readings", {"reading": reading})}


def _some(experiment: str, reading: str) -> dict[str, View]:
    """The runs of the schedulers that a reading changes; the others as in the main experiment."""
    return {MAIN: View(experiment, {"reading": reading}, rest="scheduler")}


READINGS = (
    Reading(
        "deadline [25-150]",
        "a percentage: submission + estimate x (1 + U / 100), on the job's reference machine",
        "A number of seconds would be 2 to 15 % of the shortest and 1 to 5 % of the longest job, "
        "and a tenth of what machines differ by.",
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
        'The text says "for each simulation we randomly generated a list of jobs and machines".',
        (Other("one farm for all repetitions", _all("one farm")),),
        QUALITY,
        "machine setting farm: null",
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
        ("C07-3", "C07-4"),
        "metric late_percent",
    ),
    Reading(
        "f1 (Eq. 1)",
        "the words throughout: a machine on which the job meets its deadline is the better one",
        "By the formula f1 falls to MIN where the deadline cannot be met, so a hopelessly slow "
        "machine is valued like the fastest; the words around Eq. 1 say the opposite.",
        (Other("the formula throughout", _some("convergent-2007-f1", "formula")),),
        QUALITY,
        "policy setting f1: words",
        "Before, the urgency of a job followed the formula and its second term the words; a "
        "reading takes one of them throughout now.",
    ),
    Reading(
        'EDF: "decreasing order w.r.t. their deadline"',
        "earliest deadline first, jobs without a deadline last",
        "It is the algorithm's name, and the text on EDF has a priority that is inversely "
        "proportional to the deadline.",
        (
            Other(
                "jobs without a deadline first", _some("convergent-2007-edf", "no deadline first")
            ),
            Other("the literal order, latest first", _some("convergent-2007-edf", "latest first")),
        ),
        ("C07-3",),
        "policy edf, setting without_deadline: last",
    ),
    Reading(
        "variants without preemption (np)",
        "all jobs are planned, with a Delta of 800 for what runs",
        'The text: "we simulate jobs that are non preemptable by increasing the priority of the '
        'jobs being executed", by 800 (footnote 1).',
        (
            Other(
                "running jobs keep their machines, the rest is planned around them",
                _some("convergent-2007-np", "strict"),
            ),
        ),
        QUALITY,
        "policy setting non_preemptive: bonus",
        "Before, the strict one was the main reading, for a bonus of 800 does not hold a running "
        "job with certainty.",
    ),
    Reading(
        "use of licences (Table 1)",
        "use at the knapsack's own choice",
        "Table 1 is per choice; 82 to 89 % is out of reach of a farm that runs one job a machine.",
        (
            Other(
                "use realised on the farm (Eq. 17 and 18 of CS 2.0)",
                {"knapsack-choices": View("knapsack")},
            ),
        ),
        ("C07-1",),
        "experiment knapsack-choices",
        "Before, the use realised on the farm was judged.",
    ),
    Reading(
        "time for a plan (Fig. 7, 8)",
        "the mean time of the plans that were made while a job waited; both matchings as the paper "
        "describes them, by longest path trees",
        'The captions say "average scheduling times"; a plan without anything to do is none.',
        (
            Other(
                "all events count, those without anything to do included",
                {
                    name: View(name, metrics={"plan_seconds_mean_waiting": "plan_seconds_mean"})
                    for name in (TIMING, SCALING)
                },
            ),
            Other(
                "the longest plan of a run",
                {
                    name: View(name, metrics={"plan_seconds_mean_waiting": "plan_seconds_max"})
                    for name in (TIMING, SCALING)
                },
            ),
        ),
        ("C07-7",),
        "metric plan_seconds_mean_waiting; policy setting matching: mfs_paths",
        "Before, the longest plan of a run was judged, and the non-incremental matching was "
        "timed on scipy's assignment solver.",
    ),
    Reading(
        "priority of Flexible backfilling (BF-rm, BF-unrm)",
        "the mean of a job's row of the matrix",
        "By the mean section 4.2 values a job; no text says how a row becomes one number.",
        (Other("the largest element of the row", _some("convergent-2007-flexible", "largest")),),
        ("C07-3",),
        "policy setting row: mean",
    ),
    Reading(
        'usage "near 100 %"',
        "over the time in which jobs still arrive; near: 95 % or more",
        "After the last arrival the farm runs empty, and the wide jobs that are left fit on few "
        "machines.",
        (
            Other(
                "to the last completion",
                {MAIN: View(MAIN, metrics={"machine_usage_arriving": "machine_usage"})},
            ),
        ),
        ("C07-6",),
        "metric machine_usage_arriving",
        "Before, usage to the last completion was judged, and its percentage compared with 1.0. "
        "Then the margin ended at 100 %, which no usage passes but intervals of high usages do: "
        "these were undecided for that alone, and after that was seen it became 95 % or more.",
    ),
)

WHY = {
    "C07-1": "Both solvers use more of the licences than in the paper: branch & bound 95 % "
    "instead of 87 to 89 %, greedy 90 to 91 % instead of 82 to 87 %. The distance is 5.4 points"
    " where licences are scarcest, as in the paper, and still 3.9 where they are least scarce, "
    "where the paper has 1; why is not known.",
    "C07-3": "What contradicts the paper is EDF, not backfilling: aging of 0.02 a second "
    "outweighs the whole deadline heuristic (at most MAX = 10) once a job has waited for 500 s "
    "(without aging, CS_i_p has 15 points fewer late jobs at Ta = 6, about half of its distance"
    " to EDF). EDF's jobs without a deadline come last here, which the paper does not say: "
    "where they come first, CS has the fewer late jobs at Ta = 6 and 10.",
    "C07-5": "A job brings 1,750 s of 400 MIPS on average, so 150 machines of 400 MIPS are all"
    " busy where one comes every 11.7 s, and at Ta = 10 the queue grows whatever the scheduler "
    "does. At 12 they are just short of that, so jobs still wait, where the paper's Fig. 3 has "
    "no queue: its farms must have had more room.",
    "C07-6": "With one job a machine, jobs of many CPUs wait for the few wide machines while "
    "narrow machines have nothing that fits: min(machines, jobs) counts such jobs all the same. "
    "How far usage falls depends on the widest class of the farm that was drawn.",
    "C07-7": "Both matchings follow the paper's description, in compiled code, where constant "
    "factors count for more than exponents at 100 to 1500 jobs on 150 machines. The paper's "
    "O(N^3) and O(N^4) are for as many machines as jobs.",
}
"""Why a claim is contradicted where it is; shown where it is."""

LEFT_OUT = (
    "Repetitions: the paper has 20, here there are 12, 6 of Table 1 and 5 of plan times, for time "
    "alone.",
    "How run times relate to estimates: they are equal here.",
    "Which scheduler Table 1 was made with: CS_i_p here. Its branch & bound is the authors' own; "
    "ours bounds by Lagrange's prices, and stops at 500,000 nodes a choice.",
    "The figures of the paper are pictures without numbers in the text, so only their order and "
    "what the text says of them is judged.",
    "What a preemption costs: nothing here but the input's transfer in the heuristics.",
    "Bandwidths of the network: alike everywhere here.",
)
