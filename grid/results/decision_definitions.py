"""What the figures of decisions mean: of the information they go by, and of what they lead to."""

from __future__ import annotations

from grid.results.metric import COUNT, Metric

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
