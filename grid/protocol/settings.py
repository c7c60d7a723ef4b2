"""Bounds of settings of the protocol's plugins."""

from __future__ import annotations

from typing import Any

from pydantic import Field


def count(description: str, least: int = 1, most: int = 1000) -> Any:
    """A number from `least` to `most`."""
    return Field(ge=least, le=most, description=description)


def seconds(description: str, least: float = 1e-6) -> Any:
    """A time of at least `least` seconds."""
    return Field(ge=least, le=1e9, description=description)
