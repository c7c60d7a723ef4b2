"""The server of a page: on loopback only, and for nobody who does not know the page's address.

The address holds a token. Another page in the same browser could send requests here, too: the
guard refuses them by their origin, and by the host that they name (DNS rebinding).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from grid.integrations.watch.source import Answer, NotThere, Source
from grid.integrations.watch.sweep import SweepShown
from grid.lab.report.page import colours
from grid.lab.report.style import CONFIG, script

HOST = "127.0.0.1"
"""Nothing listens beyond this machine."""
TOKEN_BYTES = 24
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer. The address, which is a secret, goes into no referrer."""
SCRIPTS = ("page.js", "picture.js", "charts.js", "wishes.js", "words.js")
LONGEST_WISH = 4096
PATIENCE_SECONDS = 10.0
"""So long may a request take to come; half requests would take all connections there are."""
_HERE = Path(__file__).parent


def tell_nobody() -> None:
    """For pages that nobody waits for."""


class Page:
    """A page for `source`, at `address` from now on; `serve` answers until it is told to end.

    `asked` is called at every request that is let through.
    """

    def __init__(
        self,
        source: Source | SweepShown,
        port: int = 0,
        asked: Callable[[], None] = tell_nobody,
    ) -> None:
        self._socket = socket.create_server((HOST, port))
        bound: int = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self.address = f"http://{HOST}:{bound}/{token}/"
        guarded = Guard(_pages_of(source), token, bound, asked)
        quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
        self._server = uvicorn.Server(
            uvicorn.Config(
                guarded, http=Impatient, lifespan="off", ws="none", date_header=False, **quiet
            )
        )

    def serve(self) -> None:
        """Answer until SIGINT or SIGTERM, which are passed on then, or until `end`."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def end(self) -> None:
        """Answer nothing more."""
        self._server.should_exit = True


class Impatient(H11Protocol):
    """A connection that ends where no whole request comes in time; headers are limited, too."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def _expect(self) -> None:
        """Wait for a request, unless one has come and is being answered."""
        is_asked = self.cycle is not None and not self.cycle.response_complete
        if is_asked and self._late is not None:
            self._late.cancel()
            self._late = None
        elif not is_asked and self._late is None:
            self._late = self.loop.call_later(PATIENCE_SECONDS, self.transport.close)


class Guard:
    """Lets requests through to `inner` that this page sent; all others get 403."""

    def __init__(
        self, inner: ASGIApp, token: str, port: int, asked: Callable[[], None] = tell_nobody
    ) -> None:
        self._inner = inner
        self._asked = asked
        self._prefix = f"/{token}/".encode()
        self._hosts = (f"{HOST}:{port}", f"localhost:{port}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        reason = self._refused(scope)
        if reason:
            refusal = PlainTextResponse(f"refused: {reason}\n", 403)
            await refusal(scope, receive, send_with_headers)
            return
        self._asked()
        path = scope["path"][len(self._prefix) - 1 :]
        await self._inner({**scope, "path": path, "raw_path": None}, receive, send_with_headers)

    def _refused(self, scope: Scope) -> str:
        """Why a request is not let through; empty if it is."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self._hosts:
            return "this host is not served"
        if any(origin != f"http://{host}" for origin in headers.getlist("origin")):
            return "a request of another page"
        if scope["method"] == "POST" and not _is_of_a_script(headers):
            return "a wish that no page of this origin sent"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "a request of another page"
        path = scope["path"].encode()
        known = hmac.compare_digest(path[: len(self._prefix)], self._prefix)
        return "" if known else "this address has not the token of the page"


def _is_of_a_script(headers: Headers) -> bool:
    """Whether a browser lets no page but this one send it: with an origin, of a type that no form
    has.
    """
    return "origin" in headers and headers.get("content-type") == "application/json"


def _pages_of(source: Source | SweepShown) -> Starlette:
    if isinstance(source, SweepShown):
        return sweep_application(source)
    return application(source)


def application(source: Source) -> Starlette:
    """Answers the questions of a page, each under its name, and gives the page's own files."""

    def question(answer: Callable[[Request], Answer]) -> Callable[[Request], Response]:
        def asked(request: Request) -> Response:
            try:
                return _json(answer(request))
            except (NotThere, ValueError) as error:
                return PlainTextResponse(f"{error}\n", 400)

        return asked

    questions: dict[str, Callable[[Request], Answer]] = {
        "about": lambda _: source.about() | {"vega": CONFIG},
        "frame": lambda request: source.frame(_number(request, "time")),
        "flows": lambda request: source.flows(_number(request, "time")),
        "course": lambda request: source.course(_position(request, "vo")),
        "gantt": lambda request: source.gantt(
            _position(request, "cluster") or 0,
            _number(request, "since"),
            _number(request, "until"),
        ),
        "job": lambda request: source.job(
            _position(request, "vo") or 0, _number_of_job(request), _number(request, "time")
        ),
        "events": lambda request: source.events(
            _position(request, "vo"), _position(request, "cluster"), _number(request, "time")
        ),
    }
    routes = [Route(f"/{name}", question(answer)) for name, answer in questions.items()]
    routes.append(Route("/wish", partial(_wish, source), methods=["POST"]))
    return _with_files(routes, "page.html", SCRIPTS)


def sweep_application(sweep: SweepShown) -> Starlette:
    """The same for the page of a sweep, which asks one question only."""

    def asked(_: Request) -> Response:
        return _json(sweep.answer())

    return _with_files([Route("/sweep", asked)], "sweep.html", ("sweep.js", "words.js"))


def _with_files(routes: list[Route], page: str, scripts: Sequence[str]) -> Starlette:
    texts = {name: partial(_text, name) for name in scripts}
    files: dict[str, tuple[Callable[[], str], str]] = {
        "": (lambda: _text(page), "text/html"),
        "page.css": (lambda: f"{colours()}\n{_text('page.css')}", "text/css"),
        "vega.js": (_drawing, "text/javascript"),
        **{name: (text, "text/javascript") for name, text in texts.items()},
    }
    answering = Starlette(routes=routes + [_file_route(name, *of) for name, of in files.items()])
    answering.router.redirect_slashes = False
    return answering


async def _wish(source: Source, request: Request) -> Response:
    """Something that is to be done to the run."""
    text = b""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for part in request.stream():
                text += part
                if len(text) > LONGEST_WISH:
                    return PlainTextResponse("a wish that is too long\n", 413)
    except TimeoutError:
        return PlainTextResponse("half a wish\n", 408, {"Connection": "close"})
    try:
        wanted = json.loads(text)
        if not isinstance(wanted, dict):
            raise ValueError("expected what, and to whom")
        return _json(source.wish(wanted))
    except (NotThere, ValueError, RecursionError) as error:
        return PlainTextResponse(f"{error}\n", 400)


def _file_route(name: str, text: Callable[[], str], kind: str) -> Route:
    def given(_: Request) -> Response:
        return Response(text(), media_type=kind)

    return Route(f"/{name}", given)


@cache
def _drawing() -> str:
    return script()


@cache
def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _json(answer: Answer) -> Response:
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(text, media_type="application/json")


def _number(request: Request, name: str) -> float:
    text = request.query_params.get(name, "")
    with suppress(ValueError):
        value = float(text) if len(text) < 40 else float("nan")
        if abs(value) < float("inf"):
            return value
    raise ValueError(f"{name}: expected a finite number")


def _number_of_job(request: Request) -> int:
    number = _whole(request, "number", 16)
    if number is None:
        raise ValueError("number: expected the number of a job")
    return number


def _position(request: Request, name: str) -> int | None:
    return _whole(request, name, 9)


def _whole(request: Request, name: str, digits: int) -> int | None:
    """A number of at most so many digits; None if it is not given."""
    text = request.query_params.get(name, "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= digits):
        raise ValueError(f"{name}: expected a whole number of at most {digits} digits")
    return int(text)
