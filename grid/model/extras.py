"""What only some things need, the extras of the package, and the line where one is missing."""

from __future__ import annotations

from importlib import import_module

from grid.model.errors import RunFailed


class MissingExtra(RunFailed, ImportError):
    """A module of an extra cannot be imported; the message says how to get it."""


def missing(what: str, extra: str, module: str) -> MissingExtra:
    """The error where `what` cannot be, for want of a `module`."""
    how = f'pip install ".[{extra}]" in a clone'
    return MissingExtra(f"{what} needs {module}, of the extra `{extra}`: {how}")


def need(what: str, extra: str, module: str) -> None:
    """Raises MissingExtra where the `module` cannot be imported."""
    try:
        import_module(module)
    except ImportError:
        raise missing(what, extra, module) from None
