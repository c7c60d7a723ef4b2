"""A small run, and a page that watches it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grid
from grid.integrations.watch.server import Page
from grid.integrations.watch.source import Source
from grid.integrations.watch.sweep import SweepShown
from tests.lab.report.small_reports import SCENARIO


def write_run(folder: Path, vos: int = 3) -> Path:
    """The folder of a run of so many VOs that forward jobs to each other."""
    scenario = folder / "scenario.yaml"
    scenario.write_text(SCENARIO.replace("count: 3\n    selection", f"count: {vos}\n    selection"))
    grid.run(scenario, out=folder / "run")
    return folder / "run"


@contextmanager
def served(source: Source | SweepShown) -> Iterator[str]:
    """The address of a page for `source`, which is served until the block ends."""
    page = Page(source)
    thread = threading.Thread(target=page.serve)
    thread.start()
    try:
        yield page.address
    finally:
        page.end()
        thread.join()


def get(address: str, path: str = "", **headers: str) -> tuple[int, str]:
    """Status and text of the answer to a request for `path`, which is not tidied up on the way."""
    parts = urlsplit(address)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", parts.path + path, headers=named)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def wish(address: str, wanted: Any, **headers: str) -> tuple[int, str]:
    """Status and text of the answer to a wish, sent as the page itself does."""
    parts = urlsplit(address)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    named = {"Origin": f"http://{parts.netloc}", "Content-Type": "application/json"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    body = wanted if isinstance(wanted, str) else json.dumps(wanted)
    connection.request("POST", parts.path + "wish", body=body, headers=named)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text
