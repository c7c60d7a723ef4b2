"""Every rule of forwarding is explained with its source, and stands in the study of all rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from grid.model.plugins.registry import Kind
from grid.protocol.registry import FORWARDING, INFORMATION, SELECTIONS

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "explanation"
STUDIES = ("forwarding-rules", "lcg-rules")
SOURCE = re.compile(r"[(\s](19|20)\d\d\b|partial-utility paper|paper on partial utility")
"""The year of what was published, or the paper that the protocol is from."""

NO_SOURCE = ("forward", "reject", "queue", "none", "random", "round_robin", "edges")
"""What nobody invented, or fills a gap of the paper that the protocol is from."""

NOT_COMPARED = ("forward", "reject", "to_the_best")
"""Those that may fail or reject jobs, so that others would carry more load."""


def paragraphs_of(page: str, name: str) -> list[str]:
    """The paragraphs, or items of lists, of which the bold head has `name`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.split(r"\n\s*\n|\n(?=- )", text)
    heads = [(re.match(r"(?:- )?\*\*(.+?)\*\*", block, re.DOTALL), block) for block in blocks]
    return [block for head, block in heads if head is not None and f"`{name}`" in head[1]]


@pytest.mark.parametrize(
    ("kind", "page"),
    [(FORWARDING, "forwarding.md"), (INFORMATION, "information.md"), (SELECTIONS, "selections.md")],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_each_part_has_a_paragraph_with_its_source(kind: Kind, page: str) -> None:
    for name in kind.own:
        found = paragraphs_of(page, name) or gossip_paragraphs(page, name)
        assert len(found) == 1, f"{name} in {page}"
        assert name in NO_SOURCE or SOURCE.search(found[0]), f"no source of {name} in {page}"


def gossip_paragraphs(page: str, name: str) -> list[str]:
    """Gossip has a section of its own."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"## {name.capitalize()}\n(.*?)\n## ", text, re.DOTALL)


@pytest.mark.parametrize("study", STUDIES)
def test_each_rule_has_a_place_in_the_studies_of_rules(study: str) -> None:
    text = (ROOT / "scenarios" / "experiments" / f"{study}.yaml").read_text(encoding="utf-8")
    compared = []
    for settings in yaml.safe_load(text)["axes"]["rule"].values():
        (rule,) = settings.values()
        compared.append(rule if isinstance(rule, str) else rule["name"])
    assert set(compared) == {name for name in FORWARDING.own if name not in NOT_COMPARED}
