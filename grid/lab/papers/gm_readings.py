"""What GM leaves open, as data: readings, why verdicts come out so, what is left out."""

from __future__ import annotations

from grid.lab.readings import Other, Reading, View

MAIN = "gang-migration"
EVERY = ("GM-1", "GM-2", "GM-3", "GM-4")


def _runs(reading: str) -> dict[str, View]:
    return {MAIN: View("gang-migration-readings", {"reading": reading})}


READINGS = (
    Reading(
        "processors of a gang",
        "all are held until the gang ends",
        "Eq. 5 counts p_j x te_j, the processors of a job times its execution time, and the state "
        'of Eq. 6 changes "when a new job is scheduled or when a job terminates".',
        (Other("each is free when its own task ends", _runs("freed by task")),),
        EVERY,
        "gang policy setting release: gang",
        "Before, each processor was freed when its own task ended.",
    ),
    Reading(
        "loss of capacity (Eq. 6)",
        "idle processors of a cluster count when a gang waits in that cluster that they could run",
        "As we read the text, a gang never spreads over clusters (see there), so two of them are "
        "no room for it, and without migration it runs in the cluster that it was sent to. The "
        'text itself speaks of "the system" and of "the number of idle processors", which is the '
        "other reading.",
        (
            Other(
                "idle processors of the whole grid together",
                {MAIN: View(MAIN, metrics={"loss_of_capacity_in_clusters": "loss_of_capacity"})},
            ),
        ),
        ("GM-3",),
        "metric loss_of_capacity_in_clusters",
        "Before, the whole grid was the main reading. This one was chosen when the figures of both "
        "were known; over the whole grid the loss is 100 - U where all is saturated. This page "
        "also said that the gang has to fit into the idle processors of any one cluster: what was "
        "computed is that it waits in the same one.",
    ),
    Reading(
        "whether a gang may spread over clusters",
        "no: all its tasks are sent to one cluster, and migrate to another one all together",
        'The Grid Dispatcher sends jobs to clusters, and "the number of tasks in a job j cannot '
        'exceed the number of processors in a cluster" (III); AFCFS and LGFS "are not suitable for '
        'parallel scheduling of tasks in different clusters" (V-A).',
        (
            Other(
                'external migration moves some tasks of a gang ("the transfer of tasks from one '
                'cluster to another", V-A), which then runs in both clusters',
                lacking="gangs of two clusters are not part of the emulator. It would let idle "
                "processors of both run one gang, as the loss over the whole grid supposes",
            ),
        ),
        EVERY,
        "the protocol of gangs",
        "Before, this page gave it as a fact.",
    ),
    Reading(
        "a gang that a priority job interrupts",
        "it keeps its processors and goes on, where it was, when that job has ended",
        '"As soon as f ends its execution, interrupted tasks can begin their execution again, as '
        'well as the entire process" (III). But such a gang is also to "be rescheduled" (III), and '
        'there is "the response time increase of jobs rescheduled" (VII), which the other has.',
        (
            Other(
                "it gives its processors back, waits in queues and begins again",
                _runs("interrupted gangs begin again"),
            ),
        ),
        EVERY,
        "gang policy setting interrupted: goes_on",
        "Before, it stood among what the paper leaves out, and the other was not run. It was added "
        "after results were known, since the text has words for both.",
    ),
    Reading(
        "utilisation (Eq. 5) and its average in Fig. 3",
        "processors times execution times, over the time from interaction 400 to 2600 of 3000 and "
        "all processors",
        "The levels of 50 and 42.5 % are averages on the intervals 400 to 2600 (AFCFS) and 400 to "
        "2700 (LGFS) in S1; for S2 and S3 no interval is given, and we take 400 to 2600 for all. "
        "What an interaction is the text does not say: we take it for a start or an end of a "
        "job, of which 1500 jobs have 3000. The mean is over time; te_j is the time from a job's "
        "start to the end of its last task.",
        (
            Other(
                "Eq. 5 to the letter, over the makespan",
                {MAIN: View(MAIN, metrics={"utilization_shown_percent": "utilization_percent"})},
            ),
            Other(
                "the mean over interactions, the x-axis of Fig. 3, instead of over time",
                {
                    MAIN: View(
                        MAIN,
                        metrics={"utilization_shown_percent": "utilization_percent[0.1333:0.8667]"},
                    )
                },
            ),
        ),
        ("GM-2",),
        "metric utilization_shown_percent",
        "Before, it was what processors were busy over the whole run. The mean over interactions "
        "was added when the results of the main reading were known.",
    ),
    Reading(
        "aging",
        "no limit on how often a gang at the head of a queue is passed by migrants; that is, "
        "without aging",
        'The paper has aging "to regulate the number of migrations" and against starvation, and '
        "gives no rule. A limit of ours, once reached, would stop all further migration past that "
        "gang, so none is the main reading although the text has some.",
        (
            Other("a limit of 64 passes", _runs("passed 64 times at most")),
            Other("never passed", _runs("never passed")),
        ),
        EVERY,
        "gang policy setting aging: 1000000",
        "Before, 64 was the main reading, for it seemed to bound starvation, which it does not. "
        "The results of 64 and of no limit were known when this was changed.",
    ),
    Reading(
        "what migrates",
        "within a cluster, gangs at the heads of queues of idle processors; between clusters, the "
        "smallest gang at the head of any queue",
        'Step 2: "which jobs has its tasks at the beginning of the queue of idle processors". For '
        "external migration that is not taken to the letter: a cluster that is all busy would send "
        "none to one that has idle processors.",
        (
            Other(
                "within a cluster, any gang in the queues of idle processors",
                _runs("whole queues migrate"),
            ),
            Other(
                "between clusters, too, only gangs at the heads of queues of idle processors: step "
                "2 to the letter",
                _runs("step 2 to the letter"),
            ),
        ),
        EVERY,
        "gang policy setting migrates: heads",
        "Before, the page named heads of queues of idle processors for both.",
    ),
    Reading(
        "the number of migrations",
        "gangs that move, within clusters and between them",
        '"We observed a reduction in the number of migrations"; of what is not said.',
        (
            Other(
                "tasks that move within clusters; those between clusters are not counted by task",
                {
                    MAIN: View(
                        MAIN,
                        metrics={"migrations_local+migrations_external": "tasks_migrated_local"},
                    )
                },
            ),
        ),
        ("GM-4",),
        "metrics migrations_local and migrations_external",
    ),
    Reading(
        "load",
        "none: every comparison is made at loads of 0.3, 0.45, 0.55, 0.75 and 3, and depends where "
        "they differ. Readings that need their own runs were run at 0.55 alone, four times: what "
        "they change at other loads is not known, and with four runs few of their comparisons are "
        "decided",
        "The paper gives neither the trace nor its load. A level that is missed from below at one "
        "load and from above at the next is passed between them, where nothing was run: no load "
        "was added for it, since it would be one that is chosen after the result.",
        (),
        EVERY,
        "axis load of the experiment",
        "Before, 0.75 was ours alone, at which all is saturated. A level that is passed between "
        "two loads was called contradicted, and that readings were run at one load was not on the "
        "page.",
    ),
    Reading(
        "trace",
        "one generated workload of the paper's size, ten runs of it on processors drawn anew",
        'The paper has one workload "of 1,500 jobs in total and 24,152 tasks" and "ten '
        'simulations"; clock rates are "randomly generated upon creation of the resources".',
        (Other("a new workload for every run", _runs("a new workload a run")),),
        EVERY,
        "workload setting stream: 1",
        "Before, every repetition had a workload of its own.",
    ),
    Reading(
        "words of degree",
        "fairly significant, considerable: to at most 0.8 times as much; a small reduction: to 0.9 "
        "to 1 times; at a level: within 5 points; an increase of 10 %: by 5 to 15 points",
        "No number is in the text; the rows have the differences, so that other margins can be "
        "judged.",
        (),
        ("GM-1", "GM-2", "GM-3"),
        "constants of grid/lab/papers/gm.py",
        "A small reduction, the increase of 10 %, the first half of the jobs, the rise of LGFS and "
        "all levels at one load were not judged before; their margins were chosen when results of "
        "other comparisons were known.",
    ),
    Reading(
        "AFCFS and LGFS",
        "AFCFS: any job whose processors are all free starts, smaller ones behind a blocked large "
        "one included; LGFS: queues by falling size, searched in that order",
        "So Karatza, whom the paper cites for both.",
        (),
        EVERY,
        "policies afcfs and lgfs",
    ),
)

WHY = {
    "GM-1": "AFCFS lets small gangs pass large ones, LGFS the other way round; which mean over all "
    "jobs is lower hangs on how many there are of each and how long they run, and the paper does "
    "not give its trace. Its own LGFS has 1.063e6 in S2 and 1.076e6 in S3, which is no reduction.",
    "GM-2": "With aLD utilisation is within about a point of that without, at every load, so that "
    "neither increase of 10 % is there. The table over the load shows that utilisation follows "
    "first from how much work comes and, by a few points, from migration; the paper gives neither "
    "load nor trace. Its levels contradict its text: 75 % is neither 60 + 10 nor 50 + 10.",
    "GM-3": "With migration LGFS loses less here than in the paper, at every load. How much "
    "migration saves hangs on aging, which the paper has and does not define: where no earlier "
    "gang may be passed, LGFS comes to the paper's level and AFCFS leaves its own (the other "
    "readings).",
    "GM-4": "With aLD a task joins the queue of an idle processor rather than the empty queue of a "
    "busy one, which changes where gangs wait, and so which of them can migrate. Migrations "
    "within clusters and between them are in the table beside it.",
}
"""Why a claim is contradicted where it is; shown where it is."""

LEFT_OUT = (
    "The trace (a log in the Standard Workload Format) and its load. Ours: every tenth job is a "
    "priority job of one task, the logarithm of a gang's size is uniform from 2 to 64, arrivals "
    "are Poisson and processing times exponential with a mean of an hour.",
    "Processors that are kept for a gang which was interrupted or is migrating run nothing: in Eq. "
    "6 they count as idle, and such a gang as waiting.",
    "Where gangs of 33 to 64 tasks go: to the cluster of 64 processors, which alone can run them, "
    "whatever the loads of Eq. 2. Only smaller ones are sent by load.",
    '"Not capable of responding to more than 64 jobs f per time unit" (III): here of each cluster, '
    "in a second; the text has it of the system. One comes in minutes.",
    '"An increased response time for larger jobs" under AFCFS, and "of smaller jobs" under LGFS '
    "(V): not judged, for what is kept of a run has no response times by size. "
    '"LGFS involves a considerable amount of overhead" (V): not judged, for schedulers take no '
    "simulated time here.",
    "What a migration costs: tasks are under way for 1 s within a cluster, 10 s to the other one.",
    "How often dispatchers ask again: after a minute.",
    "Ties between equal queues: they go round.",
    "What a unit of time is: seconds here; the paper's response times have none.",
    '"In the fairest way", "more fairly" (VII): not judged, for no metric of fairness is given. '
    '"Most significant results" of S3 (VIII): judged as S3 before S2 in GM-2 and GM-3. "AFCFS '
    'visibly presented the best result" of the three: judged as AFCFS in S3 below S2 below S1.',
    "The curves of Fig. 2 and 3, which are pictures.",
)
