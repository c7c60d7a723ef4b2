"""Windows without Ray: whatever the grid and the partition, what one process gives."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from grid.config.build import Grid
from grid.model.job_results import JobResults, in_order
from grid.protocol.registry import DISCOUNTS, FORWARDING, INFORMATION, SELECTIONS
from grid.results.checkers import check, digest
from grid.runtime.sequential import run_sequential
from grid.runtime.window import Window
from tests.config.grids import grid_of, vo
from tests.examples import examples
from tests.runtime.rounds import grants_of, mixed_rounds, overlapping_rounds, rounds


def in_windows(grid: Grid, partition: list[int], way: Any = rounds) -> tuple[list[JobResults], int]:
    """The rows and the number of messages of a run over processes that need not be used all."""
    drawn = [partition[entity % len(partition)] for entity in range(len(grid.names))]
    used = sorted(set(drawn))
    process_of = [used.index(process) for process in drawn]
    windows = [Window(grid, number, process_of) for number in range(len(used))]
    for _ in way(windows, grants_of(grid.network, process_of)):
        pass
    outcomes = [window.outcome() for window in windows]
    chunks = [chunk for outcome in outcomes for chunk in outcome.chunks]
    return chunks, sum(outcome.messages for outcome in outcomes)


REQUIREMENTS = [
    {
        "kind": "operating_system",
        "options": [{"value": "linux"}, {"value": "macos", "utility": 0.5}],
    },
    {"kind": "speed", "options": [{"value": 1000.0, "utility": 0.7}], "weight": 0.5},
]
JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "submit_s": st.one_of(st.integers(0, 20), st.floats(0, 20)),
            "run_s": st.floats(1e-6, 15),
            "cpus": st.integers(1, 3),
            "user": st.integers(0, 1),
            "input_mb": st.sampled_from([0.0, 0.5, 7.0]),
            "requirements": st.sampled_from([[], REQUIREMENTS[:1], REQUIREMENTS]),
        }
    ),
    max_size=10,
)
RESERVED = [
    {"from_s": 5.0, "to_s": 9.0},
    {"from_s": 7.0, "to_s": 20.0, "cpus": 2, "vos": ["v0"]},
    {"from_s": 12.0, "to_s": 15.0, "users": [1]},
]
CLUSTER = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(["fcfs", "easy", "eg_edf"]),
        "reservations": st.sampled_from([[], RESERVED]),
        "resource": st.sampled_from(["machine", "cluster"]),
        "machines": st.lists(
            st.fixed_dictionaries(
                {
                    "cpus": st.just(3),
                    "mips": st.sampled_from([500.0, 1000.0, 3000.0]),
                    "operating_system": st.sampled_from(["linux", "macos"]),
                    "ram_mb": st.sampled_from([0.0, 100.0]),
                }
            ),
            min_size=1,
            max_size=3,
        ),
    }
)
VOS = st.lists(
    st.tuples(
        st.lists(CLUSTER, min_size=1, max_size=2),
        JOBS,
        st.booleans(),
        st.sampled_from(sorted(SELECTIONS.own)),
    ),
    min_size=1,
    max_size=4,
)
OVERLAYS: dict[str, Any] = {name: name for name in INFORMATION.own} | {
    "edges": {"name": "edges", "settings": {"edges": ((0, 1), (1, 2))}},
    "gossip": {"name": "gossip", "settings": {"mode": "push_pull", "period_s": 2.0}},
    "forgetful gossip": {"name": "gossip", "settings": {"period_s": 0.7, "view_size": 1}},
}
PROTOCOL = st.fixed_dictionaries(
    {
        "ttl": st.integers(0, 3),
        "forwarding": st.sampled_from(sorted(FORWARDING.own)),
        "avoid_loops": st.booleans(),
        "information": st.sampled_from(sorted(OVERLAYS)).map(OVERLAYS.__getitem__),
        "discount": st.sampled_from(sorted(DISCOUNTS.own)),
        "snapshot_detail": st.sampled_from(["full", "summary"]),
        "snapshots": st.fixed_dictionaries(
            {
                "period_s": st.sampled_from([None, 0.01, 5.0]),
                "load_above": st.sampled_from([None, 0.5]),
                "jobs_above": st.sampled_from([None, 1]),
            }
        ),
    }
)
NETWORK = st.fixed_dictionaries(
    {
        "latency_s": st.sampled_from([1e-6, 0.05, 3.0]),
        "local_latency_s": st.sampled_from([1e-6, 0.001, 2.0]),
        "bandwidth_mbps": st.sampled_from([None, 8.0]),
    }
)


@settings(max_examples=examples(60), deadline=None)
@given(
    vos=VOS,
    protocol=PROTOCOL,
    network=NETWORK,
    link_s=st.sampled_from([None, 1e-6, 7.0]),
    partition=st.lists(st.integers(0, 2), min_size=1, max_size=9),
)
def test_no_grid_and_no_partition_can_tell_windows_from_one_process(
    vos: list[tuple[list[dict[str, Any]], list[dict[str, Any]], bool, str]],
    protocol: dict[str, Any],
    network: dict[str, Any],
    link_s: float | None,
    partition: list[int],
) -> None:
    sections = []
    if protocol["information"] == OVERLAYS["edges"]:
        there = [edge for edge in ((0, 1), (1, 2)) if max(edge) < len(vos)]
        protocol = protocol | {"information": {"name": "edges", "settings": {"edges": there}}}
    for number, (clusters, jobs, fed, selection) in enumerate(vos):
        named = [{**cluster, "name": f"c{c}"} for c, cluster in enumerate(clusters)]
        entry_point = "cluster" if fed and len(clusters) == 1 else "scheduler"
        workload = {"jobs": jobs, "entry_point": entry_point}
        more = {"workload": workload, "selection": selection}
        sections.append(vo(f"v{number}", 0, clusters=named, **more))
    if link_s is not None and len(vos) > 1:
        network = {**network, "links": [{"between": ["v0", "v1"], "latency_s": link_s}]}
    grid = grid_of(vos=sections, protocol=protocol, network=network)
    expected = run_sequential(grid)
    table = in_order(expected.chunks)
    assert check(table, grid.directory, sum(grid.jobs_by_vo())) == []
    for way in (rounds, overlapping_rounds, mixed_rounds):
        chunks, messages = in_windows(grid, partition, way)
        assert digest(in_order(chunks)) == digest(table)
        assert messages == expected.messages


def test_gangs_that_hold_resources_migrate_between_windows() -> None:
    """With outages of machines and priority jobs."""
    settings = {"migration": "full", "migrates": "queued", "ask_every_s": 9}
    policy = {"name": "afcfs", "settings": settings}
    gpus = {"cpus": 2, "ram_mb": 100.0, "resources": {"gpus": 2}}
    clusters = [
        {"name": "one", "machines": [gpus, {"cpus": 2}], "resources": {"disks": 3}},
        {"name": "two", "machines": [gpus, gpus], "processor_choice": "ald"},
        {"name": "three", "machines": [{"cpus": 4, "mips": 1500.0}]},
    ]
    held: list[dict[str, Any]] = [
        {"resources_per_task": {"gpus": 1}},
        {"resources": {"gpus": 1}, "ram_mb": 70},
        {"resources": {"disks": 2}},
        {},
    ]
    jobs = [
        {"submit_s": n, "run_s": 2 + n % 7, "cpus": 1 + n % 4, **held[n % 3 if n % 5 else 3]}
        for n in range(60)
    ]
    gangs = vo("gangs", 0, jobs, clusters=[one | {"policy": policy} for one in clusters])
    outages = [
        {"vo": "gangs", "cluster": "one", "machine": 0, "at_s": 7, "for_s": 3},
        {"vo": "gangs", "cluster": "two", "machine": 1, "at_s": 12, "for_s": 9},
    ]
    faults = {"machine_outages": outages, "heal_s": 1000}
    grid = grid_of(vos=[gangs], faults=faults)
    expected = run_sequential(grid)
    table = in_order(expected.chunks)
    assert check(table, grid.directory, len(jobs)) == []
    figures = {(one.figure, one.cluster): one.value for one in expected.figures}
    for name in ("migrations_local", "migrations_external", "interruptions", "held.gpus"):
        assert any(value for (figure, _), value in figures.items() if figure == name), name
    chunks, messages = in_windows(grid, [0, 1])
    assert (digest(in_order(chunks)), messages) == (digest(table), expected.messages)
