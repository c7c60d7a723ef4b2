"""Inputs that are nearly right: what a reader takes, with some of its bytes changed."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

NASTY = (
    b"", b"0", b"-1", b"1e308", b"1e-308", b"9" * 25, b"9" * 5000, b".nan", b"-.inf", b"NaN",
    b"Infinity", b"null", b"true", b"~", b"{}", b"[]", b"[[]]", b'""', b"'", b'"', b"{", b"}",
    b"[", b"]", b":", b": ", b"- ", b"? ", b"&a ", b"*a", b"!!python/object:os.system ", b"<<: ",
    b"${a}", b"#", b";", b"\t", b"\n", b"\r", b"\0", b"\x85", b"\xff", b"\xef\xbb\xbf", b"\\u0000",
    b"\\ud800", b"\xe2\x80\xa8", b"a" * 300, b"[" * 2000, b'{"a":' * 2000, b"../../x", b"/dev/zero",
    b"/etc/passwd", b"12.5", b"-0", b"0x10", b"1_000", b"4294967296", b"9223372036854775807",
    b"18446744073709551616", b"fcfs", b"easy", b"afcfs", b"tabu", b"cs2", b"x.py:X", b"os:system",
)  # fmt: skip
Edit = Callable[[bytes], bytes]
"""A change of some bytes, wherever it falls in them."""


def _cut(place: float, length: int, new: bytes) -> Edit:
    def edit(data: bytes) -> bytes:
        start = round(place * len(data))
        return data[:start] + new + data[start + length :]

    return edit


def _flip(place: float, bit: int) -> Edit:
    def edit(data: bytes) -> bytes:
        if not data:
            return data
        changed = bytearray(data)
        changed[min(len(data) - 1, round(place * len(data)))] ^= 1 << bit
        return bytes(changed)

    return edit


def _token(place: float, new: bytes, marks: bytes = b" \t\n,:;[]{}\"'=") -> Edit:
    """Replace the word or number that stands there."""

    def edit(data: bytes) -> bytes:
        start = end = round(place * len(data))
        while start > 0 and data[start - 1] not in marks:
            start -= 1
        while end < len(data) and data[end] not in marks:
            end += 1
        return data[:start] + new + data[end:]

    return edit


def _again(place: float, length: int, times: int) -> Edit:
    def edit(data: bytes) -> bytes:
        start = round(place * len(data))
        return data[:start] + data[start : start + length] * times + data[start + length :]

    return edit


def _line(place: float, to: float, keep: bool) -> Edit:
    """Move a line, or have it twice."""

    def edit(data: bytes) -> bytes:
        lines = data.split(b"\n")
        line = lines[int(place * (len(lines) - 1))]
        if not keep:
            lines.remove(line)
        lines.insert(int(to * len(lines)), line)
        return b"\n".join(lines)

    return edit


def _whole(change: str) -> Edit:
    def edit(data: bytes) -> bytes:
        match change:
            case "gzip":
                return gzip.compress(data, 1, mtime=0)
            case "utf-16":
                return data.decode("latin-1").encode("utf-16")
            case "returns":
                return data.replace(b"\n", b"\r\n")
            case "first half":
                return data[: len(data) // 2]
        return data + data

    return edit


_place = st.floats(0, 1, width=32)
_few = st.integers(0, 40)
EDITS = st.one_of(
    st.builds(_token, _place, st.sampled_from(NASTY)),
    st.builds(_token, _place, st.sampled_from(NASTY)),
    st.builds(_token, _place, st.integers(-(2**70), 2**70).map(lambda n: str(n).encode())),
    st.builds(_cut, _place, _few, st.sampled_from(NASTY)),
    st.builds(_cut, _place, _few, st.binary(max_size=8)),
    st.builds(_flip, _place, st.integers(0, 7)),
    st.builds(_again, _place, _few, st.sampled_from([0, 2, 3, 100, 5000])),
    st.builds(_line, _place, _place, st.booleans()),
    st.builds(_whole, st.sampled_from(["gzip", "utf-16", "returns", "first half", "twice"])),
)


def mutated(corpus: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """One of `corpus` after up to six changes; now and then any bytes at all."""

    def changed(data: bytes, edits: list[Edit]) -> bytes:
        for edit in edits:
            data = edit(data)[:200_000]
        return data

    nearly = st.builds(changed, st.sampled_from(list(corpus)), st.lists(EDITS, max_size=6))
    return st.one_of(nearly, nearly, nearly, nearly, st.binary(max_size=200))
