"""Small runs, watchers that look at them, and requests to their pages."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grid
from grid.config.load import load_scenario
from grid.integrations.watch.server import Page
from grid.integrations.watch.views import Running, RunView
from grid.results.look import Beginning, Look, Observer
from grid.runtime.run import Run, execute
from tests.lab.report.small_reports import SCENARIO


class Watching(Observer):
    """Looks as often as possible, and keeps the looks."""

    wants_looks = True

    def __init__(self) -> None:
        self.looks: list[Look] = []

    def begin(self, beginning: Beginning) -> None:
        self.beginning, self.run = beginning, Running(beginning)

    def is_due(self) -> bool:
        return True

    def look(self, look: Look) -> None:
        self.looks.append(look)
        self.run.take(look)


def write_scenario(folder: Path, text: str = SCENARIO) -> Path:
    file = folder / "scenario.yaml"
    file.write_text(text)
    return file


def write_run(folder: Path, vos: int = 3) -> Path:
    """The folder of a run of VOs that forward jobs to each other."""
    text = SCENARIO.replace("count: 3\n    selection", f"count: {vos}\n    selection")
    grid.run(write_scenario(folder, text), out=folder / "run")
    return folder / "run"


def watched(file: Path, **settings: Any) -> tuple[Watching, Run]:
    watching = Watching()
    return watching, execute(load_scenario(file), str(file), observer=watching, **settings)


def looks_at_one_that_goes_down(looks: Sequence[Look]) -> tuple[Look, Look]:
    """A look at which jobs run on the first cluster, and one a second later without it."""
    before = next(one for one in looks if dict(one.processes[0].clusters[:, :2].tolist()).get(0))
    (process,) = before.processes
    others = process.clusters[process.clusters[:, 0] != 0]
    during = before._replace(
        now_us=before.now_us + 1_000_000, processes=(process._replace(clusters=others, ended=[]),)
    )
    return before, during


@contextmanager
def served(view: RunView) -> Iterator[str]:
    """The address of a page for `view`, which is served in the block."""
    page = Page(view)
    thread = threading.Thread(target=page.serve)
    thread.start()
    try:
        yield page.address
    finally:
        page.end()
        thread.join()


def get(address: str, path: str = "", **headers: str) -> tuple[int, str]:
    """Status and text of the response; the client does not normalize `path`."""
    return _response(address, "GET", path, None, headers)


def intervene(address: str, row: Any, **headers: str) -> tuple[int, str]:
    """Status and text of the response to an intervention, sent as the page does."""
    own = {"Origin": f"http://{urlsplit(address).netloc}", "Content-Type": "application/json"}
    body = row if isinstance(row, str) else json.dumps(row)
    return _response(address, "POST", "intervene", body, own | headers)


def _response(
    address: str, method: str, path: str, body: str | None, headers: dict[str, str]
) -> tuple[int, str]:
    parts = urlsplit(address)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, parts.path + path, body=body, headers=named)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text
