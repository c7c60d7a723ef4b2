"""Papers reproduced in one go, and their pages: of this code or not, and renewed."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from grid.lab.claims import Finding, Studies, SubClaim, Verdict
from grid.lab.code import code_version
from grid.lab.costs import Costs, Expected
from grid.lab.page_digest import (
    judging_modules,
    page_digest,
    running_modules,
)
from grid.lab.page_files import (
    PAGES,
    missing_pages,
    of_other_code,
    renew,
    stale_pages,
    tally,
    write_index,
    write_page,
)
from grid.lab.pages import Judged, Judgement, sections, short_cells
from grid.lab.papers import NAMES, paper
from grid.lab.place import Place
from grid.lab.reproduce import How, Reproduction, judge, reproduce
from grid.lab.samples import (
    PageSamples,
    differing,
    read_samples,
    take_samples,
    write_samples,
)
from grid.lab.study import read_study
from grid.model.errors import InputError

HERE = Place(in_process=True)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduction, list[str]]:
    """The folder of a quick reproduction of PU, with pages; what came of it, what was said."""
    folder = tmp_path_factory.mktemp("reproduced")
    said: list[str] = []
    how = How(HERE, quick=True)
    return folder, reproduce(["PU"], folder / "out", how, said.append, folder / "pages"), said


def test_a_page_says_why_of_every_claim_and_splits_its_counts() -> None:
    whole = paper("CS2")
    why = {"CS2-3": "Three.", "CS2-6": "Six."}
    claims = {claim.name: claim for claim in whole.claims}
    holds = SubClaim("a below b", "", Verdict.HOLDS, paper="lower")
    against = SubClaim("a at least 95", "", Verdict.CONTRADICTED, paper="busy: 100 %")
    judged = (
        Judged(claims["CS2-3"], Finding((holds, against))),
        Judged(claims["CS2-5"], Finding((holds,))),
        Judged(claims["CS2-6"], Finding((holds,))),
    )
    parts = {
        part.title: part.blocks
        for part in sections(Judgement(dataclasses.replace(whole, why=why), judged, (), {}))
    }
    assert parts["What contradicts the paper, and why"] == ["CS2-3 (1 contradicted): Three."]
    assert parts["What stands behind the other verdicts"] == ["CS2-6 (1 holds): Six."]
    split = "1 holds, 1 contradicted. By what the paper says: lower: 1 holds; busy: 1 contradicted"
    assert [short_cells(one)[-1] for one in judged] == [split, "1 holds", "1 holds"]


def test_the_digest_of_a_page_is_of_the_modules_that_it_hangs_on() -> None:
    digests = {name: page_digest(paper(name)) for name in NAMES}
    assert len(set(digests.values())) == len(NAMES)
    for name in NAMES:
        paths = [path.as_posix() for path in (*running_modules(name), *judging_modules(name))]
        assert any("/cluster/" in path for path in paths)
        assert any(path.endswith(f"papers/{name.lower()}.py") for path in paths)
        assert not any("/live" in path or "/report/" in path for path in paths)
    assert any("local_scheduler" in path.as_posix() for path in running_modules("PU"))
    assert not any("/gang" in path.as_posix() for path in running_modules("CS2"))


def test_partial_utility_is_reproduced_in_one_go(
    quick: tuple[Path, Reproduction, list[str]],
) -> None:
    folder, found, said = quick
    out, pages = folder / "out", folder / "pages"
    assert [one.claim.name for one in found.claims] == [f"PU-{n}" for n in range(1, 6)]
    assert found.is_complete
    # First what will be run, and how long it took.
    assert said[0].startswith("will run partial-utility: 12 runs, never run here before")
    assert said[1].startswith("12 runs in all")
    assert [line.split(":")[0] for line in said[2:]] == [f"PU-{n}" for n in range(1, 6)]
    page = (out / "report.html").read_text()
    assert "QUICK" in page and page.count("<figure data-chart=") == 4
    assert len(list((out / "pictures").glob("pu-figure-*"))) == 8
    assert tally(found.claims).startswith("5 claims, ")
    assert tally(found.claims[:1]).startswith("1 claim, ")
    written = (pages / "PU.md").read_text()
    assert all(f"## PU-{n}:" in written for n in range(1, 6)) and "12 runs, 4 seeds" in written
    for title in (
        "What this depends on",
        "What the paper leaves out",
        "What contradicts the paper",
    ):
        assert f"## {title}" in written
    shown = re.findall(r"!\[.+\]\((.+)\)", written)
    assert len(shown) == 4 and all((pages / name).is_file() for name in shown)
    assert "[PU-3](PU.md)" in (pages / "README.md").read_text()
    as_is = How(HERE, quick=True, as_is=True)
    again = reproduce(["PU-1"], out, as_is, [].append)
    assert again.claims[0].finding == found.claims[0].finding
    # The next time it knows what it cost.
    said = []
    reproduce(["PU"], out, How(HERE, quick=True), said.append)
    assert "CPU seconds here last time" in said[0]


def test_experiments_have_the_repetitions_that_are_asked_for(
    quick: tuple[Path, Reproduction, list[str]], tmp_path: Path
) -> None:
    """And take as many of the seconds of last time as they are of the usual ones."""
    out = tmp_path / "out"
    shutil.copytree(quick[0] / "out", out)
    noted = (out / "costs.json").read_text()
    seconds = Costs.read(out, shipped=PAGES).of("partial-utility", quick=True)
    said: list[str] = []
    fewer = reproduce(["PU-1"], out, How(HERE, quick=True, seeds=[1, 3]), said.append)
    asked = re.search(r": 6 runs, (\d+) CPU seconds", said[0])
    assert seconds and asked and abs(int(asked[1]) - seconds[0] / 2) <= 0.5
    (study,) = fewer.judgements[0].studies.values()
    assert {seed for _, seed, _ in study.runs} == {1, 3}
    assert "Every experiment had the seeds 1, 3." in (out / "claims.md").read_text()
    assert (out / "costs.json").read_text() == noted
    reproduce(["PU-1"], out, How(HERE, quick=True, seeds=2), [].append)
    assert "Every experiment had the seeds 1 to 2." in (out / "claims.md").read_text()


@pytest.mark.parametrize("other", ["--as-is", "--check-pages", "--renew", "--pages=there"])
def test_repetitions_are_refused_beside_what_runs_none(other: str) -> None:
    answer = CliRunner().invoke(app, ["reproduce", "PU-1", "--seeds", "40", other])
    assert answer.exit_code == 2
    assert answer.stderr.startswith("--seeds has no meaning with " + other.partition("=")[0])


def test_what_was_measured_elsewhere_is_not_said_to_have_run_here(tmp_path: Path) -> None:
    here, shipped = tmp_path / "here", tmp_path / "shipped"
    for folder in (here, shipped):
        folder.mkdir()
    Costs({}, {"two": 20.0, "one": 9.0}).write(shipped, to_ship=True)
    Costs({"one": 10.0}, {"two": 20.0}).write(here)
    assert Costs.read(here, shipped=shipped) == Costs({"one": 10.0}, {"two": 20.0, "one": 9.0})
    costs, expected = Costs.read(here, shipped=shipped), Expected()
    assert [expected.add(name, 3, costs, quick=False) for name in ("one", "two", "three")] == [
        "one: 3 runs, 10 CPU seconds here last time",
        "two: 3 runs, 20 CPU seconds where the shipped pages were made",
        "three: 3 runs, never run here before",
    ]


def test_a_paper_reproduced_alone_leaves_the_others_in_the_index(
    quick: tuple[Path, Reproduction, list[str]], tmp_path: Path
) -> None:
    index = tmp_path / "README.md"
    for name in NAMES:
        one = paper(name)
        write_page(tmp_path, judge(one, one.claims, Studies({}, {})), quick=False)
    write_index(tmp_path)
    before = index.read_text()
    assert "27 claims, 27 sub-claims: 27 not run." in before and "QUICK" not in before
    how = How(HERE, quick=True, as_is=True)
    # Of a single claim there is no page, so that the index stays as it is.
    reproduce(["PU-1"], quick[0] / "out", how, [].append, tmp_path)
    assert index.read_text() == before
    found = reproduce(["PU"], quick[0] / "out", how, [].append, tmp_path)
    after = index.read_text()

    def parts(text: str) -> dict[str, str]:
        return {part.split("\n")[0]: part for part in text.split("\n## ")[1:]}

    assert list(parts(after)) == list(NAMES) == list(parts(before))
    assert [name for name in NAMES if parts(after)[name] != parts(before)[name]] == ["PU"]
    counts = sum((one.finding.counts for one in found.claims), Counter[Verdict]())
    assert (
        f"27 claims, {22 + sum(counts.values())} sub-claims: {counts[Verdict.HOLDS]} hold" in after
    )
    assert "22 not run" in after and "QUICK" in after


def test_the_index_that_is_shipped_is_that_of_the_pages_beside_it(tmp_path: Path) -> None:
    for page in PAGES.glob("*.md"):
        shutil.copy(page, tmp_path)
    (tmp_path / "README.md").unlink()
    write_index(tmp_path)
    assert (tmp_path / "README.md").read_text() == (PAGES / "README.md").read_text()


def test_a_page_of_other_code_is_found(tmp_path: Path) -> None:
    found = missing_pages(tmp_path)
    assert len(found) == len(NAMES) and all("there is no page" in line for line in found)
    studies = Studies({}, {})
    for name in NAMES:
        one = paper(name)
        write_page(tmp_path, judge(one, one.claims, studies), quick=False)
    assert stale_pages(tmp_path) == []
    page = tmp_path / "EG.md"
    page.write_text(page.read_text().replace(page_digest(paper("EG")), "0123456789abcdef"))
    (stale,) = stale_pages(tmp_path)
    assert "EG.md" in stale and "found 0123456789abcdef" in stale


def _judgement(folder: Path, code: str) -> Judgement:
    """PU by the runs of the quick reproduction, as if code of that version had made them."""
    study = dataclasses.replace(read_study(folder / "out" / "partial-utility"), code=code)
    one = paper("PU")
    judgement = judge(one, one.claims, Studies({"partial-utility": study}, {}))
    return dataclasses.replace(judgement, studies={"partial-utility": study})


def _forged(samples: PageSamples, **changes: object) -> PageSamples:
    """The same with the first sample of the only experiment changed."""
    ((name, sampled),) = samples.experiments.items()
    first = sampled.runs[0].model_copy(update=changes)
    runs = [first, *sampled.runs[1:]]
    return samples.model_copy(
        update={"experiments": {name: sampled.model_copy(update={"runs": runs})}}
    )


def test_samples_have_every_value_of_every_axis(
    quick: tuple[Path, Reproduction, list[str]],
) -> None:
    study = read_study(quick[0] / "out" / "partial-utility")
    (sampled,) = take_samples({"partial-utility": study}, "0").experiments.values()
    for axis, values in study.axes.items():
        assert {run.point[axis] for run in sampled.runs} == set(values)
    assert "digest" in sampled.names and "metrics.makespan" in sampled.names


def test_a_run_with_other_figures_is_told(quick: tuple[Path, Reproduction, list[str]]) -> None:
    samples = take_samples(_judgement(quick[0], "old").studies, "0")
    said: list[str] = []
    assert differing(samples, HERE, said.append) == []
    assert said == [f"{samples.count} of 12 runs are done again"]
    (line,) = differing(_forged(samples, figures="0" * 16), HERE, said.append)
    assert line.startswith("partial-utility: {") and line.endswith(": other figures")
    (line,) = differing(_forged(samples, seed=-1), HERE, said.append)
    assert line.endswith("seed -1: there is no such run any more")


def test_a_page_of_other_code_is_renewed_where_its_figures_are_the_same(
    quick: tuple[Path, Reproduction, list[str]], tmp_path: Path
) -> None:
    judgement = _judgement(quick[0], code_version())
    write_page(tmp_path, judgement, quick=False)
    page = tmp_path / "PU.md"
    fresh = page.read_text()
    stale = fresh.replace(page_digest(paper("PU")), "0123456789abcdef")

    def left() -> list[str]:
        page.write_text(stale)
        return renew(["PU"], tmp_path, HERE, [].append)

    assert left() == []
    assert stale_pages(tmp_path, ["PU"]) == []
    renewed = page.read_text()
    assert "of the 12 runs were repeated with the present code" in renewed
    # Once more, and the line stands there once.
    stale = renewed.replace(page_digest(paper("PU")), "0123456789abcdef")
    assert left() == [] and page.read_text() == renewed
    samples = read_samples(tmp_path)["PU"]
    for wrong, says in (
        (_forged(samples, figures="0" * 16), "other figures"),
        (samples.model_copy(update={"judging": "0"}), "what judges and draws its figures"),
    ):
        write_samples(tmp_path, "PU", wrong)
        (line,) = left()
        assert says in line and page.read_text() == stale
    (tmp_path / "samples.json").write_text('{"PU": {"judging": 1}}')
    with pytest.raises(InputError, match="judging"):
        left()
    (tmp_path / "samples.json").unlink()
    (line,) = left()
    assert "there are no samples" in line


def test_runs_of_other_code_make_a_page_where_their_figures_are_the_same(
    quick: tuple[Path, Reproduction, list[str]],
) -> None:
    assert of_other_code(_judgement(quick[0], code_version()), HERE, [].append) == ([], "")
    wrong, said = of_other_code(_judgement(quick[0], "old"), HERE, [].append)
    assert wrong == [] and "of the 12 runs were repeated" in said
