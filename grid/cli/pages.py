"""The page in the browser that runs and sweeps are watched on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from grid.integrations.watch.beside import PageBeside


def page_that_says() -> AbstractContextManager[PageBeside]:
    """A page whose address is printed when what it shows begins."""
    from grid.integrations.watch.beside import page_beside

    return page_beside(lambda address: typer.echo(f"watch it at {address}"))
