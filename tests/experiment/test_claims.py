"""Verdicts follow from figures: claims that hold, do not hold, cannot hold, or were not run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from grid.experiment.claims import Check as Comparison
from grid.experiment.claims import Claim, Studies, Verdict, all_hold, judged
from grid.experiment.papers import NAMES, eg, paper
from grid.experiment.reproduce import (
    EXPERIMENTS,
    How,
    Judged,
    markdown,
    reproduce,
    tally,
    wanted_claims,
)
from grid.model.errors import InputError
from tests.experiment.studies import study_of


def claim(name: str) -> Claim:
    return wanted_claims([name])[0][1][0]


def verdict_of(name: str, folder: Path, points: list[Any], absent: list[Any] | None = None) -> Any:
    wanted = claim(name)
    (experiment,) = wanted.experiments
    study = study_of(folder, experiment, points, absent or [])
    return judged(wanted, Studies({experiment: study}, {}))


def utilities(pu: list[float], bu: list[float], mm: list[float]) -> list[Any]:
    columns = {"PU": pu, "BU": bu, "MM": mm}
    return [
        ({"scheduler": name}, {"user_utility": values, "user_utility_one_minus_root": values})
        for name, values in columns.items()
    ]


def test_every_claim_of_the_list_is_there() -> None:
    counts = {"C07": 7, "CS2": 7, "PU": 5, "EG": 4, "GM": 4}
    names = [one.name for name in NAMES for one in paper(name).claims]
    assert names == [f"{name}-{n}" for name in NAMES for n in range(1, counts[name] + 1)]


def test_every_experiment_of_a_claim_says_what_it_chose() -> None:
    for name in NAMES:
        for experiment in paper(name).experiments:
            file = EXPERIMENTS / f"{experiment}.yaml"
            if file.exists():
                header = file.read_text().split("name:")[0]
                assert header.startswith("#") and "leaves open" in header, experiment


def test_an_order_holds_only_beyond_doubt(tmp_path: Path) -> None:
    sure = utilities([0.6, 0.7, 0.65], [0.5, 0.6, 0.55], [0.3, 0.2, 0.25])
    assert verdict_of("PU-2", tmp_path / "a", sure).verdict is Verdict.HOLDS
    # The mean of PU is still above that of BU, and yet it may be chance.
    unsure = utilities([0.9, 0.5, 0.6], [0.5, 0.6, 0.55], [0.3, 0.2, 0.25])
    finding = verdict_of("PU-2", tmp_path / "b", unsure)
    assert finding.verdict is Verdict.FAILS
    assert "1 of 2 comparisons" in finding.reason and "BU" in finding.reason


def test_pairs_count_and_not_means_apart(tmp_path: Path) -> None:
    """Seeds differ by more than schedulers do; every seed says the same."""
    paired = utilities([0.1, 0.5, 0.9], [0.09, 0.49, 0.891], [0.08, 0.48, 0.88])
    assert verdict_of("PU-2", tmp_path, paired).verdict is Verdict.HOLDS


def test_equal_figures_are_no_order(tmp_path: Path) -> None:
    finding = verdict_of("PU-2", tmp_path, utilities([0.5, 0.5], [0.5, 0.5], [0.5, 0.5]))
    assert finding.verdict is Verdict.FAILS


def test_one_repetition_proves_nothing(tmp_path: Path) -> None:
    finding = verdict_of("PU-2", tmp_path, utilities([0.9], [0.5], [0.1]))
    assert finding.verdict is Verdict.FAILS


def test_what_was_not_run_is_not_judged(tmp_path: Path) -> None:
    points = utilities([0.6, 0.7], [0.5, 0.6], [0.2, 0.3])
    told = [(points[2][0], "x.yaml: found 'mm', expected a policy")]
    finding = verdict_of("PU-2", tmp_path, points[:2], told)
    assert finding.verdict is Verdict.NOT_RUN
    assert "expected a policy" in finding.reason and "scheduler MM" in finding.reason


def test_a_missing_experiment_is_told(tmp_path: Path) -> None:
    del tmp_path
    finding = judged(claim("GM-1"), Studies({}, {"gang-migration": "no such file"}))
    assert (finding.verdict, finding.reason) == (Verdict.NOT_RUN, "no such file")


def slowdowns(ours: float) -> list[Any]:
    """CS2's schedulers at two times; `ours` is what those of CS 2.0 have at the second."""
    points = []
    for name in ("EASY", "Flexible", "CS 2.0", "CS 2.0 Td", "CS 2.0 Cs", "CS 2.0 Cs Td"):
        for time in (1, 4):
            value = ours if name.startswith("CS") and time == 4 else 9.0
            value += 0.0 if name.startswith("CS") else 5.0
            figures = {"slowdown_mean": [value + 0.01, value, value - 0.01]}
            points.append(({"scheduler": name, "interarrival": time}, figures))
    return points


def farm_of(jobs: int) -> dict[str, Any]:
    """One machine for so many jobs of a minute that come at once."""
    workload = {"enters": "cluster", "jobs": [{"run_s": 60.0}] * jobs}
    clusters = [{"machines": [{"cpus": 1}]}]
    vos = [{"name": "a", "clusters": clusters, "workload": workload}]
    return {"name": "farm", "vos": vos}


@pytest.mark.parametrize(
    ("jobs", "ours", "verdict"),
    [(1, 1.05, Verdict.HOLDS), (1, 1.6, Verdict.FAILS), (60, 8.0, Verdict.IMPOSSIBLE)],
)
def test_a_claim_that_the_work_forbids_cannot_hold(
    tmp_path: Path, jobs: int, ours: float, verdict: Verdict
) -> None:
    study = study_of(tmp_path, "convergent-2", slowdowns(ours), scenario=farm_of(jobs))
    finding = judged(claim("CS2-2"), Studies({"convergent-2": study}, {}))
    assert finding.verdict is verdict
    assert ("no schedule at all" in finding.reason) is (verdict is Verdict.IMPOSSIBLE)


def test_growth_is_fitted_to_all_numbers_of_jobs(tmp_path: Path) -> None:
    points = []
    for name, power in (("CS_i_p", 1), ("CS_i_np", 1), ("CS_ni_p", 2), ("CS_ni_np", 2)):
        for jobs in (100, 200, 400):
            seconds = [1e-7 * jobs**power * scale for scale in (0.999, 1.0, 1.001)]
            point = {"scheduler": name, "jobs": jobs}
            points.append((point, {"plan_seconds_mean": seconds}))
    finding = verdict_of("C07-7", tmp_path, points)
    assert finding.verdict is Verdict.HOLDS
    assert "CS_i_p N^1.00" in finding.ours and "CS_ni_p N^2.00" in finding.ours


def test_what_a_plan_costs_is_told_by_the_length_of_the_queue(tmp_path: Path) -> None:
    points = []
    for name in ("FCFS", "EASY", "Flexible", "EG-EDF", "Tabu"):
        for time, plans in ((1, 3), (5, 1)):
            figures = {
                "plan_seconds_mean": [1e-3, 1e-3],
                "plan_seconds_count_below_128": [plans, plans],
                "plan_seconds_mean_below_128": [time * 1e-3, time * 2e-3],
            }
            points.append(({"scheduler": name, "interarrival": time}, figures))
    study = study_of(tmp_path, "eg-edf-tabu", points)
    costs = eg.plan_costs(study, eg.TABU)
    # Three plans of 1 ms and one of 5 ms with the first seed, twice as much with the second.
    assert list(costs) == [128]
    assert costs[128].mean == pytest.approx((2e-3 + 4e-3) / 2)
    studies = Studies({"eg-edf-tabu": study}, {})
    assert "by jobs that wait: FCFS 3 (64 or more); EASY 3" in judged(claim("EG-3"), studies).ours
    assert "eg-figure-2-queue" in [drawn.name for drawn in eg.figures(studies)]


def test_a_finding_names_what_fails_and_not_all_of_it() -> None:
    checks = [Comparison(f"check {n}", n == 0) for n in range(6)]
    finding = all_hold(checks, ours="short")
    assert finding.verdict is Verdict.FAILS and finding.ours == "short"
    assert "5 of 6" in finding.reason and "check 3" in finding.reason
    assert "check 4" not in finding.reason and "2 more" in finding.reason


def test_names_of_papers_and_claims_are_understood() -> None:
    everything = wanted_claims([])
    assert [one.name for one, _ in everything] == list(NAMES)
    some = wanted_claims(["pu-2", "EG"])
    assert [(one.name, len(claims)) for one, claims in some] == [("PU", 1), ("EG", 4)]
    with pytest.raises(InputError, match="found 'PU-9', expected a paper"):
        wanted_claims(["PU-1", "PU-9"])


def test_the_table_is_markdown_whatever_stands_in_it(tmp_path: Path) -> None:
    finding = verdict_of("PU-2", tmp_path, utilities([0.6, 0.7], [0.5, 0.6], [0.2, 0.3]))
    table = markdown([Judged(claim("PU-2"), finding)], quick=True)
    lines = table.splitlines()
    assert lines[0].startswith("QUICK") and "1 holds" in lines[2]
    assert all(line.count("|") == 6 for line in lines[4:])


def test_partial_utility_is_reproduced_in_one_go(tmp_path: Path) -> None:
    said: list[str] = []
    how = How(in_process=True, quick=True)
    found = reproduce(["PU"], tmp_path / "out", how, said.append, tmp_path / "pages")
    assert [one.claim.name for one in found] == [f"PU-{n}" for n in range(1, 6)]
    assert [line.split(":")[0] for line in said] == [one.claim.name for one in found]
    assert not [one for one in found if one.finding.verdict is Verdict.NOT_RUN]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "QUICK" in page and page.count("<img") == 4
    pictures = [file.name for file in (tmp_path / "out" / "pictures").glob("pu-figure-*")]
    assert len(pictures) == 8
    assert tally(found).startswith("5 claims: ")
    written = (tmp_path / "pages" / "PU.md").read_text()
    assert all(f"| PU-{n} |" in written for n in range(1, 6)) and "12 runs, 4 seeds" in written
    shown = re.findall(r"!\[.+\]\((.+)\)", written)
    assert len(shown) == 4 and all((tmp_path / "pages" / name).is_file() for name in shown)
    as_is = How(in_process=True, quick=True, as_is=True)
    again = reproduce(["PU-1"], tmp_path / "out", as_is, said.append)
    assert again[0].finding == found[0].finding
