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


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        (FORWARDING, "forwarding.md"),
        (INFORMATION, "dissemination.md"),
        (SELECTIONS, "selections.md"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_each_plugin_is_in_the_table_of_its_page(kind: Kind, page: str) -> None:
    rows = re.findall(r"^\| (.*?) \|", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(kind.own) - {"pull"} <= named


@pytest.mark.parametrize("study", STUDIES)
def test_each_rule_has_a_place_in_the_studies_of_rules(study: str) -> None:
    text = (ROOT / "scenarios" / "experiments" / f"{study}.yaml").read_text(encoding="utf-8")
    compared = []
    for settings in yaml.safe_load(text)["axes"]["rule"].values():
        (rule,) = settings.values()
        compared.append(rule if isinstance(rule, str) else rule["name"])
    assert set(compared) == {name for name in FORWARDING.own if name not in NOT_COMPARED}
