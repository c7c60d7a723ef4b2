"""The papers that the emulator reproduces: their claims, and their figures with our data."""

from __future__ import annotations

from importlib import import_module

from grid.lab.claims import Paper

NAMES = ("C07", "CS2", "PU", "EG", "GM")


def paper(name: str) -> Paper:
    """The paper of that name, one of NAMES."""
    found: Paper = import_module(f"grid.lab.papers.{name.lower()}").PAPER
    return found
