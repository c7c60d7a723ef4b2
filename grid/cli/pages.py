"""The page in the browser that runs and sweeps are watched on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from grid.integrations.watch.page_process import LivePage


def page_that_says() -> AbstractContextManager[LivePage]:
    """A page whose address is printed when what it shows begins."""
    from grid.integrations.watch.page_process import live_page

    return live_page(lambda address: typer.echo(f"watch it at {address}"))
