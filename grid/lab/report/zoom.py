"""How a chart over time answers the pointer."""

from __future__ import annotations

from typing import Any

ZOOM: dict[str, Any] = {
    "name": "zoom",
    "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
    "bind": "scales",
}
HINT = (
    "Rest the pointer on a mark for its figures. In charts over time: drag to move, hold Shift and "
    "turn the wheel to zoom, double-click to see all again."
)
