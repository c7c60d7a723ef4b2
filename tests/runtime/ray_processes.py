"""The processes of the Ray cluster that the tests started, and of no other."""

from __future__ import annotations

from pathlib import Path

import ray


def actor_pids(kind: str) -> list[int]:
    """Process ids of the actors of class `kind`, living ones, in rising order."""
    session = ray._private.worker._global_node.get_session_dir_path()
    raylets = [pid for pid in _pids() if "raylet" in _arguments(pid) and session in _arguments(pid)]
    return [
        pid
        for pid in _pids()
        if _arguments(pid).startswith(f"ray::{kind}") and _parent(pid) in raylets
    ]


def commands() -> list[str]:
    """The command lines of Ray itself, in no order."""
    session = ray._private.worker._global_node.get_session_dir_path()
    return [line for line in map(_arguments, _pids()) if session in line]


def _pids() -> list[int]:
    return sorted(int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())


def _arguments(pid: int) -> str:
    return _read(pid, "cmdline").replace("\0", " ")


def _parent(pid: int) -> int:
    stat = _read(pid, "stat")
    return int(stat.rpartition(")")[2].split()[1]) if stat else 0


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""
