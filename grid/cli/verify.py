"""`grid verify`: validation against queueing theory."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grid.cli.endings import ExitCode, endings
from grid.cli.options import Quiet

if TYPE_CHECKING:
    from grid.lab.verify.verify import Figure
    from grid.runtime.progress import Display


def verify(
    cases: Annotated[
        list[str] | None,
        typer.Option("--case", metavar="NAME", help="Only this case."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Three minutes instead of half an hour, with wider errors."),
    ] = False,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="As for `grid run`; needs exactly one --case."
        ),
    ] = None,
    cpus: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="How many runs at a time; default: one a CPU."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the table to this file, in Markdown.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Validate the emulator against closed forms and recursions of queueing theory."""
    from grid.lab.verify.verify import header, line, markdown
    from grid.lab.verify.verify import verify as verify_case
    from grid.results.run_folder import check_file
    from grid.runtime.cpus import usable_cpus
    from grid.runtime.progress import display_on

    with endings(folder=page), display_on(sys.stderr, quiet=quiet) as display:
        if page is not None:
            check_file(page, "--page", ".md")
        chosen = _chosen(cases, overrides)
        figures: list[Figure] = []
        with _processes(cpus or usable_cpus(), display) as over:
            for done, case in enumerate(chosen, start=1):
                display.stage(f"case {case.name}")
                effort = case.quick if quick else case.full
                for figure in verify_case(case, overrides or (), effort, full=not quick, over=over):
                    if not figures:
                        # A case that cannot be run is told without it.
                        typer.echo(header())
                    typer.echo(line(figure, full=not quick))
                    figures.append(figure)
                if page is not None:
                    # What is known stays known, should a long verification be broken off.
                    missing = [one.name for one in chosen[done:]]
                    text = markdown(figures, full=not quick, missing=missing)
                    page.write_text(text, encoding="utf-8")
    failing = [one for one in figures if one.verdict(not quick) not in ("exact", "agrees")]
    typer.echo(f"{len(figures) - len(failing)} of {len(figures)} figures are as expected.")
    if failing:
        raise typer.Exit(ExitCode.FAILED)


def _chosen(names: Sequence[str] | None, overrides: Sequence[str] | None) -> list[Any]:
    """The cases. Raises InputError."""
    from grid.lab.verify.cases import CASES
    from grid.model.errors import expected_name, input_error, shorten

    for name in names or ():
        if name not in CASES:
            expected = expected_name(name, CASES, "the name of a case")
            raise input_error("--case", shorten(name), expected)
    if overrides and len(names or ()) != 1:
        raise input_error("--set", shorten(overrides[0]), "exactly one --case beside it")
    return [CASES[name] for name in names or CASES]


@contextmanager
def _processes(count: int, display: Display) -> Iterator[Any]:
    """A function that maps over `count` processes, and tells `display` how far it is."""
    from multiprocessing import get_context

    if count == 1:
        yield lambda function, orders: _shown(map(function, orders), len(orders), display)
        return
    # The processes end with this one, which alone is told of Ctrl-C.
    with get_context("spawn").Pool(count, _ignore_interrupts) as pool:
        yield lambda function, orders: _shown(pool.imap(function, orders), len(orders), display)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _shown(results: Iterator[Any], count: int, display: Display) -> Iterator[Any]:
    for number, result in enumerate(results):
        display.show(f"{number:,} of {count:,} runs done", number, count)
        yield result
