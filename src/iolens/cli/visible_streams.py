"""What the command prints: nothing that came from others is obeyed by the terminal, whichever verb prints it.

Messages, warnings and tracebacks pass here last. Colours of our own tables are let through; pictures and other bytes
go past this, to the stream's buffer.
"""

from __future__ import annotations

import io
import re
import sys
from typing import Final, TextIO

from iolens.visible_text import visible_lines

_COLOUR: Final = re.compile(r"(\x1b\[[01]m)")  # bold and plain: all that tables use


class VisibleStream(io.TextIOWrapper):
    """A text stream on which control characters are shown, not sent; `colours` lets those of tables through."""

    colours = False

    def write(self, text: str, /) -> int:
        """Write it; the number of characters is that of the text as it was given."""
        if not self.colours or "\x1b" not in text:
            super().write(visible_lines(text))
        else:
            parts = _COLOUR.split(text)  # every other one is a colour
            super().write("".join(part if place % 2 else visible_lines(part) for place, part in enumerate(parts)))
        return len(text)


def guard_streams() -> None:
    """Put such streams in the place of standard output and standard error; `sys.__stderr__` stays for progress bars."""
    sys.stdout = _guarded(sys.stdout, colours=True)
    sys.stderr = _guarded(sys.stderr, colours=False)


def _guarded(stream: TextIO, *, colours: bool) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper):  # closed, or somebody else's
        return stream
    stream.flush()
    visible_stream = VisibleStream(
        stream.buffer, stream.encoding, stream.errors, None, stream.line_buffering, stream.write_through
    )
    visible_stream.colours = colours
    return visible_stream
