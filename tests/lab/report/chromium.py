"""A headless Chromium that a test can ask about a page, over the browser's own debugging pipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PROGRAM = next((found for name in NAMES if (found := shutil.which(name))), None)

LAUNCHER = """\
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser reads commands from its file 3 and writes answers to its file 4."""

COMPLAINTS = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


class Browser:
    """One open page. `complaints` are what it wrote to its console, `requests` what it fetched."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._buffer = 0, b""
        self._session = ""
        self.events: list[dict[str, Any]] = []

    def open_page(self) -> None:
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def show(self, page: Path | str, width: int) -> None:
        """Load `page`, a file or an address, on a screen so many pixels wide, until it is there."""
        self.set_width(width)
        self.events.clear()
        address = page if isinstance(page, str) else page.resolve().as_uri()
        self.ask("Page.navigate", url=address)
        while not self._saw("Page.loadEventFired"):
            self._receive()

    def set_width(self, width: int) -> None:
        """Have a screen so many pixels wide from now on."""
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.ask("Emulation.setDeviceMetricsOverride", **screen)

    def value(self, script: str) -> Any:
        """What `script` comes to on the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, condition: str, seconds: float = 120) -> None:
        """Wait until the script `condition` holds on the page."""
        looking = (
            "new Promise((done, fail) => { const end = performance.now() + "
            f"{1000 * seconds}; (function look() {{ if ({condition}) done(); "
            "else if (performance.now() > end) fail('in vain'); else setTimeout(look, 20); })() })"
        )
        answer = self.ask("Runtime.evaluate", expression=looking, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{condition}: in vain"

    def press(self, key: str) -> None:
        """Press a key and let it go: one such as `ArrowLeft`, or a sign."""
        text = {"text": key} if len(key) == 1 else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    @property
    def complaints(self) -> list[dict[str, Any]]:
        return [event for event in self.events if event["method"] in COMPLAINTS]

    @property
    def requests(self) -> list[str]:
        sent = [event for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def _saw(self, method: str) -> bool:
        return any(event["method"] == method for event in self.events)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser is gone"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window; it ends with the block."""
    assert PROGRAM is not None
    commands_out, commands_in = os.pipe()
    answers_out, answers_in = os.pipe()

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        pipes = [str(commands_out), str(answers_in)]
        switches = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        command = [PROGRAM, *switches, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, *pipes, *command],
            pass_fds=(commands_out, answers_in),
            env=os.environ | {"TMPDIR": profile},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_out)
        os.close(answers_in)
        try:
            page = Browser(commands_in, answers_out)
            page.open_page()
            yield page
        finally:
            process.kill()
            process.wait()
            os.close(commands_in)
            os.close(answers_out)
