"""Errors that show when jobs are read or generated, and the realized jobs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.config.load import load_scenario
from grid.config.platform import share_out
from grid.config.workload import realize
from grid.model.errors import InputError

LOG = "".join(
    f"{number} 0 -1 {run} 2 -1 -1 2 100 -1 1 7 1 -1 1 {partition} -1 -1\n"
    for number, run, partition in ((1, 100, 4), (2, 100, 9))
)
SITES = "vos_from_trace: {total_cpus: 8}\nworkload: {trace: log.swf, route: partition}\n"
LISTED = (
    "vos: [{name: a, clusters: [{cpus: 4}]}, {name: b, clusters: [{cpus: 4}]}]\n"
    "workload: {trace: log.swf}\n"
)
TWO_SOURCES = (
    "vos: [{name: a, clusters: [{cpus: 4}],\n"
    "  workload: {%sjobs: [{number: 3, run_s: 1}]}}]\n"
    "workload: {generator: partial_utility, settings: {users: 2, jobs_per_user: 2}}\n"
)


UNKNOWN = LOG.replace(" 4 -1 -1\n", " -1 -1 -1\n").replace(" 9 -1 -1\n", " -1 -1 -1\n")


@pytest.mark.parametrize(
    ("scenario", "log", "says"),
    [
        (SITES, LOG.replace(" 100 2 ", " 0 2 "), "log.swf (2 no_run_time), expected at least one"),
        (SITES, UNKNOWN, "workload.route: found 'partition'"),
        (
            SITES + "network: {links: [{between: [site4, site5], latency_s: 1}]}\n",
            LOG,
            "network.links.0.between.1: found 'site5', expected a VO",
        ),
        (
            SITES.replace("8", "11"),
            LOG.replace(" 2 100 -1 1 7 1 -1 1 9 ", " 10 100 -1 1 7 1 -1 1 9 "),
            "vos_from_trace.total_cpus: found 11, expected at least 12",
        ),
        (LISTED, LOG, "workload.route: found nothing"),
        (TWO_SOURCES % "", LOG, "vos.0.workload: found job number 3 twice"),
        (TWO_SOURCES % "entry_point: cluster, ", LOG, "vos.0.workload: found job number 3 twice"),
    ],
    ids=["no job", "no value", "no link", "too few", "no route", "number", "direct number"],
)
def test_an_error_is_one_line(tmp_path: Path, scenario: str, log: str, says: str) -> None:
    (tmp_path / "log.swf").write_text(log)
    path = tmp_path / "wrong.yaml"
    path.write_text(scenario)
    loaded = load_scenario(path)
    with pytest.raises(InputError) as raised:
        realize(loaded, str(path))
    (line,) = str(raised.value).splitlines()
    assert re.match(rf"{re.escape(str(path))}:\d+: ", line) and says in line


def test_jobs_larger_than_every_machine_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(LOG)
    path = tmp_path / "own.yaml"
    path.write_text(
        "vos: [{name: a, clusters: [{cpus: 1}], workload: {trace: log.swf}},\n"
        "  {name: b, clusters: [{cpus: 1}]}]\n"
    )
    with pytest.raises(InputError, match=r"own.yaml:1: vos.0.workload.trace: .*\(2 too_large\)"):
        realize(load_scenario(path), str(path))
    path.write_text(path.read_text().replace("b, clusters: [{cpus: 1}", "b, clusters: [{cpus: 2}"))
    assert realize(load_scenario(path), str(path))[0].jobs_by_vo() == [2, 0]


def test_machines_and_workloads_may_have_their_own_seed() -> None:
    def made(seed: int, *overrides: str) -> tuple[object, list[int]]:
        path = "scenarios/convergent-2.yaml"
        made, _ = realize(load_scenario(path, [f"seed={seed}", "jobs=5", *overrides]), path)
        (jobs,) = made.direct
        return made.vos[0].clusters[0].machines, jobs.submit_us.tolist()

    for own, same in ((), (0, 0)), (["machines"], (1, 0)), (["workload"], (0, 1)):
        places = {"machines": "vos.0.clusters.0.machines", "workload": "vos.0.workload"}
        both = [made(seed, *(f"{places[one]}.seed=1" for one in own)) for seed in (1, 2)]
        assert tuple(one == other for one, other in zip(*both, strict=True)) == same


@pytest.mark.parametrize(
    ("total", "least", "sizes"),
    [
        (12, [1, 1, 1, 1], [2, 3, 3, 4]),
        (14, [1, 1, 8, 2], [2, 2, 8, 2]),
        (18, [2, 1, 8, 2], [2, 3, 8, 5]),
        (5, [1, 2, 1, 1], [1, 2, 1, 1]),
    ],
)
def test_cpus_are_shared_out_by_largest_remainder(
    total: int, least: list[int], sizes: list[int]
) -> None:
    """In proportion to 1, 2, 2 and 3 after one each; of equal remainders the first is larger."""
    shares = share_out(total, np.array([1.0, 2.0, 2.0, 3.0]), np.array(least))
    assert shares.tolist() == sizes


@given(
    st.lists(st.tuples(st.floats(0.01, 1e6), st.integers(1, 50)), min_size=1, max_size=12),
    st.integers(0, 300),
)
def test_no_site_is_too_small_and_all_cpus_are_used(
    sites: list[tuple[float, int]], more: int
) -> None:
    weights, least = np.array([w for w, _ in sites]), np.array([n for _, n in sites])
    total = int(least.sum()) + more
    sizes = share_out(total, weights, least)
    assert sizes.sum() == total
    assert (sizes >= least).all()
    larger = sizes > least
    for one in np.flatnonzero(larger):
        # Nobody who has more than the least is more than one off what it has a right to.
        share = (total - least[~larger].sum() - larger.sum()) * weights[one] / weights[larger].sum()
        assert sizes[one] <= share + 2


HEAVY = """
import numpy as np

from grid.model.job_table import JobTable


def heavy(names, clusters, rng):
    one = np.array([1])
    jobs = {"number": one, "submit_us": one, "processors": one, "run_us": one, "estimate_us": one}
    return {name: JobTable.of(**jobs, resources={"ram_mb": [50]}) for name in names}
"""
OF_MANY = """\
vos:
  - {name: a, count: 3, clusters: [{cpus: 2}]}
  - name: b
    clusters: [{cpus: 2}]
%s
"""


@pytest.mark.parametrize(
    ("workload", "field"),
    [
        ("    workload: {generator: 'heavy.py:heavy'}", "5: vos.1.workload.resources.ram_mb.0"),
        ("workload: {generator: 'heavy.py:heavy'}", "5: workload.resources.ram_mb.0"),
    ],
)
def test_errors_in_generated_jobs_name_their_section(
    tmp_path: Path, workload: str, field: str
) -> None:
    (tmp_path / "heavy.py").write_text(HEAVY)
    path = tmp_path / "many.yaml"
    path.write_text(OF_MANY % workload)
    with pytest.raises(
        InputError, match=f"many.yaml:{field}: found 50, expected none, since no mac"
    ):
        realize(load_scenario(path), str(path))
