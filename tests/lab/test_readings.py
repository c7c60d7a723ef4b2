"""Other readings: judged by their own runs, compared with the main one, and told on the page."""

from __future__ import annotations

from typing import Any

from grid.lab.claims import Claim, Finding, Studies, SubClaim, Verdict, judged
from grid.lab.comparisons import below
from grid.lab.pages import Judged, changes_of
from grid.lab.papers import NAMES, paper
from grid.lab.readings import Other, Reading, View, compared, experiments_of, with_readings
from grid.lab.study import Study
from tests.lab.studies import made_study


def pair(name: str, first: float, second: float, **more: float) -> Study:
    """A study of two schedulers whose figures differ by metric as given."""
    means = {"a": first, "b": second}

    def made(metric: str, point: dict[str, Any]) -> tuple[float, float]:
        return more.get(metric, means[point["scheduler"]]), 1e-6

    return made_study(name, {"scheduler": ["a", "b"]}, made)


def judge_pair(study: Study) -> Any:
    yield below(study, "late", {"scheduler": "a"}, {"scheduler": "b"}, setting="", unit="%")


PAIR = Claim("X-1", "a below b", "Fig. 1", ("main",), judge_pair)


def reading(*others: Other, claims: tuple[str, ...] = ("X-1",)) -> Reading:
    return Reading("what", "so", "words", others, claims, "setting so")


def test_another_reading_is_judged_by_its_own_runs_and_told_where_it_changes() -> None:
    studies = Studies({"main": pair("main", 1.0, 2.0), "more": pair("more", 2.0, 1.0)})
    main = judged(PAIR, studies)
    turned = Other("the other way", {"main": View("more")})
    same = Other("the same", {"main": View("main")})
    found = compared(PAIR, [reading(turned, same)], studies)
    assert [len(one.changed) for one in found] == [1, 0]
    (sub,) = with_readings(main, found).sub_claims
    assert sub.verdict is Verdict.HOLDS
    assert sub.otherwise == (("the other way", Verdict.CONTRADICTED),)
    assert main.in_words == "1 holds"
    assert with_readings(main, found).in_words == "1 holds; 1 the opposite under another reading"


def test_a_reading_that_was_run_at_some_values_of_an_axis_says_at_which() -> None:
    def made(_: str, point: dict[str, Any]) -> tuple[float, float]:
        return (1.0 if point["scheduler"] == "a" else 2.0), 1e-6

    def judge(study: Study) -> Any:
        for load in study.axes["load"]:
            points = ({"scheduler": name, "load": load} for name in "ab")
            yield below(study, "late", *points, setting=f"load {load}")

    claim = Claim("X-1", "a below b", "", ("main",), judge)
    axes = {"scheduler": ["a", "b"], "load": [1, 2]}
    few = made_study("few", {**axes, "load": [2]}, lambda *given: (3.0 - made(*given)[0], 1e-6))
    studies = Studies({"main": made_study("main", axes, made), "few": few})
    others = Other("of one", {"main": View("few")}), Other("same", {"main": View("main")})
    found = compared(claim, [reading(*others)], studies)
    assert [one.only_at for one in found] == ["load 2", ""]
    (_, second) = with_readings(judged(claim, studies), found).sub_claims
    assert second.otherwise == (("of one; at load 2 alone", Verdict.CONTRADICTED),)


def test_what_depends_under_another_reading_is_counted_beside_the_opposite() -> None:
    def sub(verdict: Verdict, *others: Verdict) -> SubClaim:
        return SubClaim("a", "", verdict, otherwise=tuple(("x", other) for other in others))

    both = (Verdict.CONTRADICTED, Verdict.DEPENDS)
    subs = (
        sub(Verdict.HOLDS, *both), sub(Verdict.HOLDS, Verdict.DEPENDS),
        sub(Verdict.CONTRADICTED, Verdict.DEPENDS), sub(Verdict.UNDECIDED, Verdict.DEPENDS),
        sub(Verdict.HOLDS, Verdict.UNDECIDED),
    )  # fmt: skip
    assert Finding(subs).in_words == (
        "3 hold, 1 contradicted, 1 undecided; 1 the opposite, 2 depend under another reading"
    )


def test_another_reading_may_be_another_metric_of_the_same_runs_or_its_opposite() -> None:
    def made(metric: str, point: dict[str, Any]) -> tuple[float, float]:
        figure = 1.0 if point["scheduler"] == "a" else 2.0
        return (3.0 - figure if metric == "late_of_all" else figure), 1e-6

    studies = Studies({"main": made_study("main", {"scheduler": ["a", "b"]}, made)})
    others = [
        Other("of all", {"main": View("main", metrics={"late": "late_of_all"})}),
        Other("falling", {"main": View("main", metrics={"late": "-late"})}),
    ]
    found = compared(PAIR, [reading(*others)], studies)
    assert [one.finding.counts[Verdict.CONTRADICTED] for one in found] == [1, 1]


def test_a_reading_of_some_schedulers_takes_the_rest_from_the_main_runs() -> None:
    only = made_study("more", {"reading": ["r"], "scheduler": ["b"]}, lambda *_: (0.5, 1e-6), 3)
    studies = Studies({"main": pair("main", 1.0, 2.0), "more": only})
    other = Other("b differs", {"main": View("more", {"reading": "r"}, rest="scheduler")})
    (one,) = compared(PAIR, [reading(other)], studies)
    (sub,) = one.finding.sub_claims
    assert sub.verdict is Verdict.CONTRADICTED
    assert sub.interval is not None and sub.interval.count == 3


def test_a_reading_with_fewer_repetitions_does_not_change_a_verdict_by_that_alone() -> None:
    def made(_: str, point: dict[str, Any]) -> tuple[float, float]:
        return (1.0 if point["scheduler"] == "a" else 1.5), 0.4

    axes = {"scheduler": ["a", "b"]}
    # Other points have other noise, so these are not the same runs.
    few = made_study("more", {"reading": ["r"], **axes}, made, seeds=2)
    studies = Studies({"main": made_study("main", axes, made, seeds=40), "more": few})
    main = judged(PAIR, studies)
    (one,) = compared(
        PAIR, [reading(Other("few", {"main": View("more", {"reading": "r"})}))], studies
    )
    assert main.counts[Verdict.HOLDS] == 1 and one.finding.counts[Verdict.UNDECIDED] == 1
    assert one.changed == ()


def test_a_reading_touches_the_claims_that_it_names_alone() -> None:
    studies = Studies({"main": pair("main", 1.0, 2.0)})
    other = reading(Other("x", {"main": View("main")}), claims=("X-2",))
    assert compared(PAIR, [other], studies) == []
    assert experiments_of([PAIR], [other]) == ["main"]
    more = reading(Other("x", {"main": View("more")}), Other("never", lacking="no rule"))
    assert experiments_of([PAIR], [more]) == ["main", "more"]


def test_readings_of_the_papers_name_claims_and_experiments_that_exist() -> None:
    for name in NAMES:
        one = paper(name)
        claims = {claim.name: claim for claim in one.claims}
        assert one.readings and one.left_out
        assert set(one.why) <= set(claims)
        for reading_ in one.readings:
            assert set(reading_.claims) <= set(claims), reading_.where
            assert reading_.main and reading_.why and reading_.settings
            for other in reading_.others:
                assert bool(other.views) != bool(other.lacking), other.text
                named = {e for claim in reading_.claims for e in claims[claim].experiments}
                assert set(other.views) <= named, other.text


def test_a_line_of_a_claim_says_what_other_readings_change() -> None:
    studies = Studies({"main": pair("main", 1.0, 2.0), "more": pair("more", 2.0, 1.0)})
    main = judged(PAIR, studies)
    found = compared(PAIR, [reading(Other("turned", {"main": View("more")}))], studies)
    line = str(Judged(PAIR, main, tuple(found)))
    assert line.startswith("X-1: 1 holds. a below b.")
    assert "turned: 1 contradicted instead of holds" in line


def test_what_is_undecided_under_both_readings_is_not_said_to_be_unchanged() -> None:
    def made(*_: Any) -> tuple[float, float]:
        return 1.0, 0.5

    axes = {"scheduler": ["a", "b"]}
    studies = Studies({name: made_study(name, axes, made) for name in ("main", "more")})
    (one,) = compared(PAIR, [reading(Other("more", {"main": View("more")}))], studies)
    few = "1 undecided under both: too few repetitions to tell"
    assert changes_of(one) == f"nothing that is decided; {few}"
    # Where it was not run, nothing is said to be unchanged either.
    (one,) = compared(PAIR, [reading(Other("x", {"main": View("x")}))], studies)
    assert changes_of(one) == "not run"
