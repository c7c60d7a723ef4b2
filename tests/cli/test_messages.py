"""The wording of messages: `messages.txt` has the stderr of wrong commands, and is the only test
of their wording.

`python -m tests.cli.test_messages` renews the file; read the difference.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from grid.cli.app import app
from tests.config.wrong_scenarios import RIGHT

GOLDEN = Path(__file__).with_name("messages.txt")
JOBS = "[{number: 1, run_s: 5}]"
FILES = {
    "right.yaml": RIGHT,
    "wrong.yaml": RIGHT.replace("ttl: 3", "ttl: -3"),
    "five.yaml": f"vos: [{{name: a, clusters: [{{cpus: 1}}], workload: {{jobs: {JOBS}}}}}]\n",
    "axes.yaml": "name: e\nscenario: five.yaml\naxes: {protocol.ttl: [0, -1]}\n",
    "metric.yaml": "name: e\nscenario: five.yaml\nmetrics: [mean_wait]\n",
    "log.swf": "1 0 -1 100 4 -1 -1 4 200 -1 1 7 1 -1 1 -1 -1 -1\n1 2 3\n",
    "table.swf": "id,submit,run,cores\n1,0,10,2\n",
}
COMMANDS = """
grid nonsense
grid rnu
grid run
grid run a --seed -1
grid run a --foo
grid run two-vso
grid run fife.yaml
grid run axes.yaml
grid run snapshot-age
grid run two-vos --live --in-process
grid run two-vos --speedup 2
grid run two-vos --seeds 2 --events
grid run two-vos --seeds 0
grid run two-vos --seeds 3-1
grid run two-vos --seed 1 --set seed=2
grid run two-vos --set ttl=1,1
grid run two-vos --in-process --placement vo
grid sweep two-vos
grid sweep five.yaml
grid sweep axes.yaml --in-process
grid sweep snapshot-age --dry-run --page page.md
grid check wrong.yaml
grid check axes.yaml
grid check metric.yaml
grid check right.yaml --set vos.0.clusters.0.policy=EASY
grid check a.yaml b.yaml c.yaml d.yaml e.yaml f.yaml
grid schema files
grid init two-vo
grid init two-vos five.yaml
grid plugins police
grid plugins policies esay
grid metrics mean_wait
grid metrics zzz
grid report missing -q
grid watch missing -q
grid job missing 1
grid export missing --to swf -q
grid export a --to b
grid trace missing.swf -q
grid trace log.swf -q
grid trace table.swf -q
grid trace log.swf --from-s 10 --before-s 5
grid chaos missing -q
grid verify --case nothing
grid verify --set a=1
grid reproduce XX
grid reproduce PU --seeds 2 --as-is
"""


def messages(folder: Path) -> str:
    """Each command with its exit code and stderr, executed in `folder`."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    here, parts = Path.cwd(), []
    os.chdir(folder)
    try:
        for command in COMMANDS.strip().splitlines():
            done = CliRunner().invoke(app, shlex.split(command)[1:], prog_name="grid")
            error = done.stderr.replace(str(folder), ".")
            parts.append(f"$ {command}    # {done.exit_code:d}\n{error}")
    finally:
        os.chdir(here)
    return "\n".join(parts)


def test_messages_are_worded_as_recorded(tmp_path: Path) -> None:
    assert messages(tmp_path) == GOLDEN.read_text()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        GOLDEN.write_text(messages(Path(name)))
    sys.stdout.write(f"{GOLDEN}\n")
