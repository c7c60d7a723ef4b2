"""A plugin is identified by the file that defines it, and by its state."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from grid.model.plugins.identity import identity_of


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that imports a module `made` of the given text."""
    monkeypatch.syspath_prepend(tmp_path)

    def made(text: str) -> Any:
        import importlib
        import linecache

        (tmp_path / "made.py").write_text(text)
        sys.modules.pop("made", None)
        importlib.invalidate_caches()
        linecache.checkcache()
        sys.dont_write_bytecode = True
        return importlib.import_module("made")

    return made


CLASS = (
    "LIMIT = {}\nclass Part:\n    def __init__(self, n): self.n = n\ndef part(n): return LIMIT\n"
)


def test_a_changed_file_changes_the_identity_of_all_that_it_defines(load: Any) -> None:
    for name in ("Part", "part"):
        first = identity_of(getattr(load(CLASS.format(1)), name))
        assert first is not None
        assert first == identity_of(getattr(load(CLASS.format(1)), name))
        assert first != identity_of(getattr(load(CLASS.format(2)), name))


def test_state_counts(load: Any) -> None:
    module = load(CLASS.format(1))
    assert identity_of(module.Part) != identity_of(module.part)
    assert identity_of(module.Part(1)) == identity_of(module.Part(1)) != identity_of(module.Part(2))
    one, other = partial(module.part, 1), partial(module.part, 2)
    assert identity_of(one) == identity_of(partial(module.part, 1)) != identity_of(other)


def test_without_a_source_or_with_state_that_cannot_be_pickled_there_is_none(load: Any) -> None:
    names: dict[str, Any] = {"__name__": "nowhere"}
    exec("def part(): return 1", names)
    assert identity_of(names["part"]) is None
    assert identity_of(load(CLASS.format(1)).Part(lambda: 1)) is None
