"""What PU leaves open, as data: readings, why verdicts come out so, what is left out."""

from __future__ import annotations

from grid.lab.readings import Other, Reading, View

MAIN = "partial-utility"
EVERY = ("PU-1", "PU-2", "PU-3", "PU-4", "PU-5")


def _runs(reading: str) -> dict[str, View]:
    return {MAIN: View("partial-utility-readings", {"reading": reading})}


def _of_others(reading: str) -> dict[str, View]:
    """PU as it is, BU and MM otherwise."""
    return {MAIN: View("partial-utility-others", {"reading": reading}, rest="scheduler")}


def _metric(asked: str, given: str) -> dict[str, View]:
    return {MAIN: View(MAIN, metrics={asked: given})}


def _utility(given: str) -> dict[str, View]:
    return _metric("user_utility_of_jobs_that_ran", given)


READINGS = (
    Reading(
        "what is exchanged",
        "a summary of each VO: its average load, the resource with the least CPU occupation and "
        "the one with most memory free",
        "\"The exchanged information is a resume of the VO's resources state that includes average "
        "resource utilization, resource with the less CPU occupation and resource that has more "
        'memory (disk and RAM) available." So a VO knows its own 20 resources and at most 2 of '
        "each other VO, and matchmaking rejects a job that none of these fits.",
        (Other("full tables of resources", _runs("full tables")),),
        EVERY,
        "protocol.snapshot_detail: summary",
        "Before, full tables were exchanged, and the summary was only an option.",
    ),
    Reading(
        "memory of resources, by which the summary names one of its two",
        "none, so the first resource of a VO is always the one with most memory",
        "The characteristics that 4.2 lists are operating system, architecture, number of "
        "processing elements and their capacity: memory is not among them.",
        (
            Other("drawn from 1, 2, 4, 8 GB of RAM", _runs("memory is drawn")),
            Other(
                "the same everywhere, so the least occupied resource alone is named",
                _runs("least occupied only"),
            ),
        ),
        EVERY,
        "machine setting ram_mb: none",
        "Before, it was not named that the second resource of the summary is always the same. The "
        "other readings were added when the results of the main one were known.",
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
        "Algorithm 2 when the TTL is spent, and when all suitable resources are busy",
        "with a spent TTL a job takes the best resource of the VO that it is in; when all suitable "
        "resources are busy it queues at the best one",
        'Algorithm 2 fails a job at TTL 0 when its best resource is remote, but PU and BU "were '
        'able to serve all the submit jobs" (4.3), and a job that fails beside a free resource '
        'is hardly meant. What happens when "all available resources" are none is not said.',
        (
            Other(
                "Algorithm 2 to the letter: at TTL 0 a job fails whose best resource is remote, "
                "and a remote resource that is busy is never queued at",
                _runs("Algorithm 2 to the letter"),
            ),
        ),
        ("PU-1", "PU-3"),
        "protocol.when_busy: queue",
        "Before, this was named in the code alone. The other reading was added when the results of "
        "the main one were known.",
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
    Reading(
        "who forwards jobs",
        "all three schedulers, by the same Algorithm 2",
        "4.2 calls BU and MM scheduling mechanisms that differ in the utility of a resource; the "
        "architecture is described for all. Against it: 4.3 names forwarding as what sets PU "
        'apart, twice for its submission time ("our solution has a higher submission time due to '
        'the fact that jobs may be forwarded", "an additional delay is introduced by the mechanism '
        'of job forwarding") and once for its utility. Where PU alone forwards, its submission '
        "time is the highest.",
        (
            Other(
                "PU alone; BU and MM keep jobs in the VO of their user",
                _of_others("only PU forwards"),
            ),
        ),
        EVERY,
        "protocol.ttl of BU and MM",
        "The other reading was added when the results of the main one were known.",
    ),
    Reading(
        "what BU and MM are",
        "a job keeps its options, and BU and MM see the first, preferred one of each requirement: "
        "BU takes the resource that has most of them, MM one that has all, or rejects the job",
        'BU: "each requirement has only one possible option". MM: "based on its ability to satisfy '
        'all the user requirements".',
        (
            Other(
                "the users of BU and MM have one option for each requirement, drawn at random with "
                "its utility, and are measured by that",
                {MAIN: View("partial-utility-one-option", rest="scheduler")},
            ),
        ),
        EVERY,
        "selections binary and matchmaking; workload setting one_option: false",
        "Before, this page said that the first option is one drawn at random already. It is not: "
        "options are sorted, so the first is the best of one to four draws. The other reading was "
        "run when the results of the main one were known.",
    ),
    Reading(
        "by what the utility of BU's and MM's users is measured",
        "Eq. 1 over all options of the job, the same for all three",
        "Users do not change with the scheduler, and only so are the three comparable.",
        (
            Other(
                "by what each scheduler itself counts: BU's is the share of first options that are "
                "met, MM's is 1 for every job that ran",
                _of_others("own utility"),
            ),
        ),
        ("PU-2",),
        "selection setting measured: all_options",
        "The other reading was added when the results of the main one were known.",
    ),
    Reading(
        "utility of a user (Eq. 3)",
        "the plain mean, over the jobs that ran",
        '"Average utility value of the resources used by the user\'s jobs": a job that did not run '
        "used none. In the text that we have the numerator of Eq. 3 is garbled; its denominator is "
        "not: n_jobs(u), over which Eq. 2 sums the jobs that were submitted. That is the first of "
        "the other readings, and under it matchmaking is lowest.",
        (
            Other(
                "over the jobs that were submitted, n_jobs(u) of Eq. 3: a rejected job counts 0",
                _utility("user_utility"),
            ),
            Other(
                "Eq. 3 to the letter, 1 - sqrt(sum) / n, and higher is better; 1 - sqrt(sum / n) "
                "gives the same verdicts, for every user has n = 20 jobs",
                _utility("user_utility_one_minus_root"),
            ),
            Other(
                "Eq. 3 to the letter, but lower is better, since it falls as users do better",
                _utility("-user_utility_one_minus_root"),
            ),
        ),
        ("PU-2",),
        "metric user_utility_of_jobs_that_ran",
        "Before, a rejected job counted 0, and matchmaking was lowest for that reason alone. Only "
        "the lower-is-better form of the letter was judged before. Until lately this page called "
        "all of Eq. 3 garbled.",
    ),
    Reading(
        "execution time (Eq. 5)",
        "from assignment to end, averaged over a user's jobs and then over users: the formula",
        "The formula is whole, where that of Eq. 3 is not; by its words, Eq. 4 would be counted "
        "twice.",
        (
            Other(
                'from submission to end, over all jobs: "submitted till they are completely '
                'executed"',
                _metric("execution_time_mean", "response_time_mean"),
            ),
        ),
        ("PU-4",),
        "metric execution_time_mean",
        "The words were judged only after the results of the formula were known.",
    ),
    Reading(
        "far, slightly",
        "far below: at most 80 %; slightly below: 90 to 100 %; slightly better balanced: by up to "
        "0.1 of Eq. 6, than BU, the nearer of the two",
        "No number is in the text; the rows have the differences, so that other margins can be "
        "judged. The abstract names no rival for the balance.",
        (
            Other(
                "slightly better balanced than MM, too",
                lacking="it needs no runs: it is so if the interval of PU above MM in PU-5 lies "
                "within 0 to 0.1, and it is not if that lies above 0.1",
            ),
        ),
        ("PU-4", "PU-5"),
        "constants FAR, NEARLY and SLIGHTLY of grid/lab/papers/pu.py",
        "Before, slightly below was 80 % or more, also above 100 %, and slightly better balanced "
        "was within 0.1 on either side, of MM too. Both could hold where PU is the worse. They "
        "were changed when the results were known: PU at 99.4 ± 1.4 % of BU's time, 0.03 above "
        "BU's balance and 0.91 above MM's.",
    ),
)

WHY = {
    "PU-1": "The paper says that PU and BU serve all jobs, and that PU outperforms all others in "
    "job's success; both cannot be.",
    "PU-2": "Matchmaking runs a job only where the user's first option of every requirement is "
    "met, and over those jobs utility is higher than over all jobs of PU. It is the rejected ones "
    "that make it worse; whether they count is whether Eq. 3 averages over the jobs that used a "
    "resource, as its words say, or over n_jobs(u), as its denominator does. And the preferred "
    "option is the best of several draws: where the users of BU and MM have one option drawn at "
    "random, PU is above both.",
    "PU-3": "Here all three schedulers forward jobs, which is our main reading; 4.3 names "
    "forwarding as the cause of PU's own delay, and where PU alone forwards it has that. Where all "
    "do, whether PU or BU forwards more depends on what is exchanged and on which of equal "
    "resources is taken. The paper itself has it both ways: higher in 4.3, smaller in the "
    "conclusions.",
    "PU-4": "Execution times follow from which resources are chosen, and all three choose from the "
    "same ones. Partial utility counts a fast processor as one requirement among four.",
    "PU-5": "All three choose from the same resources by other measures of utility; none looks at "
    "balance.",
}
"""Why a claim is contradicted where it is; shown where it is."""

LEFT_OUT = (
    'What is "generated using a Poisson distribution with mean 2": here the gap between two jobs '
    "of a user, in whole seconds.",
    "How many options a requirement has: 1 to its most, each number with equal probability; only "
    'that "all the options have the same probability of being selected" is said.',
    'The "load" of Eq. 6: utilisation of a resource over the whole run. For "std dev load" we '
    'take a standard deviation, as the formula calls it; its words call it the "mean square '
    'deviation", which without a root would be no share of the average.',
    "How long jobs run: 2.5 to 12.5 s at 1000 MIPS, so that the offered load is 0.7 while users "
    "submit. Execution times asked for are fixed limits of 5, 10, 15 and 20 s. A job takes one "
    "core; resources have 1, 2, 4 or 8 of 500 to 2000 MIPS.",
    "Latencies: 0.1 s between VOs and 1 ms inside one. Submission time (Fig. 5) is made of these "
    "messages alone, so its level is ours; its order is that of how many jobs are forwarded.",
    "Updates: every 5 s, at a load above 90 %, and after 5 jobs. TTL: 4.",
    "What happens to a job when all suitable resources are busy: it queues at the best one.",
    '"This additional delay does not decreases user\'s satisfaction" (4.3): not judged, for no '
    "delay enters utility (Eq. 1 and 3). Whether PU's utility is the highest is PU-2.",
    '"Better results [...] in all the metrics studied" (conclusions): judged metric by metric, '
    "PU-1 to PU-5; the paper's own Fig. 5 speaks against it.",
    "The numbers of Fig. 3 to 6, which are pictures.",
)
