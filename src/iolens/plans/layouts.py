"""Over how many drives a stripe is spread, and how many of them hold parity: `8+2`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from iolens.errors import UsageError

_LAYOUT: Final = re.compile(r"\s*([0-9]{1,4})\s*\+\s*([0-9]{1,4})\s*")


@dataclass(frozen=True, slots=True)
class StripeLayout:
    """Blocks of data and of parity in a stripe."""

    data: int
    parity: int

    @property
    def overhead(self) -> float:
        """Raw bytes per byte of data: (D + P) ÷ D."""
        return (self.data + self.parity) / self.data

    def __str__(self) -> str:
        return f"{self.data}+{self.parity}"


def layout(data: int, parity: int) -> StripeLayout:
    """A stripe of at least one block of data."""
    if data < 1 or parity < 0:
        raise UsageError(f"a stripe of {data} data and {parity} parity blocks: it needs data, and 0 or more of parity")
    return StripeLayout(data, parity)


def parse_layout(text: str) -> StripeLayout:
    """`8+2`."""
    match = _LAYOUT.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a stripe; write data and parity blocks, such as 8+2")
    return layout(int(match[1]), int(match[2]))
