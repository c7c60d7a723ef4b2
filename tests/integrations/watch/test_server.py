"""Only the page itself gets answers, and the server listens on loopback only."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from grid.integrations.watch.views import Answer, Replay
from tests.integrations.watch.pages import get, intervene, served


class Empty(Replay):
    """A run of no VOs."""

    def __init__(self) -> None:
        self.vos, self.clusters, self.cpus = [], [], []

    def about(self) -> Answer:
        return {"name": "nothing"}

    def frame(self, time_s: float) -> Answer:
        return {"time": time_s}

    def intervene(self, row: Mapping[str, Any]) -> Answer:
        if "what" not in row:
            raise ValueError("what: expected one")
        return {"requested": row["what"]}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(Empty()) as found:
        yield found


def raw(address: str, head: str) -> bytes:
    """The response to a request that no client library would send."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port)) as peer:
        peer.sendall(f"{head}\r\n\r\n".encode())
        return b"".join(iter(lambda: peer.recv(1 << 16), b""))


def test_the_page_gets_answers(address: str) -> None:
    assert get(address)[0] == 200
    status, text = get(address, "about")
    assert status == 200 and json.loads(text)["name"] == "nothing"
    own = f"http://{urlsplit(address).netloc}"
    assert get(address, "about", Origin=own, Sec_Fetch_Site="same-origin")[0] == 200
    assert get(address, "frame?time=1.5")[1] == '{"time":1.5}'
    for name in ("page.js", "vega.js", "page.css", "interventions.js"):
        assert get(address, name)[0] == 200, name


def test_a_wrong_token_is_refused(address: str) -> None:
    parts = urlsplit(address)
    root = f"{parts.scheme}://{parts.netloc}"
    token = parts.path.strip("/")
    assert len(token) >= 32
    for path in ("/", "/about", f"/{token}", f"/{token[:-1]}/about", f"/{token}x/about", "//about"):
        assert get(root, path)[0] == 403, path
    assert intervene(f"{root}/{'x' * 32}/", {"what": "heal"})[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
    ids=str,
)
def test_other_pages_are_refused(address: str, headers: dict[str, str]) -> None:
    assert get(address, "about", **headers)[0] == 403
    assert intervene(address, {"what": "heal"}, **headers)[0] == 403


def test_an_intervention_needs_one_origin(address: str) -> None:
    assert intervene(address, {"what": "heal"}) == (200, '{"requested":"heal"}')
    assert get(address, "intervene")[0] == 405
    parts = urlsplit(address)
    head = f"POST {parts.path}intervene HTTP/1.0\r\nHost: {parts.netloc}\r\nContent-Length: 0"
    assert raw(address, head).startswith(b"HTTP/1.1 403")
    origins = f"Origin: http://{parts.netloc}\r\nOrigin: http://evil.example"
    assert raw(address, f"{head}\r\n{origins}").startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("body", ["", "[]", "{", "{}", "[" * 5000, "x" * 100_000, '"heal"'])
def test_an_invalid_intervention_gets_one_line(address: str, body: str) -> None:
    status, text = intervene(address, body)
    assert status in (400, 413) and text.count("\n") == 1 and "Traceback" not in text


@pytest.mark.parametrize(
    "path",
    ["../about", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc/passwd",
     "page.html/../server.py", "server.py", "/etc/passwd", "about/", "scenario.yaml", "%00"],
)  # fmt: skip
def test_no_other_file_is_served(address: str, path: str) -> None:
    status, text = get(address, path)
    assert status in (403, 404) and "root:" not in text


@pytest.mark.parametrize(
    "query",
    ["frame", "frame?time=", "frame?time=nan", "frame?time=inf", "frame?time=" + "9" * 99,
     "frame?time=x", "course?vo=1", "course?vo=-1", "course?vo=%C2%B2",
     "events?time=1&cluster=1.5", "job?vo=0&time=1"],
)  # fmt: skip
def test_an_invalid_query_gets_one_line(address: str, query: str) -> None:
    status, text = get(address, query)
    assert status == 400 and text.count("\n") == 1 and "Traceback" not in text


def test_it_listens_on_loopback_only(address: str) -> None:
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    port = f":{urlsplit(address).port:04X}"
    mine = [line.split()[1] for line in listening if line.split()[1].endswith(port)]
    assert mine and all(one.startswith("0100007F") for one in mine)
