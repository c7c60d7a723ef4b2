"""The heuristics of Convergent Scheduling with their weights, for the reference of parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from key_words import markdown

from grid.policies.convergent import heuristics


def heuristics_text() -> Iterator[str]:
    """What the policies weigh, by paper, and what may be changed of it."""
    yield (
        "The `weights` of a policy contain the weight of each heuristic. Those of the papers have "
        "default weights; 0 disables a heuristic, and you can add your own.\n"
    )
    yield "With `cs2`, `cs2_cs`, `cs2_td`, `cs2_cs_td`, and `flexible` with `priority: cs2`:\n"
    yield _table(heuristics.CS2_HEURISTICS, heuristics.CS2_WEIGHTS, {})
    yield (
        "With `cs_i_p`, `cs_i_np`, `cs_ni_p`, `cs_ni_np`, and `flexible` with `priority: cs2007`:\n"
    )
    bonus = f"; {heuristics.NON_PREEMPTIVE_OVERHEAD:g} with `non_preemptive: bonus`"
    yield _table(heuristics.CS2007_HEURISTICS, heuristics.CS2007_WEIGHTS, {"overhead": bonus})
    yield (
        "The matrix starts from the first heuristic of both papers, minimal requirements: a job "
        "has no priority on machines that cannot run it.\n"
    )


def _table(
    described: Mapping[str, str], weights: Mapping[str, float], more: Mapping[str, str]
) -> str:
    lines = ["| name | weight by default | what it adds to the priority |", "| --- | --- | --- |"]
    for name, about in described.items():
        lines.append(f"| `{name}` | {weights[name]:g}{more.get(name, '')} | {markdown(about)} |")
    return "\n".join(lines) + "\n"
