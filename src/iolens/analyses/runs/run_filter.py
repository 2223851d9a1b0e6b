"""Which runs a question is about: project, owner, executable, and the least size of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import narwhals as nw

from iolens.analyses.runs.measures import moved_bytes

Frame = nw.LazyFrame[Any]

UNKNOWN: Final = "(unknown)"
"""What a project is called that neither the scheduler nor the log tells; in options too."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """An empty part is any. In names `*` and `?` stand for anything; a run has at least `min_processes` processes and
    moved at least `min_bytes`.
    """

    projects: Sequence[str] = ()
    users: Sequence[str] = ()
    executables: Sequence[str] = ()
    without_projects: Sequence[str] = ()
    min_processes: int = 0
    min_bytes: int = 0

    def kept(self, frame: Frame) -> Frame:
        """Those runs of a joined frame."""
        for column, names in (("project", self.projects), ("user", self.users), ("executable", self.executables)):
            if names:
                frame = frame.filter(_is_one_of(column, names))
        if self.without_projects:
            frame = frame.filter(~_is_one_of("project", self.without_projects))
        return frame.filter(self.is_large()) if self.min_processes or self.min_bytes else frame

    def is_large(self) -> nw.Expr:
        """Whether a run has at least so many processes and moved at least so many bytes; unknown is no."""
        processes = nw.coalesce("processes", nw.lit(-1)) >= self.min_processes
        return processes & (nw.coalesce(moved_bytes(), nw.lit(-1)) >= self.min_bytes)

    def of_any_size(self) -> RunFilter:
        """The same for runs of any size."""
        return replace(self, min_processes=0, min_bytes=0)


def _is_one_of(column: str, names: Sequence[str]) -> nw.Expr:
    text = nw.coalesce(column, nw.lit(UNKNOWN))
    condition = text.is_in(list(names))
    for name in names:
        if "*" in name or "?" in name:
            condition = condition | text.str.contains(_pattern(name))
    return condition


def _pattern(name: str) -> str:
    """A regular expression that all engines read alike: signs that may mean something stand in brackets."""
    wild = {"*": ".*", "?": ".", "^": r"\^", "\\": r"\\", "[": r"\[", "]": r"\]"}
    return f"^{''.join(wild.get(sign) or (sign if sign.isalnum() else f'[{sign}]') for sign in name)}$"
