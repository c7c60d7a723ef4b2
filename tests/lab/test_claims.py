"""Verdicts follow from runs: sub-claims decided, other readings, pages, and what could not run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from grid.lab.claims import (
    Comparison,
    Finding,
    OverUnknown,
    Settled,
    Studies,
    Together,
    Verdict,
    decided,
    in_words,
    judged,
)
from grid.lab.pages import markdown
from grid.lab.papers import NAMES, cs2, eg_figures, eg_points
from grid.lab.place import Place
from grid.lab.report.page import Section, Table
from grid.lab.reproduce import How, reproduce, wanted_claims
from grid.lab.statistics import BELOW_ZERO, Region
from grid.model.errors import InputError
from tests.lab.studies import made_study, study_of

HERE: dict[str, Any] = {"setting": "here"}


def comparison(*values: float, region: Region = BELOW_ZERO) -> Comparison:
    return Comparison("a below b", "here", values, region)


def verdicts(*parts: Any) -> list[Verdict]:
    return [one.verdict for one in decided(parts, 0.05)]


def test_an_interval_decides_where_it_lies_wholly_on_one_side() -> None:
    inside, outside, across = (-1.0, -1.1, -0.9), (1.0, 1.1, 0.9), (1.0, -1.1, 0.2)
    assert verdicts(comparison(*inside)) == [Verdict.HOLDS]
    assert verdicts(comparison(*outside)) == [Verdict.CONTRADICTED]
    assert verdicts(comparison(*across)) == [Verdict.UNDECIDED]
    margin = Region(-2.0, 2.0)
    assert verdicts(comparison(*inside, region=margin)) == [Verdict.HOLDS]
    assert verdicts(comparison(9.0, 9.1, 8.9, region=margin)) == [Verdict.CONTRADICTED]
    assert verdicts(comparison(1.9, 2.1, 2.3, region=margin)) == [Verdict.UNDECIDED]


def test_equal_figures_are_no_order_and_one_repetition_decides_nothing() -> None:
    assert verdicts(comparison(0.0, 0.0, 0.0)) == [Verdict.CONTRADICTED]
    assert verdicts(comparison(0.0, 0.0, region=Region(high=0.0))) == [Verdict.HOLDS]
    (one,) = decided([comparison(-5.0)], 0.05)
    assert one.verdict is Verdict.UNDECIDED and "one repetition" in one.because


def test_what_is_undecided_says_how_many_repetitions_would_decide_it() -> None:
    (one,) = decided([comparison(-1.0, 1.0, -2.0, -1.0)], 0.05)
    assert one.verdict is Verdict.UNDECIDED
    (count,) = re.findall(r"about (\d+) repetitions", one.because)
    assert int(count) > 4
    # So many of the same kind do decide it.
    more = [-1.0, 1.0, -2.0, -1.0] * (int(count) // 4 + 1)
    assert verdicts(comparison(*more)) == [Verdict.HOLDS]


def test_many_comparisons_need_more_than_one_does() -> None:
    """What one comparison shows at 95 %, a hundred do not, if it is the strongest of them."""
    alone = comparison(-1.0, -1.8, -0.4, -1.2, -0.9)
    assert verdicts(alone) == [Verdict.HOLDS]
    others = [comparison(1.0, -1.0, 0.3, -0.2, 0.1) for _ in range(99)]
    first, *_ = decided([alone, *others], 0.05)
    assert first.verdict is Verdict.UNDECIDED
    assert first.interval is not None and first.interval.level == pytest.approx(1 - 0.05 / 100)


def test_over_an_unknown_quantity_a_verdict_depends_or_is_the_same_everywhere() -> None:
    holds, fails = comparison(-1.0, -1.1, -0.9), comparison(1.0, 1.1, 0.9)
    both = OverUnknown("a below b", "here", "the load", {"0.3": holds, "3": fails})
    (one,) = decided([both], 0.05)
    assert one.verdict is Verdict.DEPENDS and "on the load" in one.because
    assert [(value, row.verdict) for value, row in one.rows] == [
        ("0.3", Verdict.HOLDS),
        ("3", Verdict.CONTRADICTED),
    ]
    again = comparison(-1.0, -1.1, -0.8)
    same = OverUnknown("a below b", "here", "the load", {"0.3": holds, "3": again})
    (one,) = decided([same], 0.05)
    assert one.verdict is Verdict.HOLDS and "at each of the 2 values of the load" in one.because


def test_what_is_open_at_some_values_is_not_said_to_depend() -> None:
    holds, across = comparison(-1.0, -1.1, -0.9), comparison(1.0, -1.1, 0.2)
    part = OverUnknown("a below b", "here", "the load", {"0.3": holds, "3": across})
    assert verdicts(part) == [Verdict.UNDECIDED]


def test_what_is_mixed_says_how_many_of_each() -> None:
    fails, across = comparison(1.0, 1.1, 0.9), comparison(1.0, -1.1, 0.2)
    part = OverUnknown("a below b", "here", "the load", {"0.3": fails, "3": across})
    (one,) = decided([part], 0.05)
    assert one.because.startswith("1 contradicted, 1 undecided, at 2 values of the load")


@pytest.mark.parametrize(
    ("levels", "verdict"),
    [
        ((43.0, 64.0, 70.0), Verdict.UNDECIDED),
        ((64.0, 70.0, 75.0), Verdict.CONTRADICTED),
        ((43.0, 50.0, 64.0), Verdict.DEPENDS),
    ],
)
def test_a_level_that_is_passed_between_two_values_is_not_contradicted(
    levels: tuple[float, ...], verdict: Verdict
) -> None:
    at = {
        f"load {number}": comparison(mean, mean + 0.1, mean - 0.1, region=Region(45.0, 55.0))
        for number, mean in enumerate(levels)
    }
    (one,) = decided([OverUnknown("at 50 %", "S1", "the load", at)], 0.05)
    assert one.verdict is verdict
    passed = "passed between load 0 and load 1: not run there" in one.because
    assert passed is (verdict is Verdict.UNDECIDED)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ("hf", "hf", Verdict.HOLDS),
        ("hf", "ff", Verdict.CONTRADICTED),
        # Each holds somewhere, both together nowhere that was run; they may between the two.
        ("hf", "fh", Verdict.UNDECIDED),
        ("hf", "uf", Verdict.UNDECIDED),
    ],
)
def test_what_holds_together_has_to_at_one_value(first: str, second: str, verdict: Verdict) -> None:
    values = {"h": (-1.0, -1.1, -0.9), "f": (1.0, 1.1, 0.9), "u": (1.0, -1.1, 0.2)}
    parts = [
        OverUnknown(
            name, "", "the load", {str(at): comparison(*values[x]) for at, x in enumerate(given)}
        )
        for name, given in (("a", first), ("b", second))
    ]
    *_, joint = decided([*parts, Together("both", "", tuple(parts))], 0.05)
    assert joint.verdict is verdict
    assert joint.because.startswith("0: ")


def test_repetitions_that_nobody_would_run_are_not_counted_out() -> None:
    (one,) = decided([comparison(-0.01, 1.0, -1.0)], 0.05)
    assert one.because == "more than 1,000 repetitions would decide it"


def test_what_is_settled_is_not_tested() -> None:
    settled = Settled("a", "here", Verdict.IMPOSSIBLE, "a bound")
    one, other = decided([settled, comparison(-1.0, -1.1, -0.9)], 0.05)
    assert (one.verdict, one.because, one.interval) == (Verdict.IMPOSSIBLE, "a bound", None)
    assert other.interval is not None and other.interval.level == pytest.approx(0.95)


def test_counts_are_in_words() -> None:
    counts = {Verdict.CONTRADICTED: 1, Verdict.HOLDS: 2, Verdict.DEPENDS: 2, Verdict.UNDECIDED: 0}
    assert in_words(counts) == "2 hold, 1 contradicted, 2 depend"
    assert in_words({}) == "nothing to compare"


def test_sub_claims_are_counted_by_what_the_paper_says() -> None:
    papers = ("fewer", "close: 1 against 2", "close: 3 against 4")
    one, *others = (
        Settled("a", f"{number}", Verdict.HOLDS, "", paper=said)
        for number, said in enumerate(papers)
    )
    against = Settled("b", "", Verdict.CONTRADICTED, "", paper="fewer")
    kinds = Finding(decided([one, *others, against], 0.05)).by_kind
    assert kinds == {
        "fewer": {Verdict.HOLDS: 1, Verdict.CONTRADICTED: 1},
        "close": {Verdict.HOLDS: 2},
    }


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
    [
        (1, 1.03, Verdict.HOLDS),
        (1, 1.6, Verdict.CONTRADICTED),
        (60, 8.0, Verdict.IMPOSSIBLE),
    ],
)
def test_a_claim_that_the_work_forbids_cannot_hold(
    tmp_path: Path, jobs: int, ours: float, verdict: Verdict
) -> None:
    study = study_of(tmp_path, "convergent-2", slowdowns(ours), scenario=farm_of(jobs))
    (claim,) = wanted_claims(["CS2-2"])[0][1]
    finding = judged(claim, Studies({"convergent-2": study}, {}))
    (near,) = [one for one in finding.sub_claims if one.what == f"CS 2.0 at most {cs2.NEAR_ONE:g}"]
    assert near.verdict is verdict
    assert ("no schedule at all" in near.because) is (verdict is Verdict.IMPOSSIBLE)


def test_what_a_plan_costs_is_known_by_the_length_of_the_queue(tmp_path: Path) -> None:
    points = []
    for where in eg_points.SHOWN:
        for time, plans in ((1, 3), (5, 1)):
            figures = {
                "plan_seconds_mean": [1e-3, 1e-3],
                "plan_seconds_count_below_128": [plans, plans],
                "plan_seconds_mean_below_128": [time * 1e-3, time * 2e-3],
            }
            points.append(({**where, "interarrival": time}, figures))
    study = study_of(tmp_path, "eg-edf-tabu", points)
    costs = eg_figures.plan_costs(study, eg_points.TABU)
    # Three plans of 1 ms and one of 5 ms with the first seed, twice as much with the second.
    assert list(costs) == [128]
    assert costs[128].mean == pytest.approx((2e-3 + 4e-3) / 2)
    names = [drawn.name for drawn in eg_figures.figures(Studies({"eg-edf-tabu": study}, {}))]
    assert "eg-figure-2-queue" in names and "eg-iterations-time" in names


def test_plans_with_nothing_to_do_are_left_out_of_the_mean(tmp_path: Path) -> None:
    figures = {
        "plan_seconds_mean": [1.0],
        "plan_seconds_count_below_0": [100], "plan_seconds_mean_below_0": [0.1],
        "plan_seconds_count_below_1": [100], "plan_seconds_mean_below_1": [0.2],
        "plan_seconds_count_below_2": [1], "plan_seconds_mean_below_2": [3.0],
        "plan_seconds_count_below_64": [3], "plan_seconds_mean_below_64": [7.0],
    }  # fmt: skip
    study = study_of(tmp_path, "x", [({"scheduler": "a"}, figures)])
    assert study.values("plan_seconds_mean_waiting", {"scheduler": "a"}) == {1: 6.0}
    assert study.values("plan_seconds_mean_fullest", {"scheduler": "a"}) == {1: 7.0}


def test_names_of_papers_and_claims_are_understood() -> None:
    everything = wanted_claims([])
    assert [one.name for one, _ in everything] == list(NAMES)
    some = wanted_claims(["pu-2", "EG"])
    assert [(one.name, len(claims)) for one, claims in some] == [("PU", 1), ("EG", 4)]
    with pytest.raises(InputError, match="found 'PU-9', expected a paper"):
        wanted_claims(["PU-1", "PU-9"])


def test_the_table_is_markdown_whatever_stands_in_it() -> None:
    table = Table(("one", "two"), [("a | b", "c")] * 3)
    long = Table(("one", "two"), [("d", "e")] * 40)
    text = markdown("Title", ["Intro."], [Section("Part", [table, long, "Words."])])
    lines = text.splitlines()
    assert lines[0] == "# Title" and "## Part" in lines and lines[-1] == "Words."
    assert lines.count("| a \\| b | c |") == 3
    # The long one is folded away.
    assert text.count("<details>") == text.count("</details>") == 1
    assert text.index("<details>") < text.index("| d | e |")


def test_a_part_of_a_course_is_its_mean_there() -> None:
    study = made_study("main", {"scheduler": ["a"]}, lambda metric, _: (len(metric), 0.0), 1)
    # "busy at 1600" to "busy at 2000": by its end at 3000.
    assert study.values("busy[0.53:0.67]", {"scheduler": "a"}) == {1: 12.0}


def test_what_cannot_be_run_is_told_and_makes_it_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.lab.reproduce.EXPERIMENTS", tmp_path)
    said: list[str] = []
    how = How(Place(in_process=True), quick=True)
    found = reproduce(["PU-1"], tmp_path / "out", how, said.append)
    assert not found.is_complete
    assert any(line.startswith("not run: partial-utility: ") for line in said)
    assert found.claims[0].finding.counts == {Verdict.NOT_RUN: 1}
