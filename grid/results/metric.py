"""How a figure is defined."""

from __future__ import annotations

from dataclasses import dataclass

SHARE = "0 to 1"
COUNT = "0 or more"
PERCENT = "0 to 100"


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of metrics.json, of a sweep's results.csv, or of its clock.csv.

    - `name`: its key in the files; `title`: what tables and axes call it, before its `unit`.
    - `unit`: `s`, `%`, `J`; empty for a count or a ratio.
    - `meaning`: its definition; `over`: what it is summed up or averaged over.
    - `values`: its range; `better`: `more` or `less` where one of them is better, else empty.
    - `source`: the paper and equation that it is from; empty where it is our own or customary.
    """

    name: str
    title: str
    unit: str
    meaning: str
    over: str
    values: str = COUNT
    better: str = ""
    source: str = ""

    @property
    def label(self) -> str:
        """Title and unit, as columns and axes have it."""
        return f"{self.title} ({self.unit})" if self.unit else self.title
