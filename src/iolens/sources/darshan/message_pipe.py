"""Objects sent between a process and its child: pickled, each after its length, over a pair of pipes.

What `multiprocessing.connection` does, which takes as long to import as a small log to read.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
from typing import Any, Final

_LENGTH: Final = struct.Struct("Q")
_LARGEST_READ: Final = 1 << 20  # bytes


class MessagePipe:
    """One end: a descriptor to read from and one to write to, which it closes."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing

    @classmethod
    def pair(cls) -> tuple[MessagePipe, MessagePipe]:
        """Two ends; what one sends, the other receives."""
        (first_in, second_out), (second_in, first_out) = os.pipe(), os.pipe()
        return cls(first_in, first_out), cls(second_in, second_out)

    def send(self, value: object) -> None:
        """Send an object; OSError where nobody receives it."""
        pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        self._write(_LENGTH.pack(len(pickled)))
        self._write(pickled)

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[os.write(self.writing, left) :]

    def receive(self) -> Any:
        """The next object; EOFError where the other end is closed."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return pickle.loads(self._read(length))  # noqa: S301 (of our own child)

    def _read(self, length: int) -> bytearray:
        content = bytearray(length)
        left = memoryview(content)
        while left:
            count = os.readv(self.reading, [left[:_LARGEST_READ]])
            if not count:
                raise EOFError
            left = left[count:]
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
