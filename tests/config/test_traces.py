"""Logs as the workload of a scenario: formats, filters, load scaling, records left out."""

from __future__ import annotations

from pathlib import Path

import pytest

import grid
from grid.config.load import load_scenario
from grid.model.errors import InputError
from grid.model.job import JobState
from grid.runtime.run import Run, execute
from grid.workload.logs import read_log, write_log

LOG = """\
; MaxProcs: 4
1 0 -1 100 2 -1 -1 2 200 -1 1 7 1 -1 1 1 -1 -1

2 10 -1 50 4 -1 -1 4 50 -1 1 8 1 -1 1 2 -1 -1
4 25 -1 20 9 -1 -1 9 30 -1 1 7 1 -1 1 1 -1 -1
3 30 -1 20 1 -1 -1 1 30 -1 0 7 1 -1 1 1 -1 -1
5 40 -1 0 1 -1 -1 1 30 -1 1 8 1 -1 1 1 -1 -1
"""
SCENARIO = """\
parameters: {trace: log.swf, policy: fcfs, factor: null}
vos:
  - name: site
    clusters: [{name: pool, cpus: 4, policy: "${policy}"}]
    workload: {trace: "${trace}", entry_point: cluster, interarrival_factor: "${factor}"%s}
"""


def replay(folder: Path, more: str = "", *overrides: str) -> Run:
    (folder / "log.swf").write_text(LOG)
    (folder / "replay.yaml").write_text(SCENARIO % more)
    scenario = load_scenario(folder / "replay.yaml", list(overrides))
    return execute(scenario, "replay.yaml", in_process=True)


def starts(run: Run) -> dict[int, float]:
    results = run.results
    times = (results.outcome.start_us / 1e6).tolist()
    return dict(zip(results.number.tolist(), times, strict=True))


def test_a_log_is_replayed_and_records_left_out_are_counted(tmp_path: Path) -> None:
    run = replay(tmp_path)
    assert starts(run) == {1: 0.0, 2: 100.0, 3: 150.0}
    assert run.manifest["jobs"]["skipped"] == {"blank_lines": 1, "no_run_time": 1, "too_large": 1}


@pytest.mark.parametrize("name", ("log.gwf", "log.gwf.gz", "log.parquet", "log.swf.gz"))
def test_every_format_gives_the_same_run(tmp_path: Path, name: str) -> None:
    run = replay(tmp_path)
    write_log(read_log(tmp_path / "log.swf"), tmp_path / name)
    other = replay(tmp_path, "", f"trace={name}")
    assert other.manifest["digest"] == run.manifest["digest"]
    del run.manifest["jobs"]["skipped"]["blank_lines"]
    assert other.manifest["jobs"] == run.manifest["jobs"]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        ("from_s: 10, before_s: 30", {2}),
        ("users: [7]", {1, 3}),
        ("users: [7, 8], without_users: [7]", {2}),
        ("max_cpus: 2", {1, 3}),
        ("statuses: [0, 5]", {3}),
    ],
)
def test_filters(tmp_path: Path, wanted: str, numbers: set[int]) -> None:
    run = replay(tmp_path, f", filter: {{{wanted}}}")
    assert set(starts(run)) == numbers
    assert run.manifest["jobs"]["skipped"]["filtered"] > 0


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("users: [9]", "no job of .*log.swf that matches"),
        ("from_s: 30, before_s: 30", "`from_s` less than"),
        ("users: [1, 2], without_users: [2, 1, 3]", "some of the `users` not in `without_users`"),
        ("min_cpus: 3, max_cpus: 2", "`min_cpus` no more than"),
        ("sites: [1]", "a `route` for the `sites` of the `filter`"),
    ],
)
def test_a_filter_without_jobs_is_an_error(tmp_path: Path, wanted: str, said: str) -> None:
    with pytest.raises(InputError, match=rf"replay\.yaml:5: vos\.0\.workload.*: found .*{said}"):
        replay(tmp_path, f", filter: {{{wanted}}}")


OF_SITES = """\
vos_from_trace: {total_cpus: 16}
workload: {trace: %s, route: %s, filter: {sites: %s}}
"""


@pytest.mark.parametrize("name", ["log.swf", "log.gwf"])
def test_only_some_sites_of_a_log(tmp_path: Path, name: str) -> None:
    (tmp_path / "log.swf").write_text(LOG)
    write_log(read_log(tmp_path / "log.swf"), tmp_path / "log.gwf")

    def run(route: str, sites: str) -> dict[str, int]:
        path = tmp_path / "of-sites.yaml"
        path.write_text(OF_SITES % (name, route, sites))
        metrics = execute(load_scenario(path, []), str(path), in_process=True).metrics
        return {vo: figures["jobs_submitted"] for vo, figures in metrics["vos"].items()}

    assert run("user", "[7, 8]") == {"site7": 3, "site8": 1}
    assert run("user", "[8]") == {"site8": 1}
    with pytest.raises(InputError, match=r"yaml:2: workload.filter: .* sites: \[6\]"):
        run("user", "[6]")


def test_submissions_can_be_shifted(tmp_path: Path) -> None:
    """Interarrival times are scaled about the first job."""
    from_10 = ", filter: {from_s: 10}, shift_s: "
    assert replay(tmp_path, from_10 + "-10").results.submit_us.tolist() == [0, 20_000_000]
    run = replay(tmp_path, from_10 + "2.5", "factor=0.5")
    assert run.results.submit_us.tolist() == [12_500_000, 22_500_000]
    with pytest.raises(InputError, match=r"shift_s: found -11.0 for .* first job .* at 10 s"):
        replay(tmp_path, from_10 + "-11")
    with pytest.raises(InputError, match=r"shift_s: found 100000000000\.0 for .*, expected less"):
        replay(tmp_path, from_10 + "1e11")


@pytest.mark.parametrize("name", ("log.swf", "log.gwf", "log.parquet"))
def test_a_job_that_ran_longer_than_requested_is_cut_or_meets_its_estimate(
    tmp_path: Path, name: str
) -> None:
    """Job 2 ran for 50 s and requested 20; `overrun` of its cluster decides."""
    (tmp_path / "made.swf").write_text(LOG.replace(" 4 50 -1 1 8", " 4 20 -1 1 8"))
    write_log(read_log(tmp_path / "made.swf"), tmp_path / name)
    ends = []
    for cut, overrun in ((True, "kill"), (False, "kill"), (False, "extend")):
        workload = {
            "trace": str(tmp_path / name), "entry_point": "cluster", "cut_at_estimate": cut,
        }  # fmt: skip
        clusters = [{"cpus": 4, "overrun": overrun}]
        run = grid.run({"vos": [{"name": "a", "clusters": clusters, "workload": workload}]})
        results = run.results
        assert run.manifest["jobs"]["skipped"]["longer_than_requested"] == 1
        outcome = results.outcome
        ends.append((outcome.end_us[1] - outcome.start_us[1], int(outcome.state[1])))
    completed, failed = int(JobState.COMPLETED), int(JobState.FAILED)
    assert ends == [(20_000_000, completed), (20_000_000, failed), (50_000_000, completed)]


def test_records_left_out_are_counted_for_each_vo(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(LOG)
    vo = "{name: %s, clusters: [{cpus: %d}], workload: {trace: log.swf, entry_point: cluster}}"
    vos = ", ".join(vo % pair for pair in (("a", 4), ("b", 4), ("c", 1)))
    (tmp_path / "replay.yaml").write_text(f"vos: [{vos}]\n")
    scenario = load_scenario(tmp_path / "replay.yaml", [])
    run = execute(scenario, "replay.yaml", in_process=True)
    skipped = run.manifest["jobs"]["skipped"]
    assert (skipped["no_run_time"], skipped["too_large"]) == (3, 1 + 1 + 3)
    counts = [run.metrics["vos"][name]["jobs_completed"] for name in "abc"]
    assert counts == [3, 3, 1]


@pytest.mark.parametrize(("vo", "is_known"), [("site7", True), ("site9", False)])
def test_faults_may_name_vos_of_a_trace(tmp_path: Path, vo: str, is_known: bool) -> None:
    (tmp_path / "log.swf").write_text(LOG)
    path = tmp_path / "sites.yaml"
    path.write_text(
        "vos_from_trace: {total_cpus: 16}\nworkload: {trace: log.swf, route: user}\n"
        f"faults:\n  heal_s: 9\n  vo_outages: [{{vo: {vo}, at_s: 1, for_s: 1}}]\n"
    )
    if is_known:
        assert grid.run(path).metrics["grid"]["jobs_completed"] == 4
        return
    with pytest.raises(
        InputError, match=r"sites\.yaml:5: faults\.vo_outages\.0\.vo: found 'site9'"
    ):
        grid.run(path)
