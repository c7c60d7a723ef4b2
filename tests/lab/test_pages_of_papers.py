"""The pages that stand in the project are true of the code beside them."""

from __future__ import annotations

from grid.lab.page_files import PAGES, stale_pages


def test_no_page_is_of_other_code() -> None:
    """If this fails: scripts/grid reproduce --renew."""
    assert stale_pages(PAGES) == []
