"""Ranges from which generators draw."""

from __future__ import annotations


def in_order(bounds: tuple[float, float]) -> tuple[float, float]:
    """The bounds themselves. Raises ValueError where the upper one comes first."""
    if bounds[0] > bounds[1]:
        raise ValueError("the lower bound first")
    return bounds
