"""Nobody but the page itself gets an answer, and nothing listens beyond this machine."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from grid.integrations.watch import server
from grid.integrations.watch.server import HEADERS
from grid.integrations.watch.source import Answer, NotThere
from tests.integrations.watch.small_runs import get, served, wish


class Silent:
    """A run of nothing."""

    def about(self) -> Answer:
        return {"name": "nothing"}

    def frame(self, time_s: float) -> Answer:
        return {"time": time_s}

    def flows(self, time_s: float) -> Answer:
        return {"flows": []}

    def course(self, vo: int | None) -> Answer:
        if vo is not None:
            raise NotThere(f"VO {vo}")
        return {"vo": vo}

    def gantt(self, cluster: int, since_s: float, until_s: float) -> Answer:
        return {"cluster": cluster}

    def job(self, vo: int, number: int, time_s: float) -> Answer:
        return {"number": number}

    def wish(self, wanted: Mapping[str, Any]) -> Answer:
        if "what" not in wanted:
            raise ValueError("what: expected one")
        return {"wished": wanted["what"]}

    def events(self, vo: int | None, cluster: int | None, until_s: float) -> Answer:
        return {"events": []}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(Silent()) as found:
        yield found


def test_the_page_is_answered(address: str) -> None:
    assert get(address)[0] == 200
    status, text = get(address, "about")
    assert status == 200 and json.loads(text)["name"] == "nothing"
    assert json.loads(get(address, "frame?time=2.5")[1]) == {"time": 2.5}
    port = urlsplit(address).port
    assert get(address, "about", Host=f"localhost:{port}")[0] == 200
    own = f"http://127.0.0.1:{port}"
    assert get(address, "about", Origin=own, Sec_Fetch_Site="same-origin")[0] == 200


def test_a_wrong_token_is_refused(address: str) -> None:
    parts = urlsplit(address)
    root = f"{parts.scheme}://{parts.netloc}"
    token = parts.path.strip("/")
    assert len(token) >= 32
    for path in ("/", "/about", f"/{token}", f"/{token[:-1]}/about", f"/{token}x/about", "//about"):
        assert get(root, path)[0] == 403, path


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=str,
)
def test_other_pages_are_refused(address: str, headers: dict[str, str]) -> None:
    """Whoever sends it, knows the token, even."""
    assert get(address, "about", **headers)[0] == 403


def test_a_wish_is_taken_from_the_page_only(address: str) -> None:
    assert wish(address, {"what": "heal"}) == (200, '{"wished":"heal"}')
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/x-www-form-urlencoded"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Host": "evil.example"},
    ):
        assert wish(address, {"what": "heal"}, **headers)[0] == 403, headers
    parts = urlsplit(address)
    wrong = f"{parts.scheme}://{parts.netloc}/{'x' * 32}/"
    assert wish(wrong, {"what": "heal"})[0] == 403
    with socket.create_connection((parts.hostname, parts.port)) as peer:
        # As a script of nowhere would, without an origin.
        head = f"POST {parts.path}wish HTTP/1.0\r\nHost: {parts.netloc}\r\nContent-Length: 2\r\n"
        peer.sendall(f"{head}Content-Type: application/json\r\n\r\n{{}}".encode())
        assert peer.recv(1 << 16).startswith(b"HTTP/1.1 403")
    assert get(address, "wish")[0] == 405


def test_two_origins_are_those_of_another_page(address: str) -> None:
    """In any order, and whoever sends them: the first one alone does not count."""
    parts = urlsplit(address)
    origins = [f"Origin: http://{parts.netloc}\r\n", "Origin: http://evil.example\r\n"]
    for both in (origins, origins[::-1]):
        with socket.create_connection((parts.hostname, parts.port)) as peer:
            head = f"POST {parts.path}wish HTTP/1.1\r\nHost: {parts.netloc}\r\n{''.join(both)}"
            head += "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            peer.sendall(head.encode())
            assert peer.recv(1 << 16).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("begun", ["", "GET / HTTP/1.1\r\nX: a", "{whole}", "{whole}GET /"])
def test_who_does_not_ask_is_sent_away(
    address: str, monkeypatch: pytest.MonkeyPatch, begun: str
) -> None:
    """Half a request, none at all, and half a request after a whole one; others are answered."""
    monkeypatch.setattr(server, "PATIENCE_SECONDS", 0.1)
    parts = urlsplit(address)
    whole = f"GET {parts.path}about HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
    with socket.create_connection((parts.hostname, parts.port)) as peer:
        peer.sendall(begun.format(whole=whole).encode())
        answered = b""
        while part := peer.recv(1 << 16):
            answered += part
        assert answered.startswith(b"HTTP/1.1 200") == begun.startswith("{whole}")
    assert get(address, "about")[0] == 200


def test_half_a_wish_is_not_waited_for(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though who sent it knows the token."""
    monkeypatch.setattr(server, "PATIENCE_SECONDS", 0.1)
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port)) as peer:
        head = f"POST {parts.path}wish HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        head += f"Origin: http://{parts.netloc}\r\nContent-Type: application/json\r\n"
        peer.sendall(f'{head}Content-Length: 20\r\n\r\n{{"what":'.encode())
        answered = b"".join(iter(lambda: peer.recv(1 << 16), b""))
        assert answered.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("body", ["", "[]", "{", "{}", "[" * 5000, "x" * 100_000, '"heal"'])
def test_a_wish_without_sense_gets_a_line(address: str, body: str) -> None:
    status, text = wish(address, body)
    assert status in (400, 413)
    assert text.count("\n") == 1
    assert "Traceback" not in text


@pytest.mark.parametrize(
    "path",
    ["../about", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc/passwd",
     "page.html/../server.py", "server.py", "/etc/passwd", "about/", "scenario.yaml", "%00"],
)  # fmt: skip
def test_there_is_no_way_to_a_file(address: str, path: str) -> None:
    status, text = get(address, path)
    assert status in (403, 404) and "root:" not in text


@pytest.mark.parametrize(
    "question",
    ["frame", "frame?time=", "frame?time=nan", "frame?time=inf", "frame?time=" + "9" * 99,
     "frame?time=x", "course?vo=1", "course?vo=-1", "course?vo=%C2%B2",
     "events?time=1&cluster=1.5", "job?vo=0&time=1"],
)  # fmt: skip
def test_a_question_without_sense_gets_a_line(address: str, question: str) -> None:
    status, text = get(address, question)
    assert status == 400 and text.count("\n") == 1 and "Traceback" not in text


def test_nothing_is_loaded_from_elsewhere_or_kept(address: str) -> None:
    assert HEADERS["Cache-Control"] == "no-store"
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port)) as peer:
        peer.sendall(f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
        head = b"".join(iter(lambda: peer.recv(1 << 16), b"")).partition(b"\r\n\r\n")[0].decode()
    for name, value in HEADERS.items():
        assert f"{name.lower()}: {value}".lower() in head.lower()


def test_it_listens_on_loopback_only(address: str) -> None:
    assert urlsplit(address).hostname == "127.0.0.1"
    listening = Path("/proc/net/tcp").read_text().splitlines()[1:]
    port = f":{urlsplit(address).port:04X}"
    mine = [line.split()[1] for line in listening if line.split()[1].endswith(port)]
    assert mine and all(one.startswith("0100007F") for one in mine)
