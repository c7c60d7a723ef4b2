"""What PU leaves open, as data: readings, why verdicts come out so, what is left out."""

from __future__ import annotations

from grid.experiment.readings import Other, Reading, View

MAIN = "partial-utility"
EVERY = ("PU-1", "PU-2", "PU-3", "PU-4", "PU-5")


def _runs(reading: str) -> dict[str, View]:
    return {MAIN: View("partial-utility-readings", {"reading": reading})}


def _utility(metric: str) -> dict[str, View]:
    return {MAIN: View(MAIN, metrics={"user_utility_of_jobs_that_ran": metric})}


READINGS = (
    Reading(
        "what is exchanged",
        "a summary of each VO",
        "\"The exchanged information is a resume of the VO's resources state that includes average "
        "resource utilization, resource with the less CPU occupation and resource that has more "
        'memory."',
        (Other("full tables of resources", _runs("full tables")),),
        EVERY,
        "protocol.snapshot_detail: summary",
        "Before, full tables were exchanged, and the summary was only an option.",
    ),
    Reading(
        "resources of equal utility",
        "the first that is found",
        "Algorithm 3 goes through VOs and their resources and keeps the best; an equal one later "
        "is no better.",
        (
            Other("the own VO's first, then the less loaded", _runs("own VO first")),
            Other("the less loaded first", _runs("less loaded first")),
        ),
        EVERY,
        "selection setting ties: first",
        "Before, equal ones of the own VO came first, and then the less loaded.",
    ),
    Reading(
        "utility of a user (Eq. 3)",
        "the plain mean, over the jobs that ran",
        '"Average utility value of the resources used by the user\'s jobs": a job that did not run '
        "used none. Eq. 3 itself is garbled in the text that we have.",
        (
            Other("a rejected job counts 0", _utility("user_utility")),
            Other(
                "Eq. 3 to the letter, 1 - sqrt(sum) / n; it falls as users do better, so the lower "
                "one is taken for the better, with its sign turned",
                _utility("-user_utility_one_minus_root"),
            ),
        ),
        ("PU-2",),
        "metric user_utility_of_jobs_that_ran",
        "Before, a rejected job counted 0, and matchmaking was lowest for that reason alone.",
    ),
    Reading(
        "TTL (Algorithm 2)",
        "it travels with the job and only falls",
        "TTL is set at the top of Algorithm 2, but a job that gets a new one at every hop would "
        "be forwarded without end.",
        (),
        ("PU-1", "PU-3"),
        "protocol.ttl: 4, the number of VOs",
    ),
)

WHY = {
    "PU-2": "Matchmaking runs a job only where every requirement is met by the user's first "
    "option, so the jobs that it does run have high utilities. It is the rejected ones that make "
    "it worse, and those have no resource whose utility could be averaged.",
    "PU-3": "A job is sent to another VO under every one of the three selections. Which of them "
    "sends more of them away hangs on which resource is taken among equals.",
    "PU-4": "Execution times follow from which resources are chosen, and all three choose from the "
    "same ones. Partial utility counts a fast processor as one requirement among four.",
    "PU-5": "Matchmaking runs a job only on a resource that has the first option of every "
    "requirement, so jobs queue there (6 to 11 s on average in two repetitions, where the other"
    " two have no queue) while every sixth resource gets none. So partial utility is far better"
    " balanced than matchmaking, not slightly, and that under every reading.",
}
"""Why a claim is contradicted where it is; shown where it is."""

LEFT_OUT = (
    "How long jobs run and how fast resources are: see grid/workload/partial_utility.py.",
    "Latencies of the network, the period of updates and its limits of load and of jobs: see the "
    "scenario.",
    "What becomes of a job that could run somewhere and finds nothing free: it queues.",
    "The numbers of Fig. 3 to 6, which are pictures.",
)
