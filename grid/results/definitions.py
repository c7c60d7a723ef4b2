"""What each metric means: its name, title, unit and definition, declared once for all outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SHARE = "0 to 1"
COUNT = "0 or more"
PERCENT = "0 to 100"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of metrics.json, of a sweep's results.csv, or of its clock.csv.

    - `name`: its key in the files; `title`: what tables and axes call it, before its `unit`.
    - `unit`: `s`, `%`, `J`; empty for a count or a ratio.
    - `meaning`: its definition; `over`: what it is summed up or averaged over.
    - `values`: its range; `better`: `more` or `less` where one of them is better, else empty.
    - `source`: the paper and equation that it is from; empty where it is our own or customary.
    """

    name: str
    title: str
    unit: str
    meaning: str
    over: str
    values: str = COUNT
    better: str = ""
    source: str = ""

    @property
    def label(self) -> str:
        """Title and unit, as columns and axes have it."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


_SENT = "forwards of the VO's Local Scheduler, or all"
_CAME = "jobs that other VOs sent to the VO, or all"

OF_DECISIONS = (
    Metric(
        "information_age_mean", "age of the information used", "s",
        "Of jobs that are forwarded by what is known of resources: how old the status was, when "
        "the job left, of the resource to which it went. Age counts from the last moment at which "
        "the status was surely right; in a scenario with `faults`, from when it was told.",
        f"mean over {_SENT}", COUNT, "less",
    ),
    Metric(
        "information_error_mean", "error of the information used", "",
        "CPUs that were assigned to jobs on the resource when a job came to it, against those that "
        "its sender believed: the difference without its sign, over the CPUs of the resource. "
        "Jobs that are not admitted count, those that go where a bid came from do not.",
        f"mean over {_CAME}", COUNT, "less",
    ),
    Metric(
        "misjudged_arrivals", "jobs sent where no room was", "",
        "Jobs that came from another VO, which believed that there was room for them, and there "
        "was none: such a job over-commits a resource, or is refused or not admitted. One that "
        "a VO does not admit though there is room does not count here. Where the sender "
        "had a bid, it believed what the bid said. Places that were held and lost are leases lost.",
        f"sum over {_CAME}", COUNT, "less",
    ),
    Metric(
        "refusals", "refusals", "",
        "How often a resource was asked to take a job at once, and had no room, or places stood "
        "in line there. Jobs that may queue there are not refused: see jobs sent where no room "
        "was.",
        "sum over all jobs that came to the VO, its own as well, or all", COUNT, "less",
    ),
    Metric(
        "not_admitted", "jobs not admitted", "",
        "How often a job of another VO was turned away by the rule of admission, or by a VO that "
        "is not in the grid.",
        f"sum over {_CAME}", COUNT, "less",
    ),
    Metric(
        "herd_mean", "herd, mean", "",
        "How many VOs sent jobs to one resource because of one and the same message of its status: "
        "a snapshot, an answer, or what it told when its VO joined. VOs, not jobs: many jobs "
        "of one VO count as 1; see jobs sent where no room was.",
        "mean over the told statuses that any VO acted on, of the VO's resources, or all",
        "1 or more", "less",
    ),
    Metric(
        "herd_largest", "herd, largest", "",
        "The most VOs that sent jobs to one resource because of the same status of it.",
        "told statuses of the VO's resources, or of all",
        COUNT, "less",
    ),
    Metric(
        "leases", "leases", "",
        "How often the VO held a place for a job under a lease.", "sum over places",
    ),
    Metric(
        "leases_lost", "leases lost", "",
        "Leases that ended before the job came and before its scheduler gave the place back.",
        "sum over places", COUNT, "less",
    ),
    Metric(
        "places_cancelled", "places cancelled", "",
        "Places that the VO held for a job or had kept in a queue for it, and that were given back "
        "since the job went elsewhere.",
        "sum over places",
    ),
    Metric(
        "input_sent_mb", "input data sent", "MB",
        "Input data that went along with jobs which the VO sent to others.",
        f"sum over {_SENT}",
    ),
    Metric(
        "input_wasted_mb", "input data sent in vain", "MB",
        "Input data that came with a job to a VO which it left again, or in which it failed. It "
        "counts for each time that the job came.",
        f"sum over {_CAME}", COUNT, "less",
    ),
    Metric(
        "messages_a_job", "messages to other VOs a job", "",
        "Messages that entities of the VO sent to those of other VOs. A snapshot counts once for "
        "each VO that hears it. What is sent again because it was lost does not count.",
        "sum over messages, divided by the jobs that the VO's users submitted, or all users",
        COUNT, "less",
    ),
    Metric(
        "messages_of_jobs_a_job", "messages with jobs a job", "",
        "Of the messages to other VOs, those that hand a job on or back, or say how it ended.",
        "as messages to other VOs a job", COUNT, "less",
    ),
    Metric(
        "messages_of_places_a_job", "messages about places a job", "",
        "Of the messages to other VOs, those that ask for places or for work: calls, bids, places "
        "given back.",
        "as messages to other VOs a job", COUNT, "less",
    ),
    Metric(
        "messages_of_information_a_job", "messages of information a job", "",
        "Of the messages to other VOs, those that tell of resources: snapshots, letters, probes, "
        "joining, leaving.",
        "as messages to other VOs a job", COUNT, "less",
    ),
    Metric(
        "message_bytes_a_job", "bytes of messages a job", "",
        "Size of the messages to other VOs: eight bytes for each number and name, and for each "
        "cell of a table. What only some messages of a kind have, such as a call for bids, counts "
        "for each of them. Input data of jobs, their requirements and lists of VOs do not count.",
        "as messages to other VOs a job", COUNT, "less",
    ),
)  # fmt: skip
"""Of grids of several VOs: what a VO's decisions go by, and what they lead to. In a live run in
which actors died, counts since their last saved state may be missing."""


OF_JOBS = (
    Metric(
        "jobs_submitted", "jobs submitted", "", "Jobs that users submitted.", "all jobs",
    ),
    Metric(
        "jobs_completed", "jobs completed", "", "Jobs that ran to their end.", "all jobs",
        better="more",
    ),
    Metric(
        "jobs_failed", "jobs failed", "",
        "Jobs that were killed at their limit (estimate x `estimate_factor`) or by their policy, "
        "or were forwarded until their TTL was spent and found no place.",
        "all jobs", better="less",
    ),
    Metric(
        "jobs_rejected", "jobs rejected", "",
        "Jobs that ended without a place, never forwarded or with TTL left: no resource can ever "
        "run them, or the rule of forwarding gave them none, or a policy rejected them. Also jobs "
        "that another VO did not admit and that end for it (`when_refused`), whatever their TTL.",
        "all jobs", better="less",
    ),
    Metric(
        "jobs_forwarded", "jobs forwarded", "",
        "Jobs that one VO sent on to another at least once.", "all jobs",
    ),
    Metric(
        "hops_mean", "hops, mean", "", "How often a job was sent from one VO to another.",
        "mean over all jobs",
    ),
    Metric(
        "user_success_ratio", "PU success ratio", "",
        "Completed jobs over submitted jobs of a user.",
        "mean over users", SHARE, "more", "PU Eq. 2",
    ),
    Metric(
        "user_utility", "PU user utility", "",
        "Mean utility of a user's jobs; 0 for a job that did not run.",
        "mean over users", SHARE, "more", "PU Eq. 3, over n_jobs(u)",
    ),
    Metric(
        "user_utility_one_minus_mean", "PU Eq. 3 without the root", "",
        "1 - (sum of the utilities of a user's jobs) / (number of the user's jobs). It falls as "
        "users do better. The numerator of Eq. 3 is garbled in our text; this is one reading.",
        "mean over users", SHARE, "less", "PU Eq. 3, first reading",
    ),
    Metric(
        "user_utility_one_minus_root", "PU Eq. 3 with the root", "",
        "1 - r / (number of the user's jobs), where r is the square root of the sum of their "
        "utilities. It falls as users do better. Another reading of the garbled numerator.",
        "mean over users", SHARE, "less", "PU Eq. 3, second reading",
    ),
    Metric(
        "submission_time_mean", "PU until assignment", "s",
        "From the submission of a job to its assignment to a resource. The paper calls it "
        "submission time. A job may still wait in a queue after that.",
        "mean over a user's assigned jobs, then over users", COUNT, "less", "PU Eq. 4",
    ),
    Metric(
        "execution_time_mean", "PU assignment to end", "s",
        "From the assignment of a job to its end: waiting in the queue of its cluster and "
        "running. The paper calls it execution time. It is not `execution_time` of jobs.csv, which "
        "counts from the start of the job.",
        "mean over a user's completed jobs, then over users", COUNT, "less",
        "PU Eq. 5, its formula",
    ),
    Metric(
        "wait_mean", "wait, mean", "s", "From the submission of a job to its first start.",
        "mean over jobs that ran, failed ones included", COUNT, "less",
    ),
    Metric(
        "response_time_mean", "response time, mean", "s",
        "From the submission of a job to its end.",
        "mean over completed jobs", COUNT, "less", "GM Eq. 4",
    ),
    Metric(
        "slowdown_mean", "slowdown, mean", "",
        "Response time over run time. Run time is the time that the job held its CPUs, less what "
        "was lost to restarts, what preemptions cost, and boots; jobs of run time zero are left "
        "out. Of a gang whose tasks end apart it is their mean, so that its slowdown is above 1.",
        "mean over completed jobs", "1 or more", "less", "C07, CS2, EG: (Tw + Te) / Te",
    ),
    Metric(
        "bounded_slowdown_mean", "bounded slowdown, mean", "",
        "As slowdown, but run times below 10 s count as 10 s, and results below 1 as 1.",
        "mean over completed jobs", "1 or more", "less",
        "Feitelson et al. 1997, with the 10 s of Mu'alem and Feitelson 2001",
    ),
    Metric(
        "late_percent", "late jobs", "%",
        "Jobs that did not complete by their deadline, over jobs with a deadline. Failed and "
        "rejected ones are late; one that ends at its deadline is not.",
        "jobs with a deadline", PERCENT, "less", "CS2 Fig. 2, EG Fig. 1",
    ),
    Metric(
        "makespan", "makespan", "s",
        "From the first submission to the last end of a job that ran.",
        "jobs of the VO's users, or all", COUNT, "less",
    ),
    Metric(
        "preemptions", "preemptions", "",
        "How often a job was stopped before its end: to let another one run, or since its machine "
        "went down.", "sum over all jobs", COUNT, "less",
    ),
    Metric(
        "restarts", "restarts", "",
        "How often a job began again from nothing.", "sum over all jobs", COUNT, "less",
    ),
    Metric(
        "lost_cpu_seconds", "CPU time lost", "s",
        "CPUs times the time for which jobs held them for work that was lost at a restart, and for "
        "what preemptions and boots cost.",
        "sum over all jobs", COUNT, "less",
    ),
)  # fmt: skip
"""Of a VO: the jobs of its users, wherever they ran. Of the grid: all jobs. Where the scenario says
`submitted_from_s` or `submitted_until_s` under `metrics`: only jobs submitted then, which leaves
out the warm-up of a run. Figures of machines and of decisions are of the whole run."""

OF_MACHINES = (
    Metric(
        "utilization", "utilization", "",
        "CPU seconds that jobs held, over CPUs times the time from the first submission in the "
        "grid to the last end of a job in the grid.",
        "machines of the VO, or all", SHARE, "more", "GM Eq. 5, as a share of 1",
    ),
    Metric(
        "load_balance", "PU load balance (max 1)", "",
        "1 - (standard deviation of the machines' utilizations) / (their mean). 1, the most: all "
        "machines are used alike. 0: the deviation is as large as the mean. Below 0: even more "
        "uneven. The least, where one of n machines has all the work, is 1 - root of (n - 1). A "
        "pool, or a cluster of gangs, is one machine: a VO of one pool has 1. No value: none used.",
        "machines of the VO, or all, each counting alike", "at most 1, may be negative", "more",
        "PU Eq. 6",
    ),
    Metric(
        "machine_usage", "machine usage", "%",
        "CPUs in use over the smaller of CPUs that there are and CPUs that jobs in the system ask "
        "for. In a cluster with `one_job_a_machine`: machines in use, over the smaller of machines "
        "and jobs in the system. Clusters of gangs have no such figure.",
        "mean over clusters and the time in which jobs ask each for CPUs", PERCENT, "more",
        "CS2 Eq. 15 and 16",
    ),
    Metric(
        "machine_usage_arriving", "machine usage while jobs arrive", "%",
        "Machine usage up to the last arrival of a job.",
        "as machine usage", PERCENT, "more", "CS2 Eq. 15 and 16, C07 Fig. 6",
    ),
    Metric(
        "license_usage", "license usage", "%",
        "Copies of licenses in use over the smaller of copies that there are and copies that jobs "
        "in the system ask for. In a sweep with `measure: knapsack`: copies that the chosen jobs "
        "ask for, over the same, mean over choices (C07 Table 1).",
        "mean over clusters and the time in which jobs ask each for any", PERCENT, "more",
        "CS2 Eq. 17 and 18",
    ),
    Metric(
        "license_usage_arriving", "license usage while jobs arrive", "%",
        "License usage up to the last arrival of a job.",
        "as license usage", PERCENT, "more", "CS2 Eq. 17 and 18",
    ),
    Metric(
        "loss_of_capacity", "loss of capacity", "%",
        "Idle processors times the time in which a gang that would fit into all of them together "
        "waits, over all processors times the whole time, from the first event of these clusters "
        "to their last. No gang waits while a message hands it over to another cluster.",
        "clusters of gangs, as one system", PERCENT, "less", "GM Eq. 6",
    ),
    Metric(
        "loss_of_capacity_in_clusters", "loss of capacity, apart", "%",
        "As loss of capacity, but idle processors count where a gang waits in the same cluster.",
        "clusters of gangs, each for itself, then summed", PERCENT, "less",
        "GM Eq. 6, second reading",
    ),
    Metric(
        "migrations_local", "local migrations", "",
        "How often a job went on, or began again, on another machine or processor of its cluster.",
        "sum over clusters",
    ),
    Metric(
        "migrations_external", "external migrations", "",
        "How often a gang went on in another cluster, counted where it comes in.",
        "sum over clusters",
    ),
    Metric(
        "tasks_migrated_local", "tasks moved by local migrations", "",
        "Tasks of gangs that changed their processor within their cluster.", "sum over clusters",
    ),
    Metric(
        "interruptions", "interruptions", "",
        "How often a priority job stopped a gang.", "sum over clusters",
    ),
    Metric(
        "boots", "boots", "",
        "How often a machine that was off was switched on for a job.", "sum over clusters",
    ),
    Metric(
        "work_for_others_cpu_s", "work for others", "s",
        "CPU time that machines of the VO gave to jobs of other VOs' users, lost work included; of "
        "the grid: all such time. Only in grids of several VOs.",
        "sum over jobs",
    ),
    Metric(
        "work_by_others_cpu_s", "work by others", "s",
        "CPU time that jobs of the VO's users got from machines of other VOs, lost work included; "
        "of the grid: all such time. Only in grids of several VOs.",
        "sum over jobs",
    ),
    Metric(
        "fairness_of_exchange", "fairness of the exchange", "",
        "Jain's index, (sum of x)^2 / (n * sum of x^2), of x: CPU time that the jobs of a VO's "
        "users got anywhere, over CPU time that the VO's machines gave to anybody, lost work "
        "included. 1: all VOs get in proportion to what they give, as where nothing is shared; "
        "1 / n: one gets all. It says nothing of waits. None of a single VO.",
        "VOs whose machines gave any", SHARE, "more", "Jain, Chiu and Hawe 1984",
    ),
    Metric(
        "energy_jobs_j", "energy of jobs", "J",
        "Watts of CPUs while jobs held them, lost work included, boots not, times that time.",
        "machines whose watts are given", COUNT, "less",
    ),
    Metric(
        "energy_idle_j", "energy of idle CPUs", "J",
        "Watts of CPUs that no job held, or whose machine was off or booted, times that time; "
        "nothing while a machine is down.",
        "machines whose watts are given", COUNT, "less",
    ),
    Metric(
        "energy_j", "energy", "J",
        "Energy of jobs and of idle CPUs, from the first submission in the grid to the last end "
        "of a job in it.",
        "machines whose watts are given", COUNT, "less",
    ),
)  # fmt: skip
"""Of a VO: its own machines, whoever's jobs they ran. Of the grid: all machines."""

OF_SWEEPS = (
    Metric(
        "slowdown_without_deadline_mean", "slowdown of jobs without deadline", "",
        "As slowdown, of the jobs without a deadline.",
        "mean over completed jobs without a deadline", "1 or more", "less", "C07 Fig. 5",
    ),
    Metric(
        "late_percent_of_all", "late jobs of all", "%",
        "Jobs with a deadline that did not complete by it, over all jobs.",
        "all jobs", PERCENT, "less", "C07 Fig. 4",
    ),
    Metric(
        "user_utility_of_jobs_that_ran", "PU utility of jobs that ran", "",
        "Mean utility of the user's jobs that ran. By this the claims of the paper are judged.",
        "mean over users with such a job", SHARE, "more", "PU Eq. 3, its words",
    ),
    Metric(
        "jobs_in_system_mean", "jobs in the system, mean", "",
        "Jobs that wait or run, from the first submission to the last.",
        "mean over that time", source="C07 Fig. 3, CS2 Fig. 1",
    ),
    Metric(
        "jobs_in_system_growth", "growth of the jobs in the system", "",
        "Jobs that wait or run in the last quarter of the time from the first submission to the "
        "last, over those in its second quarter.",
        "means over these quarters", source="C07 Fig. 3, CS2 Fig. 1",
    ),
    Metric(
        "response_time_of_first_half_mean", "response time of the first half, mean", "s",
        "From submission to end, of the half of the completed jobs that completed first.",
        "mean over these jobs", COUNT, "less", "GM Fig. 2",
    ),
    Metric(
        "utilization_percent", "utilization", "%",
        "CPU seconds that jobs held, over all CPUs times the time from the first submission to the "
        "last end, of all jobs.",
        "all machines", PERCENT, "more", "GM Eq. 5",
    ),
    Metric(
        "utilization_arriving_percent", "utilization while jobs arrive", "%",
        "CPUs in use, over all CPUs, from the first submission to the last.",
        "all machines, mean over that time", PERCENT, "more",
    ),
    Metric(
        "utilization_shown_percent", "utilization in GM Fig. 3", "%",
        "Processors times run time of the jobs, over all processors and the part of the run that "
        "the figure shows: interactions 400 to 2600 of 3000.",
        "all machines", PERCENT, "more", "GM Eq. 5 and Fig. 3",
    ),
    Metric(
        "least_usage", "least license usage of a choice", "%",
        "Licenses that chosen jobs ask for, over the smaller of what all jobs ask for and what "
        "there is: the smallest of all choices.",
        "choices of a knapsack", PERCENT, "more", "C07 Table 1",
    ),
    Metric(
        "best_usage", "best license usage of a choice", "%",
        "As the least license usage of a choice, but the largest of all choices.",
        "choices of a knapsack", PERCENT, "more", "C07 Table 1",
    ),
    Metric(
        "proven_percent", "choices proven best", "%",
        "Choices that the solver proved to be the best.", "choices of a knapsack", PERCENT,
    ),
    Metric(
        "choices", "choices of knapsacks", "", "How often a knapsack was solved.", "the run",
    ),
)  # fmt: skip
"""Only in the results of a sweep, of the whole grid. Where only some jobs are measured, the first
three are of these, and the others of all jobs."""

OF_THE_CLOCK = (
    Metric(
        "plan_seconds_count", "plans", "", "How many plans the policy made.", "the run",
    ),
    Metric(
        "plan_seconds_mean", "time for a plan, mean", "s",
        "Processor time that the policy took for a plan. Pages of papers also have the mean of "
        "the plans that were made while a job waited (`plan_seconds_mean_waiting`: C07 Fig. 7, CS2 "
        "Fig. 6), and of those with the longest queues (`plan_seconds_mean_fullest`: C07 Fig. 8), "
        "from the means by queue length, `plan_seconds_mean_below_*` of clock.csv.",
        "mean over plans", COUNT, "less", "EG Fig. 2",
    ),
    Metric(
        "plan_seconds_max", "time for a plan, longest", "s",
        "The longest processor time of a plan.", "plans", COUNT, "less",
    ),
    Metric(
        "plan_seconds_total", "time for all plans", "s",
        "Processor time of all plans together.", "sum over plans", COUNT, "less", "CS2 Fig. 7",
    ),
    Metric(
        "wall_seconds", "time on the wall", "s",
        "Real time of the run, from its first event to its last.", "the run", COUNT, "less",
    ),
    Metric(
        "cpu_seconds_read", "processor time to read", "s",
        "Processor time to read and build the scenario and its jobs.", "the run", COUNT, "less",
    ),
    Metric(
        "cpu_seconds_run", "processor time to run", "s",
        "Processor time of all processes, from the first event to the last.", "the run", COUNT,
        "less",
    ),
)  # fmt: skip
"""Measured on the real clock: no two runs have the same."""

METRICS: Mapping[str, Metric] = {
    one.name: one for one in (*OF_JOBS, *OF_MACHINES, *OF_DECISIONS, *OF_SWEEPS, *OF_THE_CLOCK)
}
"""All figures by name, those that a scenario plugs in aside."""


UNITS = {"s": "s", "h": "h", "j": "J", "kj": "kJ", "kwh": "kWh", "w": "W", "percent": "%"}
"""The last words of names of plugged-in metrics that are units, and how these are written."""


def label_of(name: str) -> str:
    """What tables and axes call a figure, with its unit.

    One that was plugged in is called by its name, of which the last word may be a unit.
    """
    known = METRICS.get(name)
    if known is not None:
        return known.label
    title, _, unit = name.rpartition("_")
    if title and unit in UNITS:
        return f"{title.replace('_', ' ')} ({UNITS[unit]})"
    return name.replace("_", " ")


def row_texts(values: Sequence[float | None], missing: str = "-") -> list[str]:
    """The figures of one row as people read them, all with the same decimals.

    `missing` stands for a figure that does not apply.
    """
    known = [value for value in values if value is not None]
    if all(isinstance(value, int) for value in known):
        digits = 0
    else:
        largest = max(abs(value) for value in known)
        digits = 1 if largest >= 100 else 3 if largest == 0 or largest >= 0.01 else 6
    return [missing if value is None else f"{value:z,.{digits}f}" for value in values]
