"""The examples of the documentation work, and the reference lacks nothing that the code has."""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from tests.fuzz.judge import undrawn

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
EXTRAS = {"learning.md": "pettingzoo"}
"""The optional package that a page needs."""
LONG = ("dissemination.md", "learning.md", "own-plugin.md", "study.md", "troubleshooting.md")
"""Pages whose examples take longest."""


def written_by_hand() -> list[Path]:
    made = {DOCS / name for name in ("_build", "notebooks", "papers.md", "reference", "reproduced")}
    return [ROOT / "README.md"] + [
        path for path in sorted(DOCS.rglob("*.md")) if not made & {path, *path.parents}
    ]


def marked(pages: list[Path]) -> list[Any]:
    """The pages as parameters of a test; long ones are thorough."""
    long = [pytest.mark.thorough]
    return [
        pytest.param(path, id=str(path.relative_to(ROOT)), marks=long if path.name in LONG else ())
        for path in pages
    ]


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the documentation's own."""
    monkeypatch.syspath_prepend(DOCS)
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


class Block(NamedTuple):
    """A block of code: its language, the file that it is the content of, its text, its line."""

    language: str
    file: str
    text: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    pattern = r"^```(?:\{code-block\} )?(\w+)\n(?::caption: (\S+)\n\n?)?(.*?)^```$"
    for found in re.finditer(pattern, text, re.M | re.S):
        language, file, content = found.groups()
        yield Block(language, file or "", content, text[: found.start()].count("\n") + 1)


def commands(text: str) -> Iterator[tuple[list[str], int, str]]:
    """Words, exit code and output of each command of a console block."""
    for part in re.split(r"^\$ ", text.replace("\\\n", ""), flags=re.M)[1:]:
        line, _, output = part.partition("\n")
        code = re.search(r"# exit code (\d+)$", line)
        words = shlex.split(line, comments=True)
        yield words, int(code.group(1)) if code else 0, output


def run_console(text: str) -> list[str]:
    """What is other than the block says."""
    wrong = []
    for words, code, expected in commands(text):
        assert words[0] == "grid", f"{words}: the tests run `grid` only"
        result = CliRunner().invoke(app, words[1:])
        said = result.output if code else result.stdout  # Progress is not part of the results.
        got = "\n".join(line.rstrip() for line in said.splitlines())
        if result.exit_code != code:
            wrong.append(f"{shlex.join(words)}: exit code {result.exit_code}\n{got}")
        elif not doctest.OutputChecker().check_output(expected, got, FLAGS):
            wrong.append(f"{shlex.join(words)} printed\n{got}\nnot\n{expected}")
    return wrong


def run_python(text: str, names: dict[str, Any]) -> list[str]:
    if ">>>" not in text:
        exec(compile(text, "<documentation>", "exec"), names)
        return []
    said = io.StringIO()
    example = doctest.DocTestParser().get_doctest(text, names, "example", None, 0)
    result = doctest.DocTestRunner(optionflags=FLAGS).run(
        example, out=said.write, clear_globs=False
    )
    names |= example.globs
    return [said.getvalue()] if result.failed else []


def wrong_in(page: str) -> list[str]:
    """Does what the page says in the current folder; what came out otherwise."""
    wrong: list[str] = []
    names: dict[str, Any] = {"__name__": "documentation"}
    for block in blocks(page):
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text)
        elif block.language == "console":
            wrong += [f"line {block.line}: {one}" for one in run_console(block.text)]
        elif block.language == "python":
            wrong += [f"line {block.line}: {one}" for one in run_python(block.text, names)]
    return wrong


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty folder; charts, which take most of the time, are not drawn."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("scenarios").symlink_to(ROOT / "scenarios")
    with undrawn():
        yield


@pytest.mark.parametrize("page", marked(written_by_hand()))
@pytest.mark.usefixtures("in_a_folder")
def test_examples_do_what_the_page_says(page: Path) -> None:
    if page.name in EXTRAS:
        pytest.importorskip(EXTRAS[page.name], reason="the page needs an extra")
    wrong = wrong_in(page.read_text())
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.usefixtures("in_a_folder")
def test_the_examples_of_help_are_true() -> None:
    assert not run_python(grid.__doc__ or "", {})


def test_commands_that_are_not_run_have_options_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those on Ray, on logs, and those that take long."""
    known: dict[str, set[str]] = {}
    for words, command in module("reference_pages", monkeypatch).commands():
        known[words] = {name for one in command.params for name in one.opts}
    for page in written_by_hand():
        for block in blocks(page.read_text()):
            if block.language == "sh":
                for line in block.text.replace("\\\n", " ").splitlines():
                    assert not unknown_options(line, known), f"{page}: {line}"
    assert unknown_options("scripts/grid run x --no-such-option", known) == ["--no-such-option"]
    assert unknown_options("grid walk", known) == ["walk"]


def unknown_options(line: str, known: dict[str, set[str]]) -> list[str]:
    words = shlex.split(line, comments=True)
    starts = [at for at, word in enumerate(words) if word in ("grid", "scripts/grid")]
    if not starts or starts[-1] + 1 == len(words):
        return []
    name, *rest = words[starts[-1] + 1 :]
    if name.startswith("-"):
        return [] if name in {"--help", "-h", "--version"} else [name]
    if f"grid {name}" not in known:
        return [name]
    options = known[f"grid {name}"] | {"--help", "-h"}
    return [word for word in rest if word.startswith("--") and word not in options]


def test_everything_in_the_reference_has_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenario keys, parts, settings, metrics, columns, options and exported names."""
    reference = module("reference_pages", monkeypatch)
    pages = reference.pages()
    entries = list(reference.entries())
    assert len(entries) > 300
    for page, name, sentence in entries:
        assert sentence.strip(), f"{name} of {page} has no sentence"
        word = name.rpartition(".")[2] if page in ("scenario", "experiment") else name
        word = word.rpartition(" ")[2]
        assert word.lower() in pages[f"reference/{page}.md"].lower(), f"{name} is not in {page}"


@pytest.mark.parametrize("path", marked(sorted(DOCS.glob("notebooks/*.ipynb"))))
@pytest.mark.usefixtures("in_a_folder")
def test_notebooks_give_what_is_stored_in_them(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {"__name__": "notebook"}
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)
            stored = [
                "".join(one["text"]) for one in cell["outputs"] if one["output_type"] == "stream"
            ]
            assert said.getvalue() == "".join(stored), f"cell {number}"


def test_every_file_that_a_page_names_is_there() -> None:
    named = re.compile(r"`((?:grid|scenarios|scripts|docs|tests)/[\w./-]+\w)`")
    for page in written_by_hand():
        for path in named.findall(page.read_text()):
            assert (ROOT / path).exists() or path.endswith("_build/html/index.html"), page
