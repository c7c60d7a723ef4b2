"""Draw docs/images/protocol.svg, the messages of a job: `python docs/protocol_picture.py`."""

from __future__ import annotations

from pathlib import Path

WHO = (
    "Workload\nSource", "Local\nScheduler", "Information\nService", "Resource\nManager",
    "Local\nDispatcher", "Local Scheduler\nof another VO",
)  # fmt: skip
STEPS: tuple[tuple[int, int, str] | str, ...] = (
    (3, 2, "status snapshot, to every VO"),
    (0, 1, "submit job"),
    (1, 2, "query resources"),
    (2, 1, "local resources, last status of others"),
    "the selection chooses the best resource",
    "if it is local:",
    (1, 3, "assign"),
    (3, 4, "run (through the Grid Dispatcher in a VO with several clusters)"),
    (3, 1, "assigned, or refused if no longer free"),
    "the local policy plans; the job runs",
    (4, 3, "ended"),
    (3, 1, "ended"),
    "if it is remote:",
    (1, 5, "forward, TTL - 1"),
    "assigned there if it is free, otherwise selected again",
    (5, 1, "result, to the VO of its user"),
)
STEP, LEFT, TOP, GAP = 34, 70, 64, 150


def drawing() -> str:
    """The picture as SVG."""
    width, height = LEFT * 2 + GAP * (len(WHO) - 1), TOP + STEP * (len(STEPS) + 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" font-family="sans-serif" font-size="13">',
        '<defs><marker id="end" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0,0 L9,4 L0,8 z" fill="#1f4e79"/></marker></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for place, name in enumerate(WHO):
        x = LEFT + GAP * place
        lines.append(f'<line x1="{x}" y1="{TOP - 12}" x2="{x}" y2="{height - 8}" stroke="#bbb"/>')
        for row, word in enumerate(name.split("\n")):
            lines.append(
                f'<text x="{x}" y="{20 + 17 * row}" text-anchor="middle" '
                f'font-weight="bold">{word}</text>'
            )
    for number, step in enumerate(STEPS):
        lines += _step(step, TOP + STEP * (number + 1) - 6, width)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _step(step: tuple[int, int, str] | str, y: int, width: int) -> list[str]:
    if isinstance(step, str):
        return [
            f'<rect x="8" y="{y - 19}" width="{width - 16}" height="25" fill="#eef3f8"/>',
            f'<text x="{width / 2:g}" y="{y - 2}" text-anchor="middle" '
            f'font-style="italic">{step}</text>',
        ]
    begin, end = LEFT + GAP * step[0], LEFT + GAP * step[1]
    middle = min(max((begin + end) / 2, 3.3 * len(step[2]) + 8), width - 3.3 * len(step[2]) - 8)
    return [
        f'<line x1="{begin}" y1="{y}" x2="{end}" y2="{y}" stroke="#1f4e79" '
        'marker-end="url(#end)"/>',
        f'<text x="{middle:g}" y="{y - 5}" text-anchor="middle" stroke="white" stroke-width="4" '
        f'paint-order="stroke">{step[2]}</text>',
    ]


if __name__ == "__main__":
    (Path(__file__).parent / "images" / "protocol.svg").write_text(drawing(), encoding="utf-8")
