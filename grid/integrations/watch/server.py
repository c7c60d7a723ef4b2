"""The server of a page: on the loopback interface only, for clients that know the page's address.

The address holds a random token. `Guard` also refuses requests that another page in the same
browser sends, by their origin, and those for another host (DNS rebinding).
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from collections.abc import Callable
from functools import cache, partial
from inspect import signature
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grid.integrations.watch.views import Answer, NotThere, RunView
from grid.lab.report.picture import CONFIG, colours, script

HOST = "127.0.0.1"
TOKEN_BYTES = 24
MAX_BODY_BYTES = 4096
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
"""Sent with every response. No referrer discloses the address, which is a secret."""
SCRIPTS = ["page.js", "picture.js", "charts.js", "interventions.js", "words.js"]
QUERIES = ("frame", "flows", "course", "gantt", "job", "events")
"""Methods of a `RunView`."""
_HERE = Path(__file__).parent


class Page:
    """A page for `view` at `address`; `serve` answers until `end` is called."""

    def __init__(self, view: RunView, port: int = 0) -> None:
        self._socket = socket.create_server((HOST, port))
        bound: int = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self.address = f"http://{HOST}:{bound}/{token}/"
        guarded = Guard(application(view), token, bound)
        self._server = uvicorn.Server(
            uvicorn.Config(
                guarded, http="h11", lifespan="off", ws="none", log_config=None, access_log=False,
                server_header=False, date_header=False,
            )
        )  # fmt: skip

    def serve(self) -> None:
        """Answer until SIGINT or SIGTERM, which are raised again then, or until `end`."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def end(self) -> None:
        """Stop serving."""
        self._server.should_exit = True


class Guard:
    """Passes the requests of this page to `inner`, and answers all others with 403."""

    def __init__(self, inner: ASGIApp, token: str, port: int) -> None:
        self._inner = inner
        self._prefix = f"/{token}/".encode()
        self._hosts = (f"{HOST}:{port}", f"localhost:{port}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if refused := self._refused(scope):
            response = PlainTextResponse(f"refused: {refused}\n", 403)
            await response(scope, receive, send_with_headers)
            return
        path = scope["path"][len(self._prefix) - 1 :]
        await self._inner({**scope, "path": path, "raw_path": None}, receive, send_with_headers)

    def _refused(self, scope: Scope) -> str:
        """Why a request is refused; empty if it is not."""
        headers = Headers(scope=scope)
        host, origins = headers.get("host", ""), headers.getlist("origin")
        if host not in self._hosts:
            return "unknown host"
        same_site = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        if not same_site or any(origin != f"http://{host}" for origin in origins):
            return "a request from another page"
        if scope["method"] == "POST" and not origins:
            return "no origin"
        known = hmac.compare_digest(scope["path"].encode()[: len(self._prefix)], self._prefix)
        return "" if known else "the address does not contain the token of the page"


def application(view: RunView) -> Starlette:
    """The queries of a page, each at its name, and the files of the page."""
    routes = [
        _query("about", lambda _: view.about() | {"vega": CONFIG}),
        *(_query(name, partial(_answer, getattr(view, name))) for name in QUERIES),
        Route("/intervene", partial(_intervene, view), methods=["POST"]),
        _file("", "text/html", partial(_text, "page.html")),
        _file("page.css", "text/css", lambda: f"{colours()}\n{_text('page.css')}"),
        _file("vega.js", "text/javascript", cache(script)),
        *(_file(name, "text/javascript", partial(_text, name)) for name in SCRIPTS),
    ]
    served = Starlette(routes=routes)
    served.router.redirect_slashes = False
    return served


def _answer(query: Callable[..., Answer], request: Request) -> Answer:
    """The answer of a method of the view, whose parameters are those of the request."""
    parsers = {"float": _seconds, "int": _integer, "int | None": _optional}
    given = {
        name: parsers[one.annotation](request, name.removesuffix("_s"))
        for name, one in signature(query).parameters.items()
    }
    return query(**given)


def _query(name: str, answer: Callable[[Request], Answer]) -> Route:
    def respond(request: Request) -> Response:
        try:
            return JSONResponse(answer(request))
        except (NotThere, ValueError) as error:
            return PlainTextResponse(f"{error}\n", 400)

    return Route(f"/{name}", respond)


async def _intervene(view: RunView, request: Request) -> Response:
    """Pass an intervention to the run."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            return PlainTextResponse("the request is too long\n", 413)
    try:
        row = json.loads(body)
        if not isinstance(row, dict):
            raise ValueError("expected an object")
        return JSONResponse(view.intervene(row))
    except (NotThere, ValueError, RecursionError) as error:
        return PlainTextResponse(f"{error}\n", 400)


def _file(name: str, kind: str, text: Callable[[], str]) -> Route:
    def respond(_: Request) -> Response:
        return Response(text(), media_type=kind)

    return Route(f"/{name}", respond)


@cache
def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _seconds(request: Request, name: str) -> float:
    text = request.query_params.get(name, "")
    value = float(text) if text and len(text) < 40 else float("nan")
    if not abs(value) < float("inf"):
        raise ValueError(f"{name}: expected a finite number")
    return value


def _integer(request: Request, name: str) -> int:
    text = request.query_params.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) <= 16):
        raise ValueError(f"{name}: expected an integer of at most 16 digits")
    return int(text)


def _optional(request: Request, name: str) -> int | None:
    return _integer(request, name) if request.query_params.get(name) else None
