r"""Text of others made visible: names of users, jobs, targets and files may hold anything a terminal or page obeys.

Control characters, marks of direction, characters without width and bytes that are no text are shown as escapes such
as `\x1b`. Every output goes through here once, where it is written; data for programs keep the text as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

BLANK_ID: Final = "(blank id)"  # how the I/O of processes without a job id is shown
LONGEST_NAME: Final = 120  # characters of a word that are shown: more are shortened in the middle
# Unicode's categories Cc, Cf, Cs, Zl and Zp: controls, formats, lone surrogates, separators of lines and paragraphs.
UNSEEN: Final = (
    "\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f"
)
_UNSEEN: Final = re.compile(f"[{UNSEEN}]")
_UNSEEN_IN_LINES: Final = re.compile(f"(?![\n\t])[{UNSEEN}]")
_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_WORD: Final = re.compile(r"\S+")


def visible(text: str) -> str:
    """A name or a cell: everything unseen is shown as an escape, line ends too."""
    return _UNSEEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Sentences of our own that may hold names: the same, but lines and tabs stay."""
    return _UNSEEN_IN_LINES.sub(_escape, text)


def shortened(text: str, most: int = LONGEST_NAME) -> str:
    """At most so many characters, with a mark in the middle where some were left out."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[-tail:]}" if tail else f"{text[: most - 1]}…"


def with_short_words(text: str, most: int = LONGEST_NAME) -> str:
    """Sentences with every word shortened that is longer than any name should be."""
    return _WORD.sub(lambda word: shortened(word[0], most), text) if len(text) > most else text


def shown_name(text: str) -> str:
    """A name for people: visible, and not too long."""
    return shortened(visible(text))


def shown_lines(text: str) -> str:
    """Sentences for people: visible, and no word too long."""
    return with_short_words(visible_lines(text))


def shown_job_id(text: str) -> str:
    """A job id of job_stats as it is; a blank one has a name too."""
    return text if text.strip() else BLANK_ID


def counted(number: int, word: str) -> str:
    """`1 day`, `2 days`, `2 stretches`, `2 processes`."""
    plural = "es" if word.endswith(("ch", "ss")) else "s"
    return f"{number:,} {word}{plural if number != 1 else ''}"


def core_hours(number: str) -> str:
    """`1 core-hour`, `1,504 core-hours`, from the number as it is shown."""
    return f"{number} core-hour{'' if number == '1' else 's'}"


def times(number: str) -> str:
    """`once`, `12 times`, from the number as it is shown."""
    return "once" if number == "1" else f"{number} times"


def some_names(names: Sequence[str], most: int) -> str:
    """The first few, and how many more there are: `a, b and 3 more`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def listed(names: Sequence[str], most: int) -> str:
    """`a, b and c`; where there are more, the first few and how many more."""
    if len(names) > most:
        return some_names(names, most)
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no text, as Python keeps it in a file name
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return _SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
