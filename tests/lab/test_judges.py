"""Every judge can come out every way: made-up runs for each verdict that it can give.

A judge that cannot say "holds" is as broken as one that cannot say "contradicted".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from grid.lab.cases import load_experiment
from grid.lab.claims import Claim, Finding, Studies, Verdict, judged
from grid.lab.papers import NAMES, c07_knapsack, cs2, gm, paper
from grid.lab.reproduce import EXPERIMENTS
from tests.lab.studies import Made, made_study

Point = dict[str, Any]
CLAIMS = {claim.name: claim for name in NAMES for claim in paper(name).claims}


def axes_of(experiment: str) -> dict[str, list[Any]]:
    loaded = load_experiment(EXPERIMENTS / f"{experiment}.yaml")
    return {
        name: [value if isinstance(value, int | float) else str(value) for value in axis]
        for name, axis in loaded.axes.items()
    }


def found(claim: Claim, made: Made) -> Finding:
    """What the judge says to runs of the claim's own experiments with such figures."""
    studies = {name: made_study(name, axes_of(name), made) for name in claim.experiments}
    return judged(claim, Studies(studies))


def rank(order: Iterable[str], value: str) -> float:
    return float(list(order).index(value))


def c07_late(metric: str, point: Point) -> float:
    if metric == "jobs_in_system_growth":
        return 1.05
    order = ["CS_i_p", "CS_ni_p", "CS_i_np", "CS_ni_np", "EASY", "BF-rm", "BF-unrm", "EDF"]
    return 60.0 + 0.05 * rank(order, point["scheduler"]) - 2.0 * point["interarrival"]


def c07_late_rising(metric: str, point: Point) -> float:
    return 2.0 if metric == "jobs_in_system_growth" else 120.0 - c07_late(metric, point)


def knapsack(metric: str, point: Point) -> float:
    is_greedy = point["knapsack"] == "greedy"
    if metric == "proven_percent":
        return 50.0
    if metric.startswith("plan_seconds"):
        return 1e-5 if is_greedy else 1e-2
    figures = {metric: figures for _, metric, figures in c07_knapsack.COLUMNS}[metric]
    return 100.0 * figures[point["license_ratio"]][0 if is_greedy else 1]


def knapsack_apart(_: str, point: Point) -> float:
    is_greedy = point["knapsack"] == "greedy"
    return 70.0 - 20.0 * is_greedy * (2.0 if point["license_ratio"] == "55-60 %" else 1.0)


def c07_cost(_: str, point: Point) -> float:
    cost = {"CS_i_p": 2.0, "CS_i_np": 1.0, "CS_ni_p": 4.0, "CS_ni_np": 3.0}
    power = 2.0 if "ni" in point["scheduler"] else 0.9
    return 1e-3 * cost.get(point["scheduler"], 0.5) * point.get("jobs", 1) ** power


def c07_cost_growing(_: str, point: Point) -> float:
    return 1e-9 * point.get("jobs", 1) ** 3.0


def cs2_late(metric: str, point: Point) -> float:
    if metric == "jobs_in_system_growth":
        return 1.05
    gap = 20.0 if point["interarrival"] in cs2.CONTENDED else 5.0
    rest = 60.0 - 2.0 * point["interarrival"]
    return rest + (gap if not point["scheduler"].startswith("CS") else 0.0)


def cs2_late_rising(metric: str, point: Point) -> float:
    return 2.0 if metric == "jobs_in_system_growth" else 120.0 - cs2_late(metric, point)


def cs2_slowdown(_: str, point: Point) -> float:
    return 1.05 if point["scheduler"].startswith("CS") else 3.0


def cs2_cost(_: str, point: Point) -> float:
    cost = {"EASY": 1.0, "Flexible": 2.0, "CS 2.0 Cs Td": 3.0, "CS 2.0 Cs": 4.0, "CS 2.0 Td": 5.0}
    return 1e-3 * cost.get(point["scheduler"], 6.0)


def cs2_sorted(metric: str, point: Point) -> float:
    is_fine = "Cs" not in point["scheduler"]
    is_time = metric.startswith("plan_seconds")
    return 2.0 - float(is_fine) if not is_time else 1e-3 * (1.0 + is_fine)


def cs2_growth(_: str, point: Point) -> float:
    power = {"CS 2.0 Cs": 0.9, "CS 2.0 Cs Td": 1.0}.get(point["scheduler"], 1.05)
    return 1e-5 * point["jobs"] ** power


def cs2_licenses(_: str, point: Point) -> float:
    return 92.0 + 0.2 * point["interarrival"] + 2.0 * point["scheduler"].startswith("CS")


def cs2_licenses_unused(metric: str, point: Point) -> float:
    return 130.0 - cs2_licenses(metric, point)


def pu_ranked(best_first: str) -> Any:
    def figure(_: str, point: Point) -> float:
        return rank(best_first.split(), point["scheduler"])

    return figure


def eg_late(_: str, point: Point) -> float:
    order = ["Tabu", "EG-EDF", "Flexible", "EASY", "FCFS"]
    late = 10.0 * rank(order, point["scheduler"].split(",")[0]) if _not_tabu(point) else 9.5
    return 1.4 * late - point["interarrival"] * late / 10.0


def _not_tabu(point: Point) -> bool:
    return not point["scheduler"].startswith("Tabu")


def eg_usage(_: str, point: Point) -> float:
    is_schedule = point["scheduler"] in ("EG-EDF",) or not _not_tabu(point)
    is_better = is_schedule == (point["interarrival"] < 5)
    return 95.0 + (not _not_tabu(point)) if is_better else 85.0


def eg_cost(metric: str, point: Point) -> float:
    if point["scheduler"] in ("EASY", "Flexible"):
        return 1e-3 * (64.0 if metric.endswith("below_64") else 5.0)
    return 1e-4 if point["scheduler"] == "FCFS" else 1e-3


def eg_slowdown(_: str, point: Point) -> float:
    order = ["Tabu", "Flexible", "EG-EDF", "EASY", "FCFS"]
    own = 1.0 + 0.2 * rank(order, point["scheduler"].split(",")[0])
    return own * (2.0 - 0.1 * point["interarrival"])


def gm_ordered(metric: str, point: Point) -> float:
    """Responses and migrations that fall from scenario to scenario, at last by little."""
    figure = {"S3": 20.0, "S2": 21.5, "S1": 100.0}[point["scene"]]
    figure += 3.0 if point["policy"] == "LGFS" else 0.0
    return figure * (0.7 if "first_half" in metric else 1.0)


def gm_rising(metric: str, point: Point) -> float:
    return 240.0 - gm_ordered(metric, point)


def gm_loss(_: str, point: Point) -> float:
    losses = {("AFCFS", "S3"): 5.0, ("LGFS", "S3"): 20.0}
    return (gm.LOSSES | losses)[point["policy"], point["scene"]]


def gm_used(metric: str, point: Point) -> float:
    _, is_course, place = metric.partition(" at ")
    more = 5.0 if is_course and 1600 < float(place) <= 2400 else 0.0
    return gm.UTILIZATIONS[point["policy"], point["scene"]] + more


def gm_ten_more(_: str, point: Point) -> float:
    return {"S1": 50.0, "S2": 60.0, "S3": 70.0}[point["scene"]]


HOLDING: dict[str, Any] = {
    "C07-1": knapsack,
    "C07-2": knapsack,
    "C07-3": c07_late,
    "C07-4": c07_late,
    "C07-5": lambda *_: 1.02,
    "C07-6": lambda *_: 98.0,
    "C07-7": c07_cost,
    "CS2-1": cs2_late,
    "CS2-2": cs2_slowdown,
    "CS2-3": lambda _, point: 98.0 if point["scheduler"].startswith("CS") else 90.0,
    "CS2-4": cs2_licenses,
    "CS2-5": cs2_cost,
    "CS2-6": cs2_sorted,
    "CS2-7": cs2_growth,
    "PU-1": lambda _, point: 0.7 if point["scheduler"] == "MM" else 1.0,
    "PU-2": pu_ranked("MM BU PU"),
    "PU-3": pu_ranked("MM BU PU"),
    "PU-4": lambda _, point: {"PU": 9.5, "BU": 10.0, "MM": 20.0}[point["scheduler"]],
    "PU-5": lambda _, point: {"PU": 0.60, "BU": 0.56, "MM": 0.55}[point["scheduler"]],
    "EG-1": eg_late,
    "EG-2": eg_usage,
    "EG-3": eg_cost,
    "EG-4": eg_slowdown,
    "GM-1": gm_ordered,
    "GM-2": gm_used,
    "GM-3": gm_loss,
    "GM-4": gm_ordered,
}
"""The mean of a metric at a point, such that all that the paper claims is so."""

ALSO: dict[str, Any] = {
    "PU-1": lambda _, point: {"PU": 1.0, "BU": 0.9, "MM": 0.7}[point["scheduler"]],
    "PU-3": pu_ranked("PU BU MM"),
    "EG-3": lambda _, point: 1.0 if point["scheduler"] == "FCFS" else 0.1,
    "GM-2": gm_ten_more,
}
"""Where a paper contradicts itself: what its other sentences need."""

MIRRORED = {
    "CS2-6": 3.0, "PU-2": 2.0, "GM-4": 240.0,
}  # fmt: skip
"""Claims of orders alone: figures subtracted from this contradict all of them."""


CONTRADICTING: dict[str, list[Any]] = {
    "C07-1": [knapsack_apart],
    "C07-2": [lambda _, point: 0.5 if point["knapsack"] == "greedy" else 1.0],
    "C07-3": [c07_late_rising],
    "C07-4": [lambda _, point: 20.0 if point["scheduler"] == "CS_i_p" else 10.0],
    "C07-5": [lambda *_: 1.5],
    "C07-6": [lambda *_: 80.0],
    "C07-7": [lambda metric, point: 1e-6 / c07_cost(metric, point), c07_cost_growing],
    "CS2-1": [cs2_late_rising],
    "CS2-2": [lambda metric, point: 4.0 - cs2_slowdown(metric, point)],
    "CS2-3": [lambda _, point: 80.0 if point["scheduler"].startswith("CS") else 90.0],
    "CS2-4": [cs2_licenses_unused],
    "CS2-5": [lambda metric, point: 1e-6 / cs2_cost(metric, point)],
    "CS2-7": [
        lambda _, point: 1e-9 * point["jobs"] ** (3.0 if point["scheduler"][-2:] == "Cs" else 2.9)
        * (2.0 if "Cs" in point["scheduler"] else 1.0)
    ],
    "PU-1": [
        lambda _, point: 1.0 if point["scheduler"] == "MM" else 0.9,
        lambda _, point: 0.8 if point["scheduler"] == "PU" else 0.9,
    ],
    "PU-3": [pu_ranked("MM BU PU"), pu_ranked("PU BU MM")],
    "PU-4": [
        lambda _, point: {"PU": 30.0, "BU": 29.0, "MM": 25.0}[point["scheduler"]],
        lambda _, point: {"PU": 1.0, "BU": 5.0, "MM": 2.0}[point["scheduler"]],
    ],
    "PU-5": [
        lambda _, point: {"PU": 0.3, "BU": 0.5, "MM": 0.6}[point["scheduler"]],
        lambda _, point: {"PU": 0.9, "BU": 0.5, "MM": 0.6}[point["scheduler"]],
    ],
    "EG-1": [
        lambda metric, point: 180.0 - 2 * eg_late(metric, point) - 10 * _not_tabu(point),
        lambda _, point: 20.0 if point["scheduler"] == "EG-EDF" else 10.0,
    ],
    "EG-2": [lambda metric, point: 180.0 - eg_usage(metric, point)],
    "EG-3": [
        lambda _, point: 1.0 if point["scheduler"] == "FCFS" else
        ({"EASY": 0.1, "Flexible": 0.2}.get(point["scheduler"], 0.3 + 1.0 / point["interarrival"])),
        lambda metric, point: 64.0 if metric.endswith("_64") and point["scheduler"] not in
        ("EASY", "Flexible") else 1.0,
        eg_cost,
    ],
    "EG-4": [
        lambda metric, point: 1.0 / eg_slowdown(metric, point),
        lambda _, point: 1.0 + _not_tabu(point),
    ],
    "GM-1": [
        gm_rising,
        lambda metric, point: gm_ordered(metric, point) * (2.0 if "first" in metric else 1.0),
    ],
    "GM-3": [lambda metric, point: 80.0 - gm_loss(metric, point)],
    "GM-2": [lambda metric, point: 110.0 - gm_used(metric, point)],
}  # fmt: skip
"""Means such that, taken together, each kind of sub-claim is contradicted somewhere."""


def exactly(mean: Any, spread: float = 0.0) -> Made:
    return lambda metric, point: (mean(metric, point), spread * abs(mean(metric, point)))


def kinds(finding: Finding) -> set[str]:
    return {one.what for one in finding.sub_claims}


def test_every_claim_of_the_list_has_a_made_up_case() -> None:
    counts = {"C07": 7, "CS2": 7, "PU": 5, "EG": 4, "GM": 4}
    names = [f"{name}-{number}" for name in NAMES for number in range(1, counts[name] + 1)]
    assert list(CLAIMS) == list(HOLDING) == names
    assert sorted([*MIRRORED, *CONTRADICTING]) == sorted(names)


@pytest.fixture(autouse=True)
def no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up runs have no scenario that a bound could be computed from."""
    monkeypatch.setattr(cs2, "least_slowdown", lambda *_: 1.0)


@pytest.mark.parametrize("name", HOLDING)
def test_a_claim_that_is_so_holds(name: str) -> None:
    # What is counted has no spread.
    spread = 0.0 if name == "PU-1" else 1e-6
    means = [HOLDING[name], *([ALSO[name]] if name in ALSO else [])]
    findings = [found(CLAIMS[name], exactly(mean, spread)) for mean in means]
    held = {
        one.key
        for finding in findings
        for one in finding.sub_claims
        if one.verdict is Verdict.HOLDS
    }
    assert held == {one.key for one in findings[0].sub_claims}, [
        one for one in findings[0].sub_claims if one.key not in held
    ][:3]


@pytest.mark.parametrize("name", HOLDING)
def test_a_claim_that_is_not_so_is_contradicted(name: str) -> None:
    if name in MIRRORED:
        made = [lambda metric, point: MIRRORED[name] - HOLDING[name](metric, point)]
    else:
        made = CONTRADICTING[name]
    findings = [found(CLAIMS[name], exactly(mean, 1e-6)) for mean in made]
    contradicted = {
        one.what
        for finding in findings
        for one in finding.sub_claims
        if one.verdict is Verdict.CONTRADICTED
    }
    assert contradicted == kinds(findings[0]), kinds(findings[0]) - contradicted


OPEN: dict[str, Made] = {
    "C07-1": lambda *_: (70.0, 60.0),
    "C07-2": lambda _, point: (1.0, 0.2) if point["knapsack"] == "greedy" else (10.0, 5.0),
    "C07-5": lambda *_: (1.1, 0.5),
    "C07-6": lambda *_: (95.0, 10.0),
    "CS2-2": lambda *_: (1.1, 0.9),
    "CS2-3": lambda *_: (95.0, 10.0),
    "CS2-4": lambda *_: (90.0, 30.0),
    "PU-1": lambda *_: (0.5, 0.4),
    "CS2-7": lambda _, point: (point["jobs"] ** 1.1, 0.7 * point["jobs"] ** 1.1),
    "EG-3": lambda metric, _: (8.0, 6.0) if metric.endswith("_64") else (3.0, 2.0),
    "EG-4": lambda *_: (10.0, 3.0),
    "GM-2": lambda *_: (55.0, 40.0),
}
"""Means and spreads that leave everything open; of other claims 10 and 9."""
COUNTED = {f"{name} completes every job of every repetition" for name in ("PU", "BU")}


@pytest.mark.parametrize("name", HOLDING)
def test_repetitions_that_differ_widely_decide_nothing(name: str) -> None:
    finding = found(CLAIMS[name], OPEN.get(name, lambda *_: (10.0, 9.0)))
    undecided = [one for one in finding.sub_claims if one.verdict is Verdict.UNDECIDED]
    assert {one.what for one in undecided} == kinds(finding) - COUNTED
    assert all(one.because for one in undecided)


@pytest.mark.parametrize(
    ("name", "mean"),
    [
        ("CS2-4", lambda *_: 65.0),
        (
            "EG-1",
            lambda _, point: 5.0 if "300" in point["scheduler"] else 10.0 + 30.0 * _tabu(point),
        ),
        ("EG-2", lambda _, point: 95.0 if "300" in point["scheduler"] else 90.0 - _tabu(point)),
        ("EG-3", lambda _, point: 3.0 if "300" in point["scheduler"] else 2.0 - _tabu(point)),
        ("EG-4", lambda _, point: 1.0 if "300" in point["scheduler"] else 2.0 + _tabu(point)),
        ("GM-1", lambda _, point: (point["load"] - 0.5) * rank(gm.SCENES, point["scene"]) + 9.0),
        ("GM-2", lambda _, point: (point["load"] - 0.5) * rank(gm.SCENES, point["scene"]) + 9.0),
        ("GM-3", lambda _, point: (point["load"] - 0.5) * rank(gm.SCENES, point["scene"]) + 9.0),
        ("GM-4", lambda _, point: (point["load"] - 0.5) * rank(gm.SCENES, point["scene"]) + 9.0),
    ],
)
def test_what_hangs_on_a_quantity_that_is_not_given_depends(name: str, mean: Any) -> None:
    finding = found(CLAIMS[name], exactly(mean, 1e-6))
    (one, *_) = [sub for sub in finding.sub_claims if sub.verdict is Verdict.DEPENDS]
    assert {Verdict.HOLDS, Verdict.CONTRADICTED} <= {row.verdict for _, row in one.rows}
    assert "which the paper does not give" in one.because


def _tabu(point: Point) -> float:
    return float(not _not_tabu(point))


@pytest.mark.parametrize("name", HOLDING)
def test_what_was_not_run_is_said_so(name: str) -> None:
    claim = CLAIMS[name]
    absent = dict.fromkeys(claim.experiments, "no such file")
    (one,) = judged(claim, Studies({}, absent)).sub_claims
    assert one.verdict is Verdict.NOT_RUN and "no such file" in one.because
    # Experiments without a single run: every sub-claim says so, and none has a verdict.
    studies = {
        experiment: made_study(experiment, axes_of(experiment), lambda *_: (1.0, 0.0), seeds=0)
        for experiment in claim.experiments
    }
    finding = judged(claim, Studies(studies))
    assert {sub.verdict for sub in finding.sub_claims} == {Verdict.NOT_RUN}
    assert all(sub.because for sub in finding.sub_claims)
