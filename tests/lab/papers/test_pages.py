"""The papers as data, and their shipped pages."""

from __future__ import annotations

import csv

import pytest

from grid.lab.experiment import load_experiment
from grid.lab.papers.page import PAGES, differing_verdicts, read_index
from grid.lab.papers.paper import NAMES, View, load_paper
from grid.lab.papers.reproduce import EXPERIMENTS
from tests.lab.papers.test_judge import BELOW, TWO, judge, paper_of, spread, study_of

CLAIMS = [claim for name in NAMES for claim in load_paper(name).claims]


@pytest.mark.parametrize("name", NAMES)
def test_checks_name_axes_and_metrics_of_their_experiments(name: str) -> None:
    paper = load_paper(name)
    axes = {
        one: {axis: {str(value) for value in values}
              for axis, values in load_experiment(EXPERIMENTS / f"{one}.yaml").axes.items()}
        for one in paper.experiments(tuple(paper.claims))
    }  # fmt: skip
    for claim in paper.claims.values():
        for sentence in claim.sentences:
            there = axes[sentence.experiment]
            for check in sentence.checks:
                for values in (check.first, check.second or {}, check.along):
                    for axis, given in values.items():
                        chosen = given if isinstance(given, list) else [given]
                        assert given == "all" or set(map(str, chosen)) <= there[axis], sentence
    views = [(one, view) for reading in paper.readings for other in reading.others
             for one, view in other.views.items()]  # fmt: skip
    for experiment, view in views:
        _check_view(view, experiment, axes)


def _check_view(view: View, experiment: str, axes: dict[str, dict[str, set[str]]]) -> None:
    there = axes[view.experiment or experiment]
    for axis, value in view.where.items():
        assert str(value) in there[axis], view
    assert set(view.rename) <= set(there)


def test_the_index_has_a_verdict_on_each_claim() -> None:
    assert sorted(read_index(PAGES)) == sorted(CLAIMS)
    assert len(CLAIMS) == 27


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_all_cells_has_every_sentence(name: str) -> None:
    with (PAGES / f"{name}.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["reading"] == "main"]
    sentences = {
        (claim, one.label) for claim, it in load_paper(name).claims.items() for one in it.sentences
    }
    assert {(row["claim"], row["sentence"]) for row in rows} == sentences


def test_only_opposite_verdicts_differ_from_the_index(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "README.md").write_text("| [X-1](X.md) | so | holds |\n")
    for mean, count in ((9.0, 1), (1.0, 0)):
        study = study_of(TWO, {("a",): spread(mean), ("b",): [5.0] * 4})
        found = judge(paper_of(BELOW), ["X-1"], {"made-up": study})
        assert len(list(differing_verdicts(folder, [found]))) == count
