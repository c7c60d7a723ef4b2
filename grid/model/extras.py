"""What only some things need, the extras of the package, and the line where one is missing."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import requires

from grid.model.errors import RunFailed


class MissingExtra(RunFailed, ImportError):
    """A module of an extra cannot be imported; the message says how to get it."""


def missing(what: str, extra: str, module: str) -> MissingExtra:
    """The error where `what` cannot be, for want of a `module`."""
    # By their own names they can be had in a clone and beside an installed wheel alike.
    packages = " ".join(f'"{package}"' for package in _packages(extra))
    how = f"{sys.executable} -m pip install {packages}"
    return MissingExtra(f"{what} needs {module}, of the extra `{extra}`: {how}")


def _packages(extra: str) -> list[str]:
    """What the extra brings, each with its oldest version, as pip takes it."""
    every = (one.replace("'", '"').partition(";") for one in requires("grid-emulator") or ())
    return [package.strip() for package, _, when in every if when.strip() == f'extra == "{extra}"']


def need(what: str, extra: str, module: str) -> None:
    """Raises MissingExtra where the `module` cannot be imported."""
    try:
        import_module(module)
    except ImportError:
        raise missing(what, extra, module) from None
