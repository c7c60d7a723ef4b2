"""Phrases that are not idiomatic technical English: none may be added.

`PHRASES` lists them. `COUNTS` holds how often they occur in each part of the project. A count may
only fall: lower it when a part is rewritten, and remove it at zero. `python -m tests.test_language`
prints the current counts, and with `PART` as an argument each occurrence.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PHRASES = (
    r"tells? (?:of|it|them|us|whether|what|how|which|who)\b",
    r"\bis told\b", r"\bare told\b", r"\btold_us\b", r"\bas_told\b", r"\btells_work\b",
    r"\bhears? of\b", r"\bheard of\b", r"\bnobody\b", r"\bsomebody\b",
    r"\bwhoever\b", r"\bwhatever\b",
    r"\bbelieves?\b", r"\bbelieved\b", r"\bacquaintances?\b", r"\bafar\b",
    r"\bheld (?:against|to)\b", r"\breckon(?:ed|s|ing)?\b",
    r"\bwhat (?:came|comes|became|becomes) of\b",
    r"\banew\b", r"\bagain and again\b", r"\bbeside\b", r"\bstands? (?:in|for)\b", r"\bstood\b",
    r"\bhangs? on\b", r"\bis to be had\b", r"\bdealt\b", r"\bdealing\b", r"\bby lot\b",
    r"\bmend(?:s|ed|ing)?\b", r"\brules? of forwarding\b", r"\bwill do\b", r"\bwould do\b",
    r"\bin line\b", r"\bbound late\b", r"\bwaiting room\b", r"\bso many\b",
    r"\bwhole numbers?\b", r"\bof yours\b", r"\blies of\b", r"\btold run times?\b",
    r"\bhidden columns?\b", r"\bask first\b", r"\bfetch(?:es)? work\b", r"\bknocks?\b",
    r"\bstrangers?\b", r"\bNOWHERE\b", r"\bEVER\b", r"\bstands_for_all\b", r"\bplain code\b",
    r"\blent\b", r"\bof another's\b", r"\btakes? no account\b", r"\ball the same\b",
    r"\bhappenings?\b", r"\bwishes\b", r"\bin vain\b", r"\bforetold\b", r"\bmeanwhile\b",
    r"\ba word of\b",
)  # fmt: skip
"""Regular expressions, matched without regard to case except for words all in capitals."""

COUNTS: dict[str, int] = {"grid/model": 2}
"""By part: `README.md`, `docs`, `scenarios`, names of tests, and each package of `grid`."""

PATTERNS = tuple(
    re.compile(one, 0 if re.fullmatch(r"\\b[A-Z]+\\b", one) else re.IGNORECASE) for one in PHRASES
)


def parts() -> dict[str, list[Path]]:
    """The files of each part; `docs` without what is generated."""
    packages = {
        f"grid/{folder.name}": sorted(folder.rglob("*.py"))
        for folder in sorted((ROOT / "grid").iterdir())
        if folder.is_dir() and folder.name != "__pycache__"
    }
    made = {ROOT / "docs" / "_build", ROOT / "docs" / "reference"}
    docs = [path for path in sorted((ROOT / "docs").rglob("*.md")) if not made & {*path.parents}]
    return {
        "README.md": [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")],
        "docs": docs,
        "scenarios": sorted((ROOT / "scenarios").rglob("*.yaml")),
        "tests' names": sorted((ROOT / "tests").rglob("test_*.py")),
        "grid": sorted((ROOT / "grid").glob("*.py")),
        **packages,
    }


def text_of(part: str, path: Path) -> str:
    """The text of a file that is checked: of tests, their names as words."""
    text = path.read_text(encoding="utf-8")
    if part != "tests' names":
        return text
    return "\n".join(
        name.replace("_", " ") for name in re.findall(r"^ *def (test_\w+)", text, re.MULTILINE)
    )


def occurrences(part: str, files: list[Path]) -> Iterator[str]:
    """Each occurrence as `FILE:LINE: PHRASE`; lines of tests' names count the names."""
    for path in files:
        for number, line in enumerate(text_of(part, path).splitlines(), 1):
            for pattern in PATTERNS:
                for found in pattern.findall(line):
                    yield f"{path.relative_to(ROOT)}:{number}: {found}"


@pytest.mark.parametrize("part", parts())
def test_no_unidiomatic_phrase_is_added(part: str) -> None:
    found = list(occurrences(part, parts()[part]))
    allowed = COUNTS.get(part, 0)
    assert len(found) <= allowed, f"{len(found)} phrases, at most {allowed}: {found[:20]}"


def main() -> None:
    """Print the counts, or the occurrences in the parts given."""
    every = parts()
    for part in sys.argv[1:]:
        print("\n".join(occurrences(part, every[part])))
    if len(sys.argv) == 1:
        for part, files in every.items():
            if count := len(list(occurrences(part, files))):
                print(f'    "{part}": {count},')


if __name__ == "__main__":
    main()
