"""Messages between a process and its child over a pair of pipes: data only, nothing that runs where it is received.

A message is a head, JSON of one object, and buffers. Before it stand the bytes of both; the head lists the bytes of
each buffer, which begin at multiples of 8. What is received is held against limits before memory is taken for it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

LONGEST_HEAD: Final = 1 << 20  # bytes
LONGEST_BODY: Final = 1 << 30  # bytes
MOST_BUFFERS: Final = 4096
_LENGTHS: Final = struct.Struct("QQ")  # of the head and of the buffers with their padding
_FIRST_TAKEN: Final = 1 << 20  # bytes of memory that an announced length is worth; more as they come
_PIPE_BYTES: Final = 1 << 20  # held on the way, where the system lets us
_MOST_WRITTEN: Final = 1024  # buffers of one call of the system


class MessageError(Exception):
    """What was received is no message, or none that was asked for."""


class StandstillError(Exception):
    """The other process did not go on."""


class PipeMessage(NamedTuple):
    """What passes at once."""

    head: Mapping[str, Any]
    buffers: Sequence[Any] = ()  # whatever has the buffer protocol, contiguous


class MessagePipe:
    """One end: a descriptor to read from and one to write to, which it closes."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing

    @classmethod
    def pair(cls) -> tuple[MessagePipe, MessagePipe]:
        """Two ends; what one sends, the other receives."""
        (first_in, second_out), (second_in, first_out) = os.pipe(), os.pipe()
        with contextlib.suppress(OSError):  # a user may hold only so much in large pipes
            fcntl.fcntl(second_out, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        return cls(first_in, first_out), cls(second_in, second_out)

    def send(self, message: PipeMessage) -> None:
        """Send a message; OSError where nobody receives it."""
        parts: list[memoryview | bytes] = []
        sizes = []
        for buffer in message.buffers:
            view = memoryview(buffer)
            sizes.append(view.nbytes)
            if view.nbytes:
                parts += [view.cast("B"), bytes(-view.nbytes % 8)]
        head = json.dumps({**message.head, "sizes": sizes}).encode()
        self._write([_LENGTHS.pack(len(head), sum(map(_padded, sizes))) + head, *parts])

    def _write(self, parts: Sequence[memoryview | bytes]) -> None:
        left = [memoryview(part) for part in parts if len(part)]
        first = 0
        while first < len(left):
            written = os.writev(self.writing, left[first : first + _MOST_WRITTEN])
            while first < len(left) and written >= len(left[first]):
                written -= len(left[first])
                first += 1
            if written:
                left[first] = left[first][written:]

    def receive(self, longest_s: float | None = None) -> PipeMessage:
        """The next message, its buffers views of one piece of memory; EOFError where the other end is closed.

        MessageError where it is none, StandstillError where it stops in the middle for so long.
        """
        head_bytes, body_bytes = _LENGTHS.unpack(self._read(_LENGTHS.size, longest_s))
        if head_bytes > LONGEST_HEAD or body_bytes > LONGEST_BODY:
            raise MessageError(f"a message of {head_bytes} and {body_bytes} bytes")
        head, sizes = _read_head(self._read(head_bytes, longest_s))
        if sum(map(_padded, sizes)) != body_bytes:
            raise MessageError(f"buffers of {sum(map(_padded, sizes))} bytes in {body_bytes}")
        body = memoryview(self._read(body_bytes, longest_s))
        buffers, begin = [], 0
        for size in sizes:
            buffers.append(body[begin : begin + size])
            begin += _padded(size)
        return PipeMessage(head, buffers)

    def _read(self, length: int, longest_s: float | None) -> bytearray:
        content = bytearray(min(length, _FIRST_TAKEN))
        count = 0
        while count < length:
            if count == len(content):
                content += bytes(min(count, length - count))
            if longest_s is not None and not self.poll(longest_s):
                raise StandstillError
            with memoryview(content) as whole, whole[count:] as left:
                taken = os.readv(self.reading, [left])
            if not taken:
                raise EOFError
            count += taken
        return content

    def poll(self, longest_s: float) -> bool:
        """Wait until there is something to receive, or that it is known that nothing follows."""
        waiting = select.poll()  # not `select`, which knows no descriptor above 1023
        waiting.register(self.reading, select.POLLIN)
        return bool(waiting.poll(longest_s * 1000))

    def close(self) -> None:
        """Close both descriptors."""
        os.close(self.reading)
        os.close(self.writing)


def _padded(size: int) -> int:
    return size + -size % 8


def _read_head(content: bytearray) -> tuple[dict[str, Any], list[int]]:
    """A head, and the bytes of each buffer."""
    try:
        head = json.loads(content.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise MessageError("a head that is no JSON") from error
    sizes = head.pop("sizes", None) if isinstance(head, dict) else None
    if not isinstance(sizes, list) or len(sizes) > MOST_BUFFERS:
        raise MessageError("a head without a list of buffers")
    if not all(type(size) is int and 0 <= size <= LONGEST_BODY for size in sizes):
        raise MessageError("a buffer of no possible length")
    return head, sizes
