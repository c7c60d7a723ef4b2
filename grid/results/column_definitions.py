"""What each column of a run's and a sweep's tables means. Those that parts add come after them."""

from __future__ import annotations

from collections.abc import Mapping

Columns = Mapping[str, tuple[str, str]]
"""Unit and meaning by the name of a column, in the order of the file."""

JOB_COLUMNS: Columns = {
    "job_id": ("", "Number of the job, unique within `workload_name`."),
    "workload_name": ("", "Name of the run; with several VOs, a point and the job's own VO."),
    "profile": ("", "Batsim's; always empty."),
    "submission_time": ("s", "When the user submitted the job."),
    "requested_number_of_resources": ("CPUs", "CPUs that the job holds while it runs."),
    "requested_time": (
        "s",
        "The user's estimate of its run time, at 1,000 MIPS unless a generator says otherwise.",
    ),
    "success": ("", "1 if the job completed, else 0."),
    "final_state": (
        "",
        "Batsim's word: COMPLETED_SUCCESSFULLY; REJECTED if it never ran; of one that failed "
        "while it ran, COMPLETED_WALLTIME_REACHED if its `run_time` is `requested_time` or more, "
        "else COMPLETED_FAILED, as on a machine that is faster than the reference.",
    ),
    "starting_time": ("s", "First start; empty for a job that never ran."),
    "execution_time": (
        "s",
        "From the first start to the end, suspension and restarts included. It is not "
        "`execution_time_mean` of metrics.json, which counts from the assignment (PU Eq. 5).",
    ),
    "finish_time": ("s", "End of the job; empty for a job that never ran."),
    "waiting_time": ("s", "From submission to first start; empty for a job that never ran."),
    "turnaround_time": (
        "s",
        "From submission to end; the response time. Empty for a job that never ran.",
    ),
    "stretch": ("", "turnaround_time / execution_time."),
    "allocated_resources": (
        "",
        'CPUs, numbered through the grid, as intervals: "0-3 5". Empty for a job that was '
        "preempted or began again, for gangs, and where policy `batsim` allocates CPUs itself.",
    ),
    "consumed_energy": ("J", "Watts of its CPUs times the time; empty where no watts are given."),
    "metadata": ("", "Batsim's; always empty."),
    "vo": ("", "The VO of the job's user."),
    "user": ("", "Number of the user within the VO; -1 where no user is named."),
    "executed_vo": ("", "The VO where the job ran; empty for a job that never ran."),
    "cluster": (
        "",
        "The cluster where the job ran, `cluster` where the scenario names none; empty for a job "
        "that never ran.",
    ),
    "machine": (
        "",
        "Number of the machine in its cluster; empty where it is not one, as of a gang in a "
        "cluster of several machines, and for a job that never ran.",
    ),
    "hops": ("", "How often the job was sent from one VO to another."),
    "utility": ("0 to 1", "How well its resource fits its requirements; 0 if it did not run."),
    "deadline": ("s", "When it should have completed; empty without a deadline."),
    "assigned_time": (
        "s",
        "When it was assigned to the resource where it ran; empty for a job that never ran.",
    ),
    "state": ("", "completed, failed or rejected."),
    "preemptions": (
        "",
        "How often it was stopped before its end: to let another job run, or since its "
        "machine went down.",
    ),
    "restarts": ("", "How often it began again from nothing."),
    "power": ("", "Factor of the watts of busy CPUs while this job holds them."),
    "run_time": (
        "s",
        "How long it held its CPUs, less what was lost to restarts, what preemptions cost, and "
        "boots: `execution_time` without all that and suspensions. Its slowdown is "
        "`turnaround_time / run_time`.",
    ),
}
"""Of jobs.csv and jobs.parquet, a row a job. Batsim's columns come first. Times count from the
beginning of virtual time."""

SERIES_COLUMNS: Columns = {
    "time_s": ("s", "Beginning of the interval; it lasts until the next row of the same cluster."),
    "vo": ("", "The VO of the cluster."),
    "cluster": ("", "The cluster."),
    "busy_cpus": ("CPUs", "CPUs that jobs held, mean over the interval."),
    "utilization": ("0 to 1", "CPUs that jobs held, over the CPUs of the cluster."),
    "queued": (
        "jobs",
        "Jobs that were assigned to the cluster and had not started, mean over the interval.",
    ),
    "lost_cpus": ("CPUs", "CPUs that idled while a gang waited that they could run (GM Eq. 6)."),
    "license_use": ("0 to 1", "Copies of licenses in use over copies that there are."),
    "power_w": ("W", "What the machines drew; empty where no watts are given."),
}
"""Of series.parquet, a row for each cluster and interval."""

EVENT_COLUMNS: Columns = {
    "time_us": ("us", "When, in microseconds since the beginning of virtual time."),
    "entity": ("", "Who handled the message or decided: `VO/part`, such as `vo1/scheduler`."),
    "kind": ("", "`message`: it was handled then. `decision`: it was taken then."),
    "event": ("", "The message or decision, by a word of the lists below."),
    "peer": ("", "Who sent the message; to whom a decision is told. Empty where nobody is."),
    "vo": ("", "The VO of the user of the job that it is about; empty where it is about none."),
    "job": ("", "Number of that job; `job_id` of jobs.csv."),
    "call": ("", "A call for bids: the Local Scheduler that called, and its number there."),
    "to_vo": ("", "The VO that a decision is for; of a message, the VO that it names."),
    "resource": ("", "Number of the resource in that VO: a machine, or a cluster as a whole."),
    "cluster": ("", "The cluster that the message names, or where the job started or ended."),
    "machine": ("", "Number of the machine in its cluster; empty: any."),
    "processors": ("CPUs", "CPUs that the job asks for."),
    "ram_mb": ("MB", "Memory of its machine that the job asks for; empty: none."),
    "licenses": ("", "Bit mask of the licenses of the cluster that the job needs; empty: none."),
    "estimate_us": ("us", "The estimate of the job's run time, at 1,000 MIPS by default."),
    "ttl": ("", "How often the job might still be forwarded; of `forward`, that time included."),
    "hops": ("", "How often it was sent from one VO to another; of `forward`, that time included."),
    "utility": ("0 to 1", "How well the resource fits the job's requirements."),
    "waits": ("", "Whether the job shall queue there if the resource is busy."),
    "free_cpus": (
        "CPUs",
        "CPUs of the resource that no job was promised, below zero where more were promised than "
        "there are. Of a Local Scheduler: what it believed. Of a Resource Manager: the count after "
        "its decision. Where a job is given up: the most that was believed free anywhere.",
    ),
    "age_us": (
        "us",
        "For how long that belief may have been wrong; 0 of the VO's own resources. This and "
        "`free_cpus` are empty where no status had come, and where a job goes to a bidder or to a "
        "VO that asked for work.",
    ),
    "load": ("", "CPUs that jobs hold or wait for, over CPUs: of a cluster, or of the whole VO."),
    "state": ("", "How the job ended, or what an answer says."),
    "preemptions": ("", "Of an `end`: how often the job was stopped before; see jobs.csv."),
    "restarts": ("", "Of an `end`: how often it began again from nothing."),
}
"""Of events.parquet (`grid run --events`), a row for each message that an entity handled and each
decision that it took. Rows are in the order of time, then of entities' names, then as handled."""

DECISIONS: Columns = {
    "choose": ("", "A Local Scheduler takes a resource of its own VO for the job."),
    "forward": ("", "A Local Scheduler sends the job to another VO, for a resource there."),
    "ask": ("", "A Local Scheduler calls another VO for a bid."),
    "send_back": ("", "A Local Scheduler returns a job that its VO does not admit."),
    "give_up": ("", "A Local Scheduler finds no place: the job ends as failed or rejected."),
    "admit": ("", "A Resource Manager assigns the resource to the job."),
    "hold_back": (
        "",
        "A Resource Manager has the job wait with it until enough CPUs of the resource are left "
        "over: others go first (`priority`), or another VO may still ask for it (`pull`).",
    ),
    "refuse": ("", "A Resource Manager does not: too few CPUs of the resource are free."),
    "not_admit": ("", "A Resource Manager does not: its VO takes no such job of that other VO."),
    "publish": ("", "A Resource Manager publishes a status snapshot."),
    "submit": ("", "A job enters its cluster directly, past the Local Scheduler."),
    "start": ("", "The local policy starts the job, for the first time."),
    "end": ("", "The job ends."),
}
"""Words of the column `event` of events.parquet that are decisions."""

PHASE_COLUMNS: Columns = {
    "vo": ("", "The VO of the job's user."),
    "job": ("", "Number of the job; `job_id` of jobs.csv."),
    "phase": (
        "",
        "`unassigned`: from its submission until a resource was assigned to it. `queued`: until "
        "its first start. `running`: until its end.",
    ),
    "begin_s": ("s", "When the phase began."),
    "end_s": ("s", "When it ended. A phase of no length has no row."),
    "processors": ("CPUs", "CPUs that the job asks for."),
    "executed_vo": ("", "The VO where it ran."),
    "cluster": ("", "The cluster where it ran."),
    "machine": ("", "Number of the machine in its cluster; empty where it is not one."),
    "hops": ("", "How often it was sent from one VO to another."),
}
"""Of phases.parquet (`grid export --to parquet`), a row for each phase of each job that ran."""

SCHEDULE_COLUMNS: Columns = {
    "batsim_version": ("", "Who made it: `grid-emulator-` and the version."),
    "nb_jobs": ("jobs", "Jobs that users submitted."),
    "nb_jobs_finished": ("jobs", "Jobs that started and ended."),
    "nb_jobs_success": ("jobs", "Jobs that ran to their end."),
    "nb_jobs_killed": ("jobs", "Jobs that were killed after their requested time."),
    "nb_jobs_rejected": ("jobs", "Jobs that never ran."),
    "success_rate": ("0 to 1", "nb_jobs_success / nb_jobs."),
    "makespan": ("s", "From the first submission to the last end of a job that ran."),
    "mean_waiting_time": ("s", "Mean of `waiting_time` of jobs.csv."),
    "max_waiting_time": ("s", "The longest."),
    "mean_turnaround_time": ("s", "Mean of `turnaround_time` of jobs.csv."),
    "max_turnaround_time": ("s", "The longest."),
    "mean_slowdown": ("", "Mean of `stretch` of jobs.csv."),
    "max_slowdown": ("", "The largest."),
    "simulation_time": ("s", "`wall_seconds` of manifest.json."),
    "consumed_joules": ("J", "`energy_j` of the grid; empty where no watts are given."),
}
"""Of schedule.csv (`grid export --to batsim`), one row, with names of Batsim's. All jobs count,
also where figures of the run leave out its warm-up."""

RESULT_COLUMNS: Columns = {
    "seed": ("", "Seed of the run; before it stands a column for each axis of the sweep."),
    "scope": ("", "`grid`, or the name of a VO; in clock.csv also a policy."),
    "metric": ("", "Name of the figure."),
    "value": ("", "Its value, in the unit of the figure; empty where it does not apply."),
}
"""Of a sweep's results.csv and results.parquet, and of clock.csv and clock.parquet. All of them,
and differences.csv, are written when the sweep has ended, and are not there while it goes on."""

DIFFERENCE_COLUMNS: Columns = {
    "baseline": (
        "",
        "The value of the compared axis whose figure is taken off; before it stands a column for "
        "each axis of the sweep.",
    ),
    "metric": ("", "Name of the figure, of the whole grid."),
    "difference": ("", "Mean over seeds of the figure minus that of the baseline."),
    "low": ("", "Where its confidence interval begins (Student's t, paired by seed)."),
    "high": ("", "Where it ends. An interval without zero is a significant difference."),
    "level": ("0 to 1", "Confidence level of the interval, not corrected for their number."),
    "seeds": ("", "How many seeds both have."),
    "p_value": (
        "0 to 1",
        "Of the two-sided paired t-test. Empty of a single seed, and where all differ alike.",
    ),
    "seeds_to_decide": (
        "",
        "With so many seeds the interval would just not contain zero, if differences go on as they "
        "are: a rough guess where seeds are few. Empty where there is no p_value, or too many.",
    ),
}
"""Of a sweep's differences.csv: the metrics that its report compares, for each pair of values."""

MANIFEST_KEYS: Columns = {
    "version": ("", "Version of the emulator."),
    "sources": (
        "",
        "A hash of the emulator's sources, by which one commit can be told from the next.",
    ),
    "versions.*": ("", "Versions of Python and of the libraries that a result may depend on."),
    "scenario": ("", "Name of the scenario."),
    "seed": ("", "Seed of the run."),
    "digest": (
        "",
        "SHA-256 of the results. Runs in virtual time of one scenario and seed have the same, in "
        "one process and on any number of Ray actors. That of a live run is like no other.",
    ),
    "cpus": ("CPUs", "CPUs of all machines of the grid."),
    "jobs.completed": ("jobs", "Jobs that ran to their end."),
    "jobs.failed": ("jobs", "Jobs that were killed, or forwarded until their TTL was spent."),
    "jobs.rejected": ("jobs", "Jobs that were rejected: no resource took them; they never ran."),
    "jobs.skipped.*": (
        "jobs",
        "Records of a log that were left out, by reason: `filtered` are those that no filter "
        "takes. Besides remarks on records that are jobs: `out_of_order`, "
        "`negative_requested_time`, `longer_than_requested`.",
    ),
    "without_effect.*": (
        "",
        "Why a setting came to nothing in this run, by its key: costs of preemption, where no job "
        "of the cluster was preempted.",
    ),
    "measured.jobs": (
        "jobs",
        "How many jobs the figures of jobs count. Keys of `measured`: only where the scenario says "
        "`submitted_from_s` or `submitted_until_s`.",
    ),
    "measured.submitted_from_s": ("s", "They were submitted from then on."),
    "measured.submitted_until_s": ("s", "They were submitted before that; null: until the end."),
    "messages": (
        "",
        "Messages that entities handled. In virtual time, in a scenario with `faults`, "
        "acknowledgements and repeats are among them.",
    ),
    "snapshots": ("", "Status snapshots that VOs published."),
    "rounds": ("", "Windows that the Ray actors advanced by, together; 0 in one process."),
    "dealt_anew": (
        "",
        "How often VOs were dealt anew over the Ray actors, since they took other time than was "
        "expected.",
    ),
    "actors": ("", "Ray actors of the run; 0 in one process."),
    "start_seconds": ("s", "Real time before the first event: compiling, starting Ray, actors."),
    "wall_seconds": ("s", "Real time from the first event to the last."),
    "profile.actors.*.busy": (
        "s",
        "Real time that the Ray actor of that number spent on events. Keys of `profile`: of "
        "windowed runs only.",
    ),
    "profile.actors.*.overhead": ("s", "Real time that it spent on what it tells and is told."),
    "profile.actors.*.waiting": ("s", "Real time until the others had told it."),
    "profile.critical_path": ("s", "Busy time and overhead of the slowest actor of each window."),
    "profile.predicted.*": (
        "s",
        "With --profile: the wall clock of the run on so many cores, reckoned from its windows.",
    ),
    "profile.why": ("", "With --profile: why more cores would not give more, and what would help."),
    "compiled_before": (
        "",
        "Whether all code was compiled before the run. Where it was not, a small run calls it as "
        "plain Python: the results are the same, the times longer. Runs of a sweep wait for it.",
    ),
    "plan_seconds.*.count": ("", "Plans of the policy of that name."),
    "plan_seconds.*.mean": (
        "s",
        "Processor time of a plan, mean. To be compared only between runs of one machine in which "
        "`compiled_before` is true: `--compile-first` sees to that.",
    ),
    "plan_seconds.*.max": ("s", "The longest processor time of a plan."),
    "plan_seconds.*.total": ("s", "Processor time of all plans."),
    "plan_seconds.*.count_below_*": (
        "",
        "Plans made while fewer jobs waited than the number says, and at least half as many.",
    ),
    "plan_seconds.*.mean_below_*": ("s", "Processor time of such a plan, mean."),
    "plans_not_measured": (
        "",
        "Policies whose plans are part of a compiled loop, on pools and under gangs. One call "
        "of it plays many instants, so that no time in it is that of a plan alone. Of a live run "
        "all: an actor that starts again makes plans of its past again.",
    ),
    "schedulers.*.scheduler": ("", "Command or endpoint of the scheduler that decides there."),
    "schedulers.*.messages": ("", "Messages that it was sent, by `VO/cluster`."),
    "schedulers.*.total": ("s", "Real time that its answers took."),
    "schedulers.*.max": ("s", "Real time that its slowest answer took."),
    "runtime": ("", "sequential (one process), windowed (Ray, virtual time) or live."),
    "placement": ("", "How entities were laid on Ray actors; null in one process."),
    "cpu_seconds.read": ("s", "Processor time to read and build the scenario and its jobs."),
    "cpu_seconds.run": ("s", "Processor time of all processes, from first event to last."),
    "parts.*": ("", "SHA-256 of the source of each part that the scenario plugged in."),
    "logs.*": ("", "SHA-256 of the file of each log that the scenario plays, as it is on disk."),
    "meanings.*": (
        "",
        "What a metric that the scenario plugged in means: its docstring's first paragraph.",
    ),
    "live.speedup": ("", "Virtual seconds in a real second. Keys of `live`: of live runs only."),
    "live.actors": ("", "Ray actors of the live run."),
    "live.kills": ("", "Actors that were killed on purpose."),
    "live.restarts": ("", "Actors that started again."),
    "live.interventions": ("", "What somebody did to the run on its page."),
    "live.not_healed": ("", "Of that, what was taken down or cut off and not healed."),
    "live.unfinished": ("jobs", "Jobs that had not ended when the time was over."),
    "live.interrupted": ("", "Whether Ctrl-C or SIGTERM ended the run; it has what there was."),
    "live.late.messages.count": ("", "Messages whose lateness was measured."),
    "live.late.messages.p50_s": ("s", "Their median lateness, in real time."),
    "live.late.messages.p99_s": ("s", "Their lateness that one in a hundred passes."),
    "live.late.messages.max_s": ("s", "Their longest lateness."),
    "live.late.timers.count": ("", "Timers whose lateness was measured."),
    "live.late.timers.p50_s": ("s", "Their median lateness, in real time."),
    "live.late.timers.p99_s": ("s", "Their lateness that one in a hundred passes."),
    "live.late.timers.max_s": ("s", "Their longest lateness."),
    "live.late.share": (
        "",
        "Lateness of all messages and timers together, over the time from submission to end of all "
        "jobs together, both in virtual time. It is the most that lateness can have added to the "
        "times of jobs: two messages that were late at once count both.",
    ),
}
"""Of manifest.json, with `.` between the keys of nested mappings and `*` for any name."""

INTERVENTION_COLUMNS: dict[str, tuple[str, str]] = {
    "number": ("", "Its place among what was done, from 1; what was refused has none."),
    "time_s": ("s", "Virtual time from which it took effect, or at which it was refused."),
    "real_s": ("s", "Real time since the run began at which it did, pauses included."),
    "what": (
        "",
        "kill, take_machine_down, take_vo_down, cut_off, heal, pause or go_on. What is taken down "
        "or cut off is so until heal.",
    ),
    "vo": ("", "VO that was taken down or cut off, or whose machine was."),
    "other": ("", "VO that it was cut off from."),
    "cluster": ("", "Cluster of the machine."),
    "machine": ("", "Its number in the cluster, from 0."),
    "entity": ("", "Entity whose actor was killed."),
    "refused": (
        "",
        "Why it was not done. Only wishes that were refused have it, the first 1,000 of a run.",
    ),
}
"""Of interventions.json, a list of what somebody did to a live run on its page. Each has the first
four, and those of the others that it was done to."""


SWEEP_KEYS: Columns = {
    "name": ("", "Name of the experiment."),
    "code": ("", "A hash of the sources on which results depend. Runs of another are done anew."),
    "version": ("", "Version of the emulator."),
    "sources": ("", "A hash of all its sources; `grid --version` prints that of an installation."),
    "versions.*": ("", "Versions of Python and of the libraries that a result may depend on."),
    "logs.*": ("", "SHA-256 of each log."),
    "axes.*": ("", "The values of each axis, or their labels."),
    "seeds": ("", "The seeds."),
    "level": ("0 to 1", "Level of the confidence intervals."),
    "compare": ("", "The axis whose values are compared."),
    "repeated_over": ("", "The axis whose values are repetitions; null: none."),
    "metrics": ("", "The metrics that the experiment names."),
    "meanings.*": ("", "What metrics of your own mean."),
    "bounds.*": ("", "Their least and their largest value, as far as they say so; null: none."),
    "measured": ("", "The times between which measured jobs were submitted; empty: all jobs are."),
    "cases": ("", "Each run: the values of its axes, its seed, and its KEY."),
    "absent": (
        "",
        "Combinations that the scenario refuses, with the reason. They have no run. Only "
        "`grid reproduce` leaves some out; `grid sweep` then runs nothing.",
    ),
}
"""Of a sweep's sweep.json. A run is in the sweep's tables if `cases` names it: files of earlier
settings may lie beside it."""

RUN_KEYS: Columns = {
    "scenario.*": ("", "The scenario with all defaults filled in, as in a run's scenario.yaml."),
    "seed": ("", "Seed of the run."),
    "digest": ("", "SHA-256 of the results, as in the manifest of the same run by itself."),
    "jobs.*": ("jobs", "As in manifest.json."),
    "messages": ("", "Messages that entities handled."),
    "metrics.grid.*": ("", "The metrics of the grid; those of each VO are in `metrics.vos`."),
    "metrics.vos.*": ("", "The metrics of a VO."),
    "more.*": ("", "Metrics that only sweeps have."),
    "quantiles.wait_s": (
        "s",
        "Percentiles 0 to 100 of the waits of measured jobs that ran, each the wait of a job.",
    ),
    "quantiles.slowdown": (
        "",
        "Percentiles 0 to 100 of the slowdowns of measured jobs that completed.",
    ),
    "flows": ("jobs", "Triples: position of a VO, of the VO that ran its jobs, and how many."),
    "courses.*": ("", "Points of the curves over time that the report draws."),
    "key": ("", "The file's own name."),
    "checksum": ("", "SHA-256 of all the rest of the file."),
}
"""Of a sweep's `runs/KEY.json`, what came of a run. `clock/KEY.json` has what it cost:
`cpu_seconds`, `wall_seconds` and `plan_seconds` of manifest.json, and a checksum. Tables and
reports are made of these files each time: whoever doubts a table sweeps in a copy of the folder,
and compares. A checksum finds accidents, not forgery: against that helps to run again, since the
digest of a run is the same everywhere."""
