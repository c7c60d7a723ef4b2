"""The table of `grid verify`, on a terminal and as a page."""

from __future__ import annotations

from collections.abc import Sequence

from grid.lab.verify.case import RELAXATIONS, SHUT_DOWN, WARM_UP
from grid.lab.verify.cases import CASES
from grid.lab.verify.verify import MOST_TIMES, OTHER_JOBS, RELATIVE, STANDARD_ERRORS, Figure

COLUMNS = ("case", "figure", "expected", "found", "± 95 %", "standard errors", "runs", "verdict")
WIDTHS = (16, 36, 11, 11, 10, 15, 5, 0)
NORMAL_95 = 1.96


def cells(figure: Figure, full: bool) -> tuple[str, ...]:
    """The texts of a row."""
    if figure.exact:
        numbers = (f"{figure.expected:.0f}", f"{figure.found:.0f}", "", "")
    else:
        numbers = (
            f"{figure.expected:.6f}",
            f"{figure.found:.6f}",
            f"{NORMAL_95 * figure.error:.6f}",
            f"{figure.off:+.2f}",
        )
    return (figure.case, figure.name, *numbers, str(figure.runs), figure.verdict(full))


def header() -> str:
    """The head of the table on a terminal."""
    return _aligned(COLUMNS)


def line(figure: Figure, full: bool) -> str:
    """A row of the table on a terminal."""
    return _aligned(cells(figure, full))


def _aligned(texts: Sequence[str]) -> str:
    padded = (
        text.ljust(width) if place < 2 or not width else text.rjust(width)
        for place, (text, width) in enumerate(zip(texts, WIDTHS, strict=True))
    )
    return "  ".join(padded).rstrip()


def _controlled() -> str:
    return ", ".join(f"`{case.name}`" for case in CASES.values() if case.controls is not None)


def markdown(figures: Sequence[Figure], full: bool, missing: Sequence[str] = ()) -> str:
    """The page: the table, what each case is, and the rules of the verdicts.

    `missing` are cases that were not run, or not yet.
    """
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(cells(figure, full) for figure in figures)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    shown = dict.fromkeys(figure.case for figure in figures)
    cases = "\n".join(
        f"- [`{name}`]({name}.yaml): {CASES[name].title}. {CASES[name].source}." for name in shown
    )
    not_run = f" Broken off before: {', '.join(missing)}." if missing else ""
    command = "grid verify --page scenarios/verify/README.md" + ("" if full else " --quick")
    return f"""# The emulator held against mathematics

Written by `{command}`. Times are in seconds unless a row says otherwise.{not_run}

{table}

## Cases

Each is an ordinary scenario of this folder. `grid verify --case NAME --set KEY=VALUE` runs one with
other values; what is expected is computed from the scenario as it is then.

{cases}

## Verdicts

- `exact`: every start and end of every job is the one that the recursion gives, to the microsecond.
  How long jobs take is worked out from what their users submitted, and the speed of the machines.
- `agrees`: what is found is within {STANDARD_ERRORS:g} standard errors of what is expected and, in
  a full verification, within {RELATIVE:.1%} of it.
- `not precise enough`: within {STANDARD_ERRORS:g} standard errors, but not within {RELATIVE:.1%}.
- `differs`: neither. The command then ends with exit code 1.

Standard errors come from independent runs with the seeds 1, 2, 3 and so on. A full verification
adds runs until three of them are within {RELATIVE:.1%}, or {MOST_TIMES} times as many have been
made. A grid starts empty, and VOs end one after another: measured is from when all have submitted
{WARM_UP:.0%} of their jobs until, where there are several, one has submitted {1 - SHUT_DOWN:.0%}.
Runs are so long that warming up takes {RELAXATIONS:g} times as long as a queue of that load needs
to forget most of its beginning.

These cases take chance out by control variates (Lavenberg and Welch 1981): {_controlled()}.
That is, of the jobs that a run happened to get it is known how much work they
should bring and how far apart they should come, and mostly how long they would wait, first come
first served, for one pool of all servers. What is found is the regression over the runs, at the
values that these should have. They are worked out from what users submitted, so that a grid which
serves them too slowly can't hide. Where the jobs themselves are {OTHER_JOBS:g} standard errors off,
the verdict is `differs`, too.

Of a few VOs, or machines, what is expected is worked out for so many; how few hangs on the load. Of
many it is the limit. Each run is then done once more with half as many, and both are extrapolated:
what n are off by falls as 1 / n. It does so from some number on (32, 4 / (1 - λ), and more where
jobs are rejected seldom); between few and many a case is refused, for what it found would not tell
an error of the emulator from that of the limit.
"""
