"""Histories of jobs and why they wait, by hand; what checks them on runs is `slow_history`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.records import DECISION, MESSAGE, ClusterFacts, Event
from grid.model.time import SECOND_US
from grid.results.definitions import EVENT_TEXTS, FILES, message_names
from grid.results.events import EventFile
from grid.results.history import NOT_KEPT, ClusterLog, Stay, job_history, whereabouts, why_waiting
from tests.results.random_runs import recorded


@pytest.mark.parametrize("lease_s", [0.0, 100.0])
def test_a_job_sent_to_a_bidder_has_no_known_state(tmp_path: Path, lease_s: float) -> None:
    """The policy calls all VOs for each job, whatever their known states are."""
    auction = {"name": "auction", "settings": {"when": "always", "lease_s": lease_s}}
    pools = [("slow", 500), ("fast", 4000)]
    jobs = [{"submit_s": 40 + n, "run_s": 60} for n in range(3)]
    scenario: dict[str, Any] = {
        "protocol": {
            "forwarding": auction,
            "snapshots": {"period_s": 10, "load_above": 0.9, "jobs_above": 10},
            "ttl": 1,
        },
        "vos": [
            {"name": name, "clusters": [{"policy": "fcfs", "cpus": 4, "mips": mips}]}
            for name, mips in pools
        ],
    }
    scenario["vos"][0]["workload"] = {"jobs": jobs}
    run = recorded(realize(load_scenario(scenario), "here")[0], tmp_path)
    events = [one for one in run.events if one.event == "forward"]
    assert [one.to_vo for one in events] == ["fast"] * 3
    assert all(one.free_cpus is None and one.age_us is None for one in events)


def test_whereabouts_of_a_job_with_several_queued_reservations() -> None:
    """A job with redundant requests waits in queues, not for bids."""

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
    texts = [line.text for line in job_history(key, events)]
    assert texts == [
        "north requests a queued reservation in south.",
        "north requests a queued reservation in west.",
        "north calls west for a bid.",
    ]
    lines = "It has queued reservations in south and west; the first with 2 CPUs free runs it."
    assert whereabouts(key, events, 4) == lines
    assert whereabouts(key, events, 5) == "north waits for bids."


def test_a_job_waits_in_the_admission_queue_for_jobs_with_priority(tmp_path: Path) -> None:
    """The guest's job arrives while a job of the host runs, which has another one at 50 s."""
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
        words = [line.event.event for line in job_history(("guest", 1), mine)]
        assert words[words.index("admit") + 1] == word
        assert whereabouts(("guest", 1), mine, 60 * SECOND_US).startswith(where)


def test_submissions_to_clusters_are_events_of_direct_jobs_only(tmp_path: Path) -> None:
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
    entered = [(one.vo, one.job, one.resources) for one in events.all() if one.event == "submit"]
    assert entered == [("a", 100, "ram_mb=50"), ("a", 101, "ram_mb=50")]
    story = [line.event.event for line in job_history(("a", 0), events.of_job(("a", 0)))]
    assert story == ["submit_job", "choose", "admit", "run_job", "start", "end"]


def test_preemptions_and_restarts_of_a_job(tmp_path: Path) -> None:
    pool = {"name": "pool", "machines": [{"cpus": 2}], "policy": "easy"}
    down = [
        {"vo": "a", "cluster": "pool", "machine": 0, "at_s": at_s, "for_s": 5} for at_s in (20, 40)
    ]
    vos = [{"name": "a", "clusters": [pool], "workload": {"jobs": [{"run_s": 100}]}}]
    faults = {"heal_s": 100, "machine_outages": down}
    grid.run({"vos": vos, "faults": faults}, out=tmp_path / "run", events=True)
    mine = EventFile(tmp_path / "run").of_job(("a", 1))
    *_, last = job_history(("a", 1), mine)
    assert last.text == "It ends: completed. It was preempted 2 times and restarted 2 times."
    # The same message to two entities is one step.
    twice = Event(1, "a/dispatcher", MESSAGE, "run_job", vo="a", job=0, cluster="pool")
    assert (
        len(job_history(("a", 0), [twice, twice._replace(time_us=2, entity="a/cluster/pool")])) == 1
    )


def state_of(running: list[Stay], waiting: list[Stay], **facts: object) -> ClusterLog:
    made = {
        "cpus": (4, 2),
        "resources": {"ram_mb": (-1.0, 100.0)},
        "machine_licenses": (1, 0),
    } | facts
    log = ClusterLog(ClusterFacts("v", "c", "easy", **made), [])  # type: ignore[arg-type]
    log.stays = {one.key: one for one in (*running, *waiting)}
    return log


def test_licenses_memory_and_machines_that_are_down() -> None:
    held = Stay(("v", 1), 0, 1, {}, 1, machine=0, start_us=0)
    other = Stay(("v", 4), 0, 1, {"ram_mb": 80.0}, 0, machine=1, start_us=0)
    licensed = Stay(("v", 2), 5, 1, {}, 1)
    wants_memory = Stay(("v", 3), 6, 1, {"ram_mb": 50.0}, 0, bound=1)
    facts = {"licenses": (("solver", 1),), "machine_licenses": (1, 1)}
    state = state_of([held, other], [licensed, wants_memory], **facts).at(10)
    why = why_waiting(licensed.key, state)
    # Machine 0 holds the only copy, which its jobs share.
    assert why is not None
    assert (why.machine, why.lacks) == (0, ())
    bound = why_waiting(wants_memory.key, state)
    assert bound is not None
    assert [(one.what, one.needed, one.free) for one in bound.lacks] == [("ram_mb", 50.0, 20.0)]
    assert bound.ahead == (licensed.key,)
    far = Stay(("v", 5), 7, 1, {}, 1, bound=1)
    down = {**facts, "outages": ((1, 8, 20),)}
    there = state_of([held], [far], **down)
    why = why_waiting(far.key, there.at(10))
    assert why is not None
    assert [one.what for one in why.lacks] == ["machine", "license solver"]
    assert "down" in " ".join(why.sentences())
    why = why_waiting(far.key, there.at(7))
    assert why is not None
    assert [one.what for one in why.lacks] == ["license solver"]
    assert why_waiting(held.key, there.at(10)) is None
    wide = Stay(("v", 6), 1, 5, {}, 0)
    never = why_waiting(wide.key, state_of([], [wide]).at(3))
    assert never is not None
    assert never.machine == -1
    assert "ever" in never.sentences()[1]


def test_a_machine_that_was_taken_down_is_down_until_its_repair() -> None:
    facts = ClusterFacts("v", "c", "fcfs", (1,), machine_licenses=(0,))
    came = Event(3, "v/cluster/c", MESSAGE, "run_job", vo="v", job=1, processors=1)
    taken = Event(5, "v/cluster/c", MESSAGE, "take_down", machine=0)
    repaired = Event(9, "v/cluster/c", MESSAGE, "repair")
    log = ClusterLog(facts, [came, taken, repaired])
    lacks = []
    for time_us in (4, 5, 8, 9):
        why = why_waiting(("v", 1), log.at(time_us))
        assert why is not None
        lacks.append([one.what for one in why.lacks])
    assert lacks == [[], ["machine"], ["machine"], []]


def test_an_outage_in_a_cluster_for_gangs_affects_the_cpus_of_the_machine() -> None:
    """Events do not show which gangs ran on them, so no holders are named."""
    facts = ClusterFacts(
        "v", "c", "afcfs", (4,), outages=((0, 5, 9), (1, 6, 9)), gangs=True, cpus_of=(1, 1, 2)
    )
    ran = Stay(("v", 1), 0, 1, {}, 0, machine=0, start_us=0)
    waits = Stay(("v", 2), 2, 4, {}, 0)
    log = ClusterLog(facts, [])
    log.stays = {one.key: one for one in (ran, waits)}
    said = []
    for time_us in (4, 5, 8, 9):
        why = why_waiting(waits.key, log.at(time_us))
        assert why is not None
        said.append(why.sentences()[1:])
    busy = ["The cluster has 3 CPUs free.", "There runs job 1 of v."]
    assert said == [busy, ["Of its 4 CPUs, 3 are up."], ["Of its 4 CPUs, 2 are up."], busy]
    assert why.sentences()[0] == "It needs 4 CPUs in the cluster."


def test_an_unfinished_run_explains_no_waits(tmp_path: Path) -> None:
    """Starts are known of jobs that have ended only."""
    jobs = [{"run_s": 5, "cpus": 2}, {"submit_s": 1, "run_s": 5, "cpus": 2}]
    vo = {"name": "a", "clusters": [{"name": "p", "cpus": 2}], "workload": {"jobs": jobs}}
    grid.run({"vos": [vo]}, out=tmp_path / "run", events=True)
    whole = CliRunner().invoke(app, ["job", str(tmp_path / "run"), "2"])
    assert "Why it waited" in whole.stdout and NOT_KEPT not in whole.stdout
    manifest = tmp_path / "run" / "manifest.json"
    changed = json.loads(manifest.read_text()) | {"live": {"unfinished": 3}}
    manifest.write_text(json.dumps(changed))
    for more in ([], ["--at", "2"]):
        cut = CliRunner().invoke(app, ["job", str(tmp_path / "run"), "2", *more])
        assert cut.exit_code == 0
        assert cut.stdout.endswith(f"{NOT_KEPT}\n") and "Why" not in cut.stdout
    later = CliRunner().invoke(app, ["job", str(tmp_path / "run"), "3"])
    assert later.exit_code == 2
    assert "expected a job that was submitted before the run was stopped" in later.stderr


def test_every_event_with_a_text_exists() -> None:
    """A renamed message or decision would silently disappear from histories."""
    known = {*message_names(), *FILES["decisions"].columns}
    assert {name.removesuffix(" and wait") for name in EVENT_TEXTS} <= known
