"""Process faults that a run on Ray must survive, or after which it must end with one line.

A trial starts `grid run` in its own process group, injects a fault into one of its processes, and
checks how the run ends. `scripts/inject-faults` repeats trials; the tests run a few of them once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import grid
from grid.model.errors import shorten

ROOT = Path(__file__).parents[1]
GRID = (sys.executable, "-c", "from grid.cli.app import main; main()")
PARTIAL_UTILITY = str(ROOT / "scenarios" / "partial-utility.yaml")
MANY_VOS = ("vos.0.count=64", "workload.settings.users=640")
"""A windowed run then takes some seconds."""
WINDOWED = (PARTIAL_UTILITY, "--placement", "2", *(f"--set={one}" for one in MANY_VOS))
SCENARIOS = ROOT / "tests" / "runtime" / "fault_scenarios"
AT_WORK = ("--live", "--speedup", "4", "--placement", "vo")
LIVE = (str(SCENARIOS / "partial-utility.yaml"), *AT_WORK)
RECOVERING = (str(SCENARIOS / "lost-vos.yaml"), *AT_WORK)
KILLS = 50
"""Kills of actors in a run with repeated ones."""
STOP_SECONDS = 20.0
STARTS_SECONDS = 240.0
ENDS_SECONDS = 240.0
"""A run that takes longer hangs, under any load."""
CLEARS_SECONDS = 30.0
"""Time limit for Ray's processes to end after their parent, or after a signal."""


Act = Callable[["Trial"], None]


class NotInjected(Exception):
    """The run ended, or has no such process, before the fault was injected."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process in `/proc`; `pid` and `started` identify it."""

    pid: int
    parent: int
    started: str
    command: str


class Trial:
    """A run on Ray: its driver, and all processes that the driver started."""

    def __init__(self, command: Sequence[str], folder: Path, rng: random.Random) -> None:
        self.folder = folder
        self.live = "--live" in command
        self.rng = rng
        self._errors = (folder / "errors").open("w+b")
        self.driver = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
        )
        self._own: dict[int, Process] = {}
        self.kills = 0
        """How many of its actors were killed, if repeatedly."""

    def processes(self, *names: str) -> list[int]:
        """The ids of running processes of the run whose command contains one of `names`."""
        found = {one.pid: one for one in _descendants(self.driver.pid)}
        self._own |= found
        return [one.pid for one in found.values() if any(name in one.command for name in names)]

    def wait_until_it_runs(self) -> None:
        """Wait until its actors run, and a random time longer."""
        end = time.monotonic() + STARTS_SECONDS
        at_work = "ray::LiveActor" if self.live else "ray::WindowActor.run"
        while not self.processes(at_work):
            if self.driver.poll() is not None or time.monotonic() > end:
                raise NotInjected(f"it did not start: {self.error_lines()}")
            time.sleep(0.05)
        if self.live:
            journals = self.folder / "out" / ".journals"
            while not list(journals.glob("*.sqlite*")) and time.monotonic() < end:
                time.sleep(0.05)
        time.sleep(self.rng.uniform(0.5, 4.0) if self.live else self.rng.uniform(0.1, 3.0))
        if self.driver.poll() is not None:
            raise NotInjected("it had ended")

    def send(self, number: signal.Signals, *names: str) -> None:
        """Send a signal to a random process with one of these names."""
        pids = self.processes(*names)
        if not pids:
            raise NotInjected(f"no process {' or '.join(names)}")
        os.kill(self.rng.choice(pids), number)

    def error_lines(self) -> list[str]:
        """The lines on stderr."""
        return Path(self._errors.name).read_text(errors="replace").splitlines()

    def outcome(self) -> str:
        """How the run ended; "WRONG" and the reason if that violates a rule."""
        end = time.monotonic() + ENDS_SECONDS
        while (code := self.driver.poll()) is None:
            self.processes()
            # This process may have been stopped, too: check again.
            if time.monotonic() > end and self.driver.poll() is None:
                return f"WRONG: no end after {ENDS_SECONDS:.0f} s; {self.error_lines()[-1:]}"
            time.sleep(0.2)
        broken = list(self._broken(code))
        if broken:
            return f"WRONG: {'; '.join(broken)}; exit {code}: {self.error_lines()[:5]}"
        if (self.folder / "out" / "manifest.json").exists():
            return self._results(code)
        return f"exit {code}, one line"

    def _broken(self, code: int) -> Iterator[str]:
        """The violated rules."""
        error_lines, out = self.error_lines(), self.folder / "out"
        if (out / ".journals").exists():
            yield "journals are left"
        if left := self._left():
            yield f"processes are left: {left}"
        if any("Traceback" in line or "***" in line for line in error_lines):
            yield "a traceback is shown"
        has_results = (out / "manifest.json").exists()
        if has_results:
            if code not in (0, 130) or error_lines:
                yield f"results, and {len(error_lines)} lines"
        elif code not in (1, 2, 130) or len(error_lines) != 1 or out.exists():
            yield f"no results, and {len(error_lines)} lines"

    def _results(self, code: int) -> str:
        manifest = json.loads((self.folder / "out" / "manifest.json").read_text())
        if not self.live:
            same = manifest["digest"] == expected_digest()
            return "the same digest" if same else "WRONG: another digest"
        jobs = sum(manifest["jobs"][state] for state in ("completed", "failed", "rejected"))
        whole = manifest["live"]["unfinished"] == 0
        if code == 0 and not whole:
            return "WRONG: done with jobs unfinished"
        # A manifest is only written if each job has one final state.
        ended = f"exit {code}, {'all' if whole else 'some'} jobs ended" if jobs or code else "WRONG"
        if not self.kills:
            return ended
        metrics = json.loads((self.folder / "out" / "metrics.json").read_text())["grid"]
        return f"{ended}; {self.kills} kills, {metrics['resubmissions']:g} copies of jobs"

    def _left(self) -> list[str]:
        """Processes of the run that are still running."""
        end = time.monotonic() + CLEARS_SECONDS
        while True:
            now = {(one.pid, one.started): one for one in _all_processes()}
            left = [
                f"{one.pid} {shorten(now[one.pid, one.started].command)}"
                for one in self._own.values()
                if (one.pid, one.started) in now
            ]
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.2)

    def end(self) -> None:
        """Kill all processes of the run."""
        self.processes()
        now = {(one.pid, one.started) for one in _all_processes()}
        for one in self._own.values():
            if (one.pid, one.started) in now:
                with suppress(ProcessLookupError):
                    os.kill(one.pid, signal.SIGKILL)
        self.driver.kill()
        self.driver.wait()
        self._errors.close()


@cache
def expected_digest() -> str:
    """That of the windowed scenario in one process."""
    return str(grid.run(PARTIAL_UTILITY, set=MANY_VOS).manifest["digest"])


def _all_processes() -> Iterator[Process]:
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                stat = (path / "stat").read_text().rpartition(")")[2].split()
                command = (path / "cmdline").read_text().replace("\0", " ").strip()
            except OSError:
                continue
            # A zombie has no command.
            if command:
                yield Process(int(path.name), int(stat[1]), stat[19], command)


def _descendants(pid: int) -> list[Process]:
    """The process and its descendants."""
    children: dict[int, list[Process]] = {}
    found = []
    for one in _all_processes():
        children.setdefault(one.parent, []).append(one)
        if one.pid == pid:
            found.append(one)
    for one in found:
        found += children.get(one.pid, [])
    return found


ACTORS = ("ray::LiveActor", "ray::WindowActor")


def _killed(*names: str) -> Act:
    return lambda trial: trial.send(signal.SIGKILL, *names)


def _stop_actor(trial: Trial) -> None:
    pids = trial.processes(*ACTORS)
    if not pids:
        raise NotInjected("no actor")
    _stop(trial.rng.choice(pids))


def _stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _kill_repeatedly(trial: Trial) -> None:
    while trial.kills < KILLS and trial.driver.poll() is None:
        if pids := trial.processes(*ACTORS):
            with suppress(ProcessLookupError):
                os.kill(trial.rng.choice(pids), signal.SIGKILL)
                trial.kills += 1
        time.sleep(trial.rng.uniform(0.1, 3.0))


def _twice(number: signal.Signals) -> Act:
    def act(trial: Trial) -> None:
        os.killpg(trial.driver.pid, number)
        time.sleep(trial.rng.uniform(0.0, 2.0))
        with suppress(ProcessLookupError):
            os.killpg(trial.driver.pid, number)

    return act


FAULTS: dict[str, Act] = {
    "control": _killed("gcs_server"),
    "raylet": _killed("raylet/raylet"),
    "actor": _killed(*ACTORS),
    "actors": _kill_repeatedly,
    "stopped-actor": _stop_actor,
    "stopped-driver": lambda trial: _stop(trial.driver.pid),
    "term": lambda trial: trial.driver.send_signal(signal.SIGTERM),
    "term-group": lambda trial: os.killpg(trial.driver.pid, signal.SIGTERM),
    "interrupts": _twice(signal.SIGINT),
}
KINDS = {"windowed": WINDOWED, "live": LIVE, "recovering": RECOVERING}


def inject(kind: str, fault: str, number: int) -> str:
    """The outcome of a run of a kind after a fault; `number` is the seed of its time."""
    rng = random.Random(f"{kind} {fault} {number}")
    with tempfile.TemporaryDirectory(prefix="grid-faults-") as folder:
        command = [*GRID, "run", *KINDS[kind], "--quiet", "--out", "out"]
        trial = Trial(command, Path(folder), rng)
        try:
            trial.wait_until_it_runs()
            FAULTS[fault](trial)
            return trial.outcome()
        except NotInjected as error:
            return f"not injected: {error}"
        finally:
            trial.end()


def main() -> None:
    """Print a line for each trial, and the outcomes of each fault."""
    every = [f"{kind}/{name}" for kind in KINDS for name in FAULTS]
    parser = argparse.ArgumentParser(description="Inject faults into runs on Ray.")
    parser.add_argument("faults", nargs="*", metavar="KIND/FAULT", help=", ".join(every))
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    given = parser.parse_args()
    if unknown := [name for name in given.faults if name not in every]:
        parser.error(f"found {unknown[0]}, expected one of {', '.join(every)}")
    # Commands that a script starts in the background, and their children, ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wrong = 0
    for which in given.faults or every:
        counts: Counter[str] = Counter()
        for number in range(given.first, given.first + given.times):
            began = time.monotonic()
            outcome = inject(*which.split("/"), number)
            wrong += outcome.startswith("WRONG")
            counts[outcome] += 1
            print(f"{which} {number}: {outcome} ({time.monotonic() - began:.0f} s)", flush=True)
        print(f"{which}: {', '.join(f'{n} x {what}' for what, n in counts.items())}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
