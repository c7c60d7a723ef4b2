"""Pages from notebooks: their text, their code, and what it gave when they were last executed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def write(folder: Path) -> None:
    """Write a page and its pictures beside each notebook, where that has changed."""
    for path in sorted((folder / "notebooks").glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        text = "\n".join(_texts(notebook, path))
        page = path.with_suffix(".md")
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def _texts(notebook: dict[str, Any], path: Path) -> Iterator[str]:
    yield f"<!-- Made from {path.name}. Do not edit. -->\n"
    for number, cell in enumerate(notebook["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield source + "\n"
            continue
        yield f"```python\n{source}\n```\n"
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                picture = path.with_name(f"{path.stem}-{number}.png")
                picture.write_bytes(base64.b64decode(data["image/png"]))
                yield f"![The figure drawn by the code above]({picture.name})\n"
            else:
                text = "".join(output.get("text") or data.get("text/plain", ""))
                yield f"```text\n{text.rstrip()}\n```\n"
