"""What the command line of an IOR run tells beyond the options that IOR prints: O_DIRECT, fsync, Lustre stripes.

None where the command line is not there or a script (-f) may have said otherwise.
"""

from __future__ import annotations

import re
from typing import Final

from iolens.sources.reading.parsed_numbers import count_or_none

_DIRECT: Final = re.compile(r"--posix\.odirect\b|\s-B\b|useO_DIRECT\s*+=\s*+1")
# Options without a value may be one word (-wek). -e: one fsync after all writes; -Y: one after each.
_FSYNC: Final = re.compile(
    r"\s-[BcCEFgHhIkKlmnpPqrRuvVwWxzZ]*+[eY][BcCeEFgHhIkKlmnpPqrRuvVwWxYzZ]*+\s|(?i:\bfsync(?:perwrite)?+\s*+=\s*+1\b)"
)
# `--posix.lustre.stripecount=4` of IOR 4, `-O lustreStripeCount=4` before.
_STRIPE: Final = r"(?i:(?:--posix\.lustre\.|\blustre)stripe{0}(?:\s*+=\s*+|\s++)(\d++)([kmgt]?+)\b)"
_STRIPE_COUNT: Final = re.compile(_STRIPE.format("count"))
_STRIPE_SIZE: Final = re.compile(_STRIPE.format("size"))
_SCRIPT: Final = re.compile(r"\s-f\s")
_SHIFTS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def is_direct(command: str | None) -> bool | None:
    """Whether it asks for O_DIRECT."""
    return _asks(_DIRECT, command)


def has_fsync(command: str | None) -> bool | None:
    """Whether it asks for an fsync, which IOR counts to the time of the writes."""
    return _asks(_FSYNC, command)


def stripe_count(command: str | None) -> int | None:
    """Targets that files are striped over, where it names them; 0 is the file system's default, which is not known."""
    return _size(_STRIPE_COUNT, command)


def stripe_bytes(command: str | None) -> int | None:
    """Size of a stripe, where it names one."""
    return _size(_STRIPE_SIZE, command)


def _asks(pattern: re.Pattern[str], command: str | None) -> bool | None:
    if command is None:
        return None
    if pattern.search(f" {command} "):
        return True
    return None if _SCRIPT.search(f" {command} ") else False


def _size(pattern: re.Pattern[str], command: str | None) -> int | None:
    match = pattern.search(f" {command or ''} ")
    number = None if match is None else count_or_none(match[1])
    if match is None or not number:
        return None
    return number << _SHIFTS[match[2].lower()]
