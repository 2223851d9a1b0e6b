"""Which segments the writer is loading, on disk: a segment that takes the process down is found and put aside.

A writer that died three times takes ever fewer of those segments at once; one that takes it down four times alone is
the cause. Deaths that have nothing to do with the segments cost time, nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.agent.sampling.private_files import replace_private
from iolens.sources.reading.bounded_input import opened_itself

ATTEMPT_FILE: Final = "attempt.json"
LARGEST_FILE: Final = 16 << 20
DEATHS_UNTIL_FEWER: Final = 3
DEATHS_ALONE: Final = 4
FEWER: Final = 4  # a quarter of what it was


@dataclass(slots=True)
class LoadAttempts:
    """Segments during which a writer died (`suspects`), and how often in a row."""

    directory: Path  # STATE/hub
    suspects: set[str] = field(default_factory=set)  # paths below the directory
    loading: list[str] = field(default_factory=list)
    limit: int | None = None  # segments of a batch while there are suspects
    deaths: int = 0
    deaths_alone: int = 0

    @classmethod
    def after_start(cls, directory: Path) -> LoadAttempts:
        """What the writer before this one left: where it left a list, it died over that."""
        before = cls._read(directory)
        if not before.loading:
            return before
        before.deaths += 1
        before.deaths_alone = before.deaths_alone + 1 if len(before.loading) == 1 else 0
        before.suspects.update(before.loading)
        if before.deaths >= DEATHS_UNTIL_FEWER:
            before.limit = max(len(before.loading) // FEWER, 1)
        before._write()
        return before

    def deadly(self) -> Path | None:
        """The segment that takes the writer down, if there is one."""
        if self.deaths_alone < DEATHS_ALONE:
            return None
        return self.directory / self.loading[0]

    def next_suspects(self) -> list[Path]:
        """Those that are loaded before all others, the first ones of each agent; none where all are above suspicion."""
        if self.limit is None:
            return []
        left = sorted(path for name in self.suspects if (path := self.directory / name).exists())
        self.suspects = {str(path.relative_to(self.directory)) for path in left}
        if not left:
            self.end(done=False)
        return left[: self.limit]

    def begin(self, paths: Iterable[Path]) -> None:
        """These are loaded now."""
        self.loading = [str(path.relative_to(self.directory)) for path in paths]
        self._write()

    def end(self, *, done: bool) -> None:
        """Nothing is loaded any more; `done`: those that were are no suspects."""
        if done:
            self.suspects.difference_update(self.loading)
            self.deaths_alone = 0
            self.limit = None if self.limit is None else self.limit * FEWER
        self.loading = []
        if self.suspects:
            self._write()
        else:
            self.limit, self.deaths, self.deaths_alone = None, 0, 0
            (self.directory / ATTEMPT_FILE).unlink(missing_ok=True)

    @classmethod
    def forget(cls, directory: Path) -> None:
        """The writer is stopped: nothing that it was loading made it die."""
        state = cls._read(directory)
        if state.loading:
            state.end(done=False)

    def _write(self) -> None:
        counts = {"limit": self.limit, "deaths": self.deaths, "deaths_alone": self.deaths_alone}
        lists = {"suspects": sorted(self.suspects), "loading": self.loading}
        with suppress(OSError):  # a full disk must not keep the writer from emptying it
            replace_private(self.directory / ATTEMPT_FILE, json.dumps({**counts, **lists}).encode())

    @classmethod
    def _read(cls, directory: Path) -> LoadAttempts:
        try:
            with opened_itself(directory / ATTEMPT_FILE) as stream:
                plain = json.loads(stream.read(LARGEST_FILE))
            suspects, loading = _names(plain["suspects"]), _names(plain["loading"])
            limit = None if plain["limit"] is None else max(int(plain["limit"]), 1)
            return cls(directory, set(suspects), loading, limit, int(plain["deaths"]), int(plain["deaths_alone"]))
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return cls(directory)


def _names(values: Sequence[object]) -> list[str]:
    return [str(value) for value in values]
