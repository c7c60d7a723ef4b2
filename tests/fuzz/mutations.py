"""Inputs that are nearly right: a valid input with some of its bytes changed."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

NASTY = (
    b"", b"0", b"-1", b"1e308", b"1e-308", b"9" * 25, b"9" * 5000, b".nan", b"-.inf", b"Infinity",
    b"null", b"true", b"{}", b"[[]]", b'""', b"'", b'"', b"{", b"]", b": ", b"- ", b"? ", b"&a ",
    b"*a", b"!!python/object:os.system ", b"<<: ", b"${a}", b"#", b";", b"\t", b"\n", b"\r", b"\0",
    b"\x85", b"\xff", b"\xef\xbb\xbf", b"\\ud800", b"\xe2\x80\xa8", b"a" * 300, b"[" * 2000,
    b'{"a":' * 2000, b"../../x", b"/dev/zero", b"/etc/passwd", b"12.5", b"0x10", b"1_000",
    b"4294967296", b"9223372036854775807", b"18446744073709551616", b"fcfs", b"easy", b"afcfs",
    b"tabu", b"cs2", b"x.py:X", b"os:system",
)  # fmt: skip
Edit = Callable[[bytes], bytes]
"""A change of some bytes."""


def _replace(place: float, length: int, new: bytes, times: int = 1) -> Edit:
    """Replace `length` bytes at a relative place by `new`, or by themselves `times` over."""

    def edit(data: bytes) -> bytes:
        start = round(place * len(data))
        middle = new if times == 1 else data[start : start + length] * times
        return data[:start] + middle + data[start + length :]

    return edit


def _flip(place: float, bit: int) -> Edit:
    def edit(data: bytes) -> bytes:
        changed = bytearray(data or b"\0")
        changed[round(place * (len(changed) - 1))] ^= 1 << bit
        return bytes(changed)

    return edit


def _token(place: float, new: bytes, marks: bytes = b" \t\n,:;[]{}\"'=") -> Edit:
    """Replace the word or number at a relative place."""

    def edit(data: bytes) -> bytes:
        start = end = round(place * len(data))
        while start > 0 and data[start - 1] not in marks:
            start -= 1
        while end < len(data) and data[end] not in marks:
            end += 1
        return data[:start] + new + data[end:]

    return edit


WHOLE: tuple[Edit, ...] = (
    lambda data: gzip.compress(data, 1, mtime=0),
    lambda data: data.decode("latin-1").encode("utf-16"),
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data[: len(data) // 2],
)
_place = st.floats(0, 1, width=32)
_few = st.integers(0, 40)
EDITS = st.one_of(
    st.builds(_token, _place, st.sampled_from(NASTY)),
    st.builds(_token, _place, st.integers(-(2**70), 2**70).map(lambda n: str(n).encode())),
    st.builds(_replace, _place, _few, st.sampled_from(NASTY) | st.binary(max_size=8)),
    st.builds(_replace, _place, _few, st.just(b""), st.sampled_from([0, 2, 100, 5000])),
    st.builds(_flip, _place, st.integers(0, 7)),
    st.sampled_from(WHOLE),
)


def mutated(corpus: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """One of `corpus` after up to six changes, or any bytes."""

    def changed(data: bytes, edits: list[Edit]) -> bytes:
        for edit in edits:
            data = edit(data)[:200_000]
        return data

    nearly = st.builds(changed, st.sampled_from(list(corpus)), st.lists(EDITS, max_size=6))
    return st.one_of(nearly, nearly, nearly, st.binary(max_size=200))
