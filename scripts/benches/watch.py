"""What it costs to watch a run: LCG-2005, its 170 VOs on a page in Chromium, from beginning to end.

Each time the run goes once by itself and once with `--watch`, in one process; the digests must be
the same. The log is ../shared/traces/LCG-2005.swf.gz beside this repository, or `LCG_LOG`. The page
is shown by the browser of the tests.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.lab.report import chromium  # noqa: E402

SCENARIO = ROOT / "scenarios" / "lcg-2005.yaml"
LOG = Path(os.environ.get("LCG_LOG", ROOT.parent / "shared" / "traces" / "LCG-2005.swf.gz"))
COMMAND = (sys.executable, "-P", "-c", "from grid.cli.app import main; main()")
SAMPLE_SECONDS = 0.25
COUNT_FRAMES = (
    "(function next() { window.drawn = 1 + (window.drawn ?? 0); requestAnimationFrame(next); })()"
)
MEBIBYTE = 1 << 20
ALL = "CPU s of all processes"


class Process:
    """A process from outside: the most memory it had, and the CPU it used until the last look."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.most_mib = self.cpu_s = 0.0

    def look(self) -> None:
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
            times = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        except OSError:
            return
        lines = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
        self.most_mib = max([self.most_mib, *(int(words[1]) / 1024 for words in lines)])
        self.cpu_s = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(one) for one in found]


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    arguments = ["run", str(SCENARIO), "--set", f"trace={LOG}", "--in-process", "--quiet"]
    return subprocess.Popen(
        [*COMMAND, *arguments, "--out", str(folder), *options],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
    )


def ended(run: subprocess.Popen[str]) -> resource.struct_rusage | None:
    """What the run used, and all processes that it started; None while it goes on."""
    pid, status, usage = os.wait4(run.pid, os.WNOHANG)
    if pid == 0:
        return None
    run.returncode = os.waitstatus_to_exitcode(status)
    return usage


def followed(run: subprocess.Popen[str], page: chromium.Browser | None) -> dict[str, float]:
    """Figures of a run, and of the page that shows it, until the run has ended."""
    own = Process(run.pid)
    others: dict[int, Process] = {}
    seen: dict[str, Any] = {}
    while (usage := ended(run)) is None:
        own.look()
        for pid in children(run.pid):
            others.setdefault(pid, Process(pid)).look()
        if page is not None:
            seen = page_figures(page) or seen
        time.sleep(SAMPLE_SECONDS)
    assert run.returncode == 0
    server = max(others.values(), key=lambda one: one.cpu_s, default=Process(0))
    return {
        ALL: usage.ru_utime + usage.ru_stime,
        "most memory of the run, MiB": own.most_mib,
        "CPU s of the page's server": server.cpu_s,
        "most memory of the page's server, MiB": server.most_mib,
    } | {name: float(value) for name, value in seen.items()}


def page_figures(page: chromium.Browser) -> dict[str, float]:
    """Frames, answers, and memory of the page by now."""
    counts = page.value(
        "({ drawn: window.drawn, answers: Number(document.body.dataset.answers ?? 0), "
        "heap: performance.memory.usedJSHeapSize, ms: performance.now(), "
        "nodes: document.querySelectorAll('*').length })"
    )
    # What the browser reports of itself would pile up here.
    complaints = [str(one) for one in page.complaints]
    if any("ERR_CONNECTION" in one for one in complaints):
        return {}  # The server has ended, and the run writes its results.
    assert not complaints, complaints[0]
    page.events.clear()
    return {
        "frames a second": 1000 * counts["drawn"] / counts["ms"],
        "answers to the page": counts["answers"],
        "JavaScript heap of the page, MiB": counts["heap"] / MEBIBYTE,
        "elements of the page": counts["nodes"],
    }


def manifest(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_text())


def measure() -> dict[str, float]:
    """CPU seconds without and with a page, what that is more in per cent, memory, frames."""
    if chromium.PROGRAM is None:
        raise SystemExit("no Chromium on this machine")
    if not LOG.is_file():
        raise SystemExit(f"{LOG}: no such log; LCG_LOG names another place")
    with tempfile.TemporaryDirectory() as name:
        alone, watched = Path(name) / "alone", Path(name) / "watched"
        run = start(alone)
        before = followed(run, None)
        run = start(watched, "--watch")
        assert run.stdout is not None
        address = run.stdout.readline().split()[-1]
        with chromium.browser() as page:
            page.show(address, 1280)
            page.value(COUNT_FRAMES)
            figures = followed(run, page)
        plain, shown = manifest(alone), manifest(watched)
    assert plain["digest"] == shown["digest"]
    own_s, shown_s = (one["cpu_seconds"]["run"] for one in (plain, shown))
    all_s, all_shown_s = (one.pop(ALL) for one in (before, figures))
    return {
        "alone, CPU ms": 1000 * own_s,
        "watched, CPU ms": 1000 * shown_s,
        "watched, CPU more, hundredths of a per cent": 10_000 * (shown_s / own_s - 1),
        "alone, CPU ms of the command": 1000 * all_s,
        "watched, CPU ms of the command and the page's server": 1000 * all_shown_s,
        "with the page's server, hundredths of a per cent": 10_000 * (all_shown_s / all_s - 1),
        "alone, most memory, MiB": before["most memory of the run, MiB"],
    } | figures


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
