"""Verdicts on made-up runs: each verdict of each kind of comparison, for the right reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from grid.lab.papers.judge import Cell, Headline, Studies, Verdict, headline, judge
from grid.lab.papers.paper import Paper
from grid.lab.statistics import Region
from grid.lab.study import Study

Values = Mapping[tuple[Any, ...], Sequence[float]]
"""The values by repetition, by the point's values of all axes."""
NOISE = (0.0, 0.1, -0.1, 0.05)
SCATTER = (9.0, -9.0, 8.0, -8.0)


class MadeUp:
    """A store of made-up runs."""

    def __init__(self, records: Mapping[str, Any]) -> None:
        self.records = records

    def has(self, key: str) -> bool:
        return key in self.records

    def record(self, key: str) -> Any:
        return self.records[key]


def study_of(axes: Mapping[str, list[Any]], values: Values, metric: str = "late") -> Study:
    runs, records = [], {}
    for point, numbers in values.items():
        for seed, value in enumerate(numbers, 1):
            key = f"{point} {seed}"
            runs.append((dict(zip(axes, point, strict=True)), seed, key))
            records[key] = {"metrics": {"grid": {metric: value}}, "more": {}, "courses": {}}
    store: Any = MadeUp(records)
    return Study("made-up", axes, 0.95, None, (), tuple(runs), (), (store,))


def paper_of(*checks: Mapping[str, Any], **more: Any) -> Paper:
    sentence = {"label": "it", "quote": "It is so", "figure": "Fig. 1", "experiment": "made-up",
                "unknown": "the load", "checks": list(checks)}  # fmt: skip
    claim = {"text": "so", "sentences": [sentence]}
    data = {"name": "X", "short": "x", "source": {}, "method": "m", "confidence": "ours",
            "claims": {"X-1": claim}, "figures": [], **more}  # fmt: skip
    return Paper.model_validate(data)


def verdict_of(check: Mapping[str, Any], study: Study) -> Headline:
    return judge(paper_of(check), ["X-1"], {"made-up": study}).claims["X-1"]


def spread(mean: float, noise: Sequence[float] = NOISE) -> list[float]:
    return [mean + one for one in noise]


TWO = {"policy": ["a", "b"]}
BELOW = {"kind": "below", "metric": "late", "first": {"policy": "a"}, "second": {"policy": "b"}}


@pytest.mark.parametrize(
    ("check", "a", "b", "verdict"),
    [
        ({}, spread(1), [5.0] * 4, Verdict.HOLDS),
        ({}, spread(5), [1.0] * 4, Verdict.CONTRADICTED),
        ({}, spread(5, SCATTER), [5.5] * 4, Verdict.UNDECIDED),
        ({"margin": 1.0}, spread(5.3), [5.0] * 4, Verdict.HOLDS),
        ({"kind": "above"}, spread(5), [1.0] * 4, Verdict.HOLDS),
        ({"kind": "close", "margin": 0.5}, spread(1.1), [1.0] * 4, Verdict.HOLDS),
        ({"kind": "close", "margin": 0.5}, spread(3), [1.0] * 4, Verdict.CONTRADICTED),
        ({"kind": "difference", "low": 5, "high": 15}, spread(11), [1.0] * 4, Verdict.HOLDS),
        ({"kind": "difference", "low": 5, "high": 15}, spread(2), [1.0] * 4, Verdict.CONTRADICTED),
        ({"kind": "ratio", "low": 0.9, "high": 1.0}, spread(9.5), [10.0] * 4, Verdict.HOLDS),
        ({"kind": "at_most_times", "times": 0.8}, spread(7), [10.0] * 4, Verdict.HOLDS),
        ({"kind": "at_most_times", "times": 0.8}, spread(9), [10.0] * 4, Verdict.CONTRADICTED),
    ],
)
def test_two_points(
    check: Mapping[str, Any], a: Sequence[float], b: Sequence[float], verdict: Verdict
) -> None:
    study = study_of(TWO, {("a",): a, ("b",): b})
    assert verdict_of(BELOW | check, study).verdict is verdict


def test_pairs_are_by_seed() -> None:
    """Each value alone scatters by far more than the two differ."""
    study = study_of(TWO, {("a",): [10, 20, 30, 40], ("b",): [10.9, 21, 31.1, 41]})
    assert verdict_of(BELOW, study).verdict is Verdict.HOLDS


@pytest.mark.parametrize(
    ("check", "a", "verdict"),
    [
        ({"kind": "within", "high": 1.1}, spread(1, (0, 0.01, 0, 0.01)), Verdict.HOLDS),
        ({"kind": "within", "high": 1.1}, spread(2), Verdict.CONTRADICTED),
        ({"kind": "within", "low": 95.0}, spread(94.99), Verdict.UNDECIDED),
        ({"kind": "always", "low": 1.0}, [1.0] * 4, Verdict.HOLDS),
        ({"kind": "always", "low": 1.0}, [1.0, 1.0, 0.99, 1.0], Verdict.CONTRADICTED),
    ],
)
def test_one_point(check: Mapping[str, Any], a: Sequence[float], verdict: Verdict) -> None:
    study = study_of({"policy": ["a"]}, {("a",): a})
    given = {"metric": "late", "first": {"policy": "a"}, **check}
    assert verdict_of(given, study).verdict is verdict


def test_trends_name_the_opposite_step() -> None:
    axes = {"policy": ["a"], "interarrival": [1, 2, 3, 4]}
    means = {1: 9, 2: 7, 3: 5, 4: 1}
    values = {("a", place): spread(mean) for place, mean in means.items()}
    check = {"kind": "falls", "metric": "late", "first": {"policy": "a"}, "axis": "interarrival",
             "margin": 1.0}  # fmt: skip
    assert verdict_of(check, study_of(axes, values)).verdict is Verdict.HOLDS
    values[("a", 2)] = spread(2)
    found = verdict_of(check, study_of(axes, values))
    assert found == Headline(Verdict.EXCEPT, "from Ta 2 to Ta 3")
    opposite = verdict_of({**check, "kind": "rises"}, study_of(axes, values))
    assert opposite.verdict is Verdict.CONTRADICTED


def test_gaps_are_compared_with_gaps() -> None:
    axes = {"policy": ["a", "b"], "interarrival": [1, 4]}
    values = {("a", 1): spread(1), ("b", 1): [9.0] * 4, ("a", 4): spread(1), ("b", 4): [2.0] * 4}
    check = BELOW | {"kind": "wider_gap", "axis": "interarrival", "here": [1]}
    assert verdict_of(check, study_of(axes, values)).verdict is Verdict.HOLDS
    other = check | {"here": [4]}
    assert verdict_of(other, study_of(axes, values)).verdict is Verdict.CONTRADICTED


def test_exponents_of_growth() -> None:
    axes = {"policy": ["a", "b"], "jobs": [100, 200, 400]}
    values = {(name, n): [n**power * (1 + 0.001 * s) for s in range(4)]
              for name, power in (("a", 1.0), ("b", 2.0)) for n in axes["jobs"]}  # fmt: skip
    check = {"kind": "growth", "metric": "late", "axis": "jobs", "first": {"policy": "b"}}
    study = study_of(axes, values)
    assert verdict_of(check | {"high": 2.1}, study).verdict is Verdict.HOLDS
    assert verdict_of(check | {"high": 1.9}, study).verdict is Verdict.CONTRADICTED
    less = check | {"first": {"policy": "a"}, "second": {"policy": "b"}}
    assert verdict_of(less, study).verdict is Verdict.HOLDS


def cell(verdict: Verdict, over: str = "", second: str = "b") -> Cell:
    place = {"first": "a", "second": second}
    return Cell("a below b", place, (1.0,), Region(), "", (1.0,), "late", over, verdict)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ("HHH", Headline(Verdict.HOLDS)),
        ("HHC", Headline(Verdict.EXCEPT, "against 2")),
        ("HHU", Headline(Verdict.EXCEPT, "against 2 (undecided)")),
        ("HCC", Headline(Verdict.CONTRADICTED, "against 1, 2")),
        ("CCC", Headline(Verdict.CONTRADICTED)),
        ("III", Headline(Verdict.IMPOSSIBLE)),
        ("HUU", Headline(Verdict.UNDECIDED, "at 2 of 3 points")),
        ("", Headline(Verdict.NOT_RUN)),
    ],
)
def test_most_cells_decide_a_sentence(verdicts: str, expected: Headline) -> None:
    names = {"H": Verdict.HOLDS, "C": Verdict.CONTRADICTED, "U": Verdict.UNDECIDED,
             "I": Verdict.IMPOSSIBLE}  # fmt: skip
    cells = [cell(names[one], second=str(place)) for place, one in enumerate(verdicts)]
    assert headline(cells) == expected


def test_a_verdict_depends_on_a_quantity_that_is_not_given() -> None:
    at = {"0.3": Verdict.HOLDS, "3": Verdict.CONTRADICTED}
    found = headline([cell(verdict, over) for over, verdict in at.items()], "the load")
    assert found == Headline(Verdict.DEPENDS, "on the load: holds at 0.3, contradicted at 3")
    assert headline([cell(Verdict.HOLDS, over) for over in at]).verdict is Verdict.HOLDS


def test_levels_are_corrected_for_the_number_of_comparisons() -> None:
    """Decided alone (p = 0.01), and not among twenty."""
    axes = {"policy": ["a", "b"], "place": list(range(20))}
    one = {("a", 0): [0.0] * 4, ("b", 0): [1.0, 2.0, 0.9, 2.0]}
    rest = {(name, place): [0.0, 1.0, -1.0, 0.1] for place in range(1, 20) for name in "ab"}
    rest |= {("b", place): [0.1, -1.0, 1.0, 0.0] for place in range(1, 20)}
    check = BELOW | {"along": {"place": "all"}}
    alone = judge(paper_of(check), ["X-1"], {"made-up": study_of(axes, one)})
    among = judge(paper_of(check), ["X-1"], {"made-up": study_of(axes, one | rest)})
    assert alone.sentences[0].cells[0].verdict is Verdict.HOLDS
    assert among.sentences[0].cells[0].verdict is Verdict.UNDECIDED


def reading(view: Mapping[str, Any]) -> list[dict[str, Any]]:
    other = {"text": "the other", "views": {"made-up": view}}
    return [{"open": "o", "main": "m", "why": "w", "claims": ["X-1"], "others": [other]}]


def test_another_reading_turns_a_verdict_and_is_ranked_by_its_effect() -> None:
    axes = {"cpus": ["8", "16"], "policy": ["a", "b"]}
    values = {("8", "a"): spread(1), ("8", "b"): [5.0] * 4,
              ("16", "a"): spread(9), ("16", "b"): [5.0] * 4}  # fmt: skip
    given = paper_of(
        BELOW, readings=reading({"where": {"cpus": "16"}}), main={"made-up": {"cpus": "8"}}
    )
    found = judge(given, ["X-1"], {"made-up": study_of(axes, values)})
    assert found.claims["X-1"].verdict is Verdict.HOLDS
    ((other, turned),) = found.sentences[0].turned
    assert (other.text, turned.verdict) == ("the other", Verdict.CONTRADICTED)
    (effect,) = found.effects
    assert len(effect.turned) == 1
    assert effect.mean == pytest.approx(9.0, abs=0.1)


def test_a_reading_is_compared_at_its_own_points_with_the_rest_filled_in() -> None:
    main = study_of(TWO, {("a",): spread(1), ("b",): [5.0] * 4})
    part = study_of({"policy": ["a"]}, {("a",): spread(9)[:3]})
    studies: Studies = {"made-up": main, "part": part}
    given = paper_of(BELOW, readings=reading({"experiment": "part", "rest": "policy"}))
    found = judge(given, ["X-1"], studies)
    (effect,) = found.effects
    assert len(effect.turned) == 1
    assert [len(cell.values) for _, _, cell in effect.cells] == [3]


def test_without_runs_nothing_is_judged() -> None:
    assert judge(paper_of(BELOW), ["X-1"], {}).claims["X-1"].verdict is Verdict.NOT_RUN
