"""Stories of 200 random jobs, and why they waited, against the events of their runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import grid
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.cluster_facts import ClusterFacts
from grid.model.event import DECISION, MESSAGE, Event
from grid.model.job import JobKey
from grid.model.time import SECOND_US
from grid.results.events import EventFile
from grid.results.history import ClusterLog, Stay, job_story, whereabouts, why_waiting
from tests.results.history.random_runs import Told, random_grid, told

RUNS, JOBS_A_RUN = 20, 10


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    draw = Random(18)
    return [told(random_grid(draw), tmp_path_factory.mktemp("run")) for _ in range(RUNS)]


def some_jobs(run: Told, seed: int) -> Iterator[JobKey]:
    rows = Random(seed).sample(range(len(run.results)), min(JOBS_A_RUN, len(run.results)))
    for row in rows:
        yield run.grid.vos[int(run.results.vo[row])].name, int(run.results.number[row])


def logs(run: Told) -> list[ClusterLog]:
    return [ClusterLog(facts, run.file.of_cluster(facts)) for facts in run.file.clusters]


def test_a_story_has_every_step_of_the_job_in_order(runs: list[Told]) -> None:
    """From what the parquet file gives for one job as from all events, and it ends as the job."""
    told_of = forwarded = refused = 0
    for number, run in enumerate(runs):
        states = {
            (run.grid.vos[int(vo)].name, int(job)): int(state)
            for vo, job, state in zip(
                run.results.vo, run.results.number, run.results.outcome.state, strict=True
            )
        }
        hops = dict(zip(states, run.results.placement.hops.tolist(), strict=True))
        for key in some_jobs(run, number):
            story = job_story(key, run.events)
            assert story == job_story(key, run.file.of_job(key))
            mine = [one for one in run.events if (one.vo, one.job) == key]
            words = [line.event.event for line in story]
            assert [line.time_us for line in story] == sorted(line.time_us for line in story)
            assert words[0] in ("submit", "submit_job")
            # What was decided about it is told, all of it.
            decided = [one for one in mine if one.kind == DECISION]
            assert [line.event for line in story if line.event.kind == DECISION] == decided
            assert words.count("forward") == words.count("forward_job") == hops[key]
            assert words.count("refuse") == sum(one.event == "refused" for one in mine)
            ended = [one.state for one in decided if one.event in ("end", "give_up")]
            assert ended == [("completed", "failed", "rejected")[states[key] - 3]]
            told_of += 1
            forwarded += "forward" in words
            refused += "refuse" in words
    assert told_of >= 190
    assert forwarded >= 20
    assert refused >= 2


def test_what_was_believed_is_what_the_scheduler_had_been_told(runs: list[Told]) -> None:
    """A belief about another VO is as old as its last snapshot, or older; one about home is new."""
    checked = 0
    for run in runs:
        for place, event in enumerate(run.events):
            if event.event not in ("choose", "forward") or event.age_us is None:
                continue
            home = event.entity.partition("/")[0]
            if event.to_vo == home:
                assert event.age_us == 0
                continue
            assert event.age_us > 0
            period_us = run.grid.settings.protocol.snapshot_period_us or 0
            assert event.age_us <= event.time_us
            if event.time_us > 3 * period_us:
                assert event.age_us <= 2 * period_us + 10_000_000
            assert event.free_cpus is not None
            assert run.events[place - 1].event in ("resources", "forward")
            checked += 1
    assert checked > 50


@pytest.mark.parametrize("lease_s", [0.0, 100.0])
def test_a_job_that_goes_to_the_best_bid_is_not_said_to_go_by_old_status(
    tmp_path: Path, lease_s: float
) -> None:
    """The rule calls all for each job: nobody goes by what was told before."""
    auction = {"name": "auction", "settings": {"when": "always", "lease_s": lease_s}}
    pools = [("slow", 500), ("fast", 4000)]
    jobs = [{"submit_s": 40 + n, "run_s": 60} for n in range(3)]
    scenario: dict[str, Any] = {
        "protocol": {"forwarding": auction, "snapshot_period_s": 10, "ttl": 1},
        "vos": [
            {"name": name, "clusters": [{"policy": "fcfs", "cpus": 4, "mips": mips}]}
            for name, mips in pools
        ],
    }
    scenario["vos"][0]["workload"] = {"jobs": jobs}
    run = told(realize(load_scenario(scenario), "here")[0], tmp_path)
    events = [one for one in run.events if one.event == "forward"]
    assert [one.to_vo for one in events] == ["fast"] * 3
    assert all(one.free_cpus is None and one.age_us is None for one in events)


def slow_state(events: list[Event], facts: ClusterFacts, time_us: int) -> tuple[list[Stay], ...]:
    """Who runs and who waits after all that happened by then, event by event."""
    there: dict[tuple[str | None, int | None], Event] = {}
    started: dict[tuple[str | None, int | None], int | None] = {}
    for event in events:
        if event.entity != facts.entity or event.time_us > time_us:
            continue
        key = (event.vo, event.job)
        if event.event in ("run_job", "submit"):
            there[key] = event
        elif event.event == "start":
            started[key] = event.machine
        elif event.event == "end":
            del there[key], started[key]
    runs = [key for key in there if key in started]
    waits = [key for key in there if key not in started]
    return tuple(
        [
            Stay(
                key, there[key].time_us, there[key].processors, there[key].ram_mb or 0.0, 0,
                machine=started.get(key, -1),
            )
            for key in keys
        ]
        for keys in (runs, waits)
    )  # type: ignore[return-value, arg-type]  # fmt: skip


def test_why_a_job_waits_is_so_by_the_events(runs: list[Told]) -> None:
    """At random moments of its wait: who is ahead, and that what it lacks is not there."""
    draw = Random(3)
    asked = lacking = behind = 0
    for run in runs:
        for log in logs(run):
            for key, stay in log.stays.items():
                if stay.start_us - stay.came_us < 2:
                    continue
                time_us = draw.randrange(stay.came_us, stay.start_us)
                why = why_waiting(key, log.at(time_us))
                running, waiting = slow_state(run.events, log.facts, time_us)
                assert why is not None
                order = [one.key for one in waiting]
                assert list(why.ahead) == order[: order.index(key)]
                free = [
                    log.facts.cpus[m] - sum(r.processors for r in running if r.machine == m)
                    for m in range(len(log.facts.cpus))
                ]
                may = [stay.bound] if stay.bound >= 0 else range(len(free))
                memory = [
                    (log.facts.ram_mb[m] or 1e9) - sum(r.ram_mb for r in running if r.machine == m)
                    for m in range(len(free))
                ]
                fits = [m for m in may if free[m] >= 1 and memory[m] >= stay.ram_mb]
                assert (why.lacks == ()) == bool(fits)
                for lack in why.lacks:
                    have = free if lack.what == "cpus" else memory
                    assert lack.free == have[why.machine] < lack.needed
                if not why.lacks and log.facts.policy == "fcfs":
                    assert why.ahead
                assert why.sentences()
                asked, lacking = asked + 1, lacking + bool(why.lacks)
                behind += bool(why.ahead)
    assert asked > 200
    assert lacking > 100
    assert behind > 100


def test_a_job_lacks_nothing_at_the_moment_at_which_it_starts(runs: list[Told]) -> None:
    started = 0
    for run in runs:
        for log in logs(run):
            for stay in log.stays.values():
                state = log.at(stay.start_us, still_waiting=stay.key)
                why = why_waiting(stay.key, state)
                assert why is not None
                assert why.machine in range(len(log.facts.cpus))
                assert why.lacks == (), (stay, why)
                started += 1
    assert started > 300


def test_where_a_job_is(runs: list[Told]) -> None:
    """Before and after each step that its story has, in words."""
    draw = Random(5)
    for number, run in enumerate(runs):
        for key in some_jobs(run, number):
            mine = run.file.of_job(key)
            first = next(one for one in mine if one.event in ("submit", "submit_job"))
            assert whereabouts(key, mine, first.time_us - 1) == ""
            last = draw.choice([one for one in mine if one.event in ("start", "end", "give_up")])
            where = whereabouts(key, mine, last.time_us)
            assert where.startswith("It runs" if last.event == "start" else "It has ended")
            for event in mine:
                if event.event == "forward":
                    words = f"It is on its way from {event.entity[:3]}"
                    assert whereabouts(key, mine, event.time_us).startswith(words)


def test_a_message_is_no_decision() -> None:
    event = Event(0, "v/cluster/c", MESSAGE, "local_status")
    assert job_story(("v", 1), [event]) == []


def test_a_job_in_several_lines_is_said_to_stand_there() -> None:
    """Of redundant requests no bid is awaited: the lines are what the job waits in."""

    def ask(time_us: int, to_vo: str, waits: bool) -> Event:
        entity = "north/scheduler"
        return Event(
            time_us,
            entity,
            DECISION,
            "ask",
            vo="north",
            job=7,
            to_vo=to_vo,
            processors=2,
            waits=waits,
        )

    key = ("north", 7)
    events = [ask(1, "south", True), ask(1, "west", True), ask(5, "west", False)]
    told = [line.text for line in job_story(key, events)]
    assert told == [
        "north requests a queued reservation in south.",
        "north requests a queued reservation in west.",
        "north calls west for a bid.",
    ]
    lines = "It has queued reservations in south and west; the first with 2 CPUs free runs it."
    assert whereabouts(key, events, 4) == lines
    assert whereabouts(key, events, 5) == "north waits for bids."


def test_a_job_that_is_held_back_for_those_who_go_first(tmp_path: Path) -> None:
    """The guest's job comes while a job of the host runs, which has another one at 50 s."""
    own = [{"run_s": 100, "cpus": 2}, {"submit_s": 50, "run_s": 100, "cpus": 2}]
    guests = [{"submit_s": 10, "run_s": 50, "cpus": 2}]
    for priority, word, where in (
        ("local", "hold_back", "It waits in the admission queue of host until"),
        ("none", "run_job", "It waits in the queue of cluster cluster of host"),
    ):
        host = {"name": "host", "priority": priority, "clusters": [{"cpus": 2}]}
        guest = {"name": "guest", "clusters": [{"cpus": 1}]}
        vos = [host | {"workload": {"jobs": own}}, guest | {"workload": {"jobs": guests}}]
        folder = tmp_path / priority
        grid.run({"name": "held", "vos": vos}, out=folder, events=True)
        mine = EventFile(folder).of_job(("guest", 1))
        words = [line.event.event for line in job_story(("guest", 1), mine)]
        assert words[words.index("admit") + 1] == word
        assert whereabouts(("guest", 1), mine, 60 * SECOND_US).startswith(where)


def test_only_jobs_that_enter_a_cluster_directly_are_said_to(tmp_path: Path) -> None:
    """A VO may have both kinds: those of the grid's workload come through its scheduler."""
    times = {
        "arrivals": {"distribution": "fixed", "mean_s": 10.0},
        "work": {"distribution": "fixed", "mean_s": 30.0},
    }
    routed = {"generator": "stochastic", "settings": {"jobs": 2, **times}}
    own = [{"number": 100 + n, "run_s": 20.0, "ram_mb": 50.0} for n in range(2)]
    machines = [{"cpus": 1, "ram_mb": 99.0}]
    vos = [
        {"name": "a", "clusters": [{"machines": machines}],
         "workload": {"entry_point": "cluster", "jobs": own}},
        {"name": "b", "clusters": [{"cpus": 3}]},
    ]  # fmt: skip
    grid.run({"workload": routed, "vos": vos}, out=tmp_path / "run", events=True)
    events = EventFile(tmp_path / "run")
    entered = [(one.vo, one.job, one.ram_mb) for one in events.all() if one.event == "submit"]
    assert entered == [("a", 100, 50.0), ("a", 101, 50.0)]
    story = [line.event.event for line in job_story(("a", 0), events.of_job(("a", 0)))]
    assert story == ["submit_job", "choose", "admit", "run_job", "start", "end"]


def test_a_gang_on_several_machines_is_said_to_be_on_none(tmp_path: Path) -> None:
    """Five tasks on machines of two processors; a cluster of one machine has them on that one."""
    for count, machine in ((3, None), (1, 0)):
        machines = [{"cpus": 6 // count, "count": count}]
        cluster = {"machines": machines, "policy": "afcfs"}
        jobs = [{"run_s": 10.0, "cpus": 5}]
        vo = {"name": "vo", "clusters": [cluster], "workload": {"jobs": jobs}}
        run = grid.run({"vos": [vo]}, out=tmp_path / f"{count}", events=True)
        assert run.jobs_table()["machine"].to_pylist() == [machine]
        mine = EventFile(tmp_path / f"{count}").of_job(("vo", 1))
        assert [one.machine for one in mine if one.event in ("start", "end")] == [machine] * 2


def test_a_story_says_how_often_the_job_was_stopped(tmp_path: Path) -> None:
    pool = {"name": "pool", "machines": [{"cpus": 2}], "policy": "easy"}
    down = [
        {"vo": "a", "cluster": "pool", "machine": 0, "at_s": at_s, "for_s": 5} for at_s in (20, 40)
    ]
    vos = [{"name": "a", "clusters": [pool], "workload": {"jobs": [{"run_s": 100}]}}]
    faults = {"heal_s": 100, "machine_outages": down}
    grid.run({"vos": vos, "faults": faults}, out=tmp_path / "run", events=True)
    mine = EventFile(tmp_path / "run").of_job(("a", 1))
    *_, last = job_story(("a", 1), mine)
    assert last.text == "It ends: completed. It was preempted 2 times and restarted 2 times."
    # Two entities that hear the same are one step.
    twice = Event(1, "a/dispatcher", MESSAGE, "run_job", vo="a", job=0, cluster="pool")
    assert (
        len(job_story(("a", 0), [twice, twice._replace(time_us=2, entity="a/cluster/pool")])) == 1
    )
