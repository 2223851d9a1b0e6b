"""Names of segments that agents send: `HOST~RUN~SEQUENCE`, in letters that are safe in a path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_NAME: Final = re.compile(
    r"(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]{0,127})~(?P<run>[A-Za-z0-9_][A-Za-z0-9._-]{0,63})~(?P<sequence>[0-9]{8,12})"
)


@dataclass(frozen=True, slots=True)
class SegmentName:
    """A name that was checked: only such names become paths."""

    host: str
    run: str
    sequence: int

    @property
    def stem(self) -> str:
        """As agents and files write it."""
        return f"{self.host}~{self.run}~{self.sequence:08d}"

    @classmethod
    def parse(cls, text: str) -> SegmentName | None:
        """None when it is not the name of a segment, or another way to write one."""
        match = _NAME.fullmatch(text)
        name = None if match is None else cls(match["host"], match["run"], int(match["sequence"]))
        return name if name is not None and name.stem == text else None
