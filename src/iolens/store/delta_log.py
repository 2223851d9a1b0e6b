"""The log of a table on a local disk: what it says is on disk before anybody relies on it, and what a power cut tore
is put aside.

An entry is made visible whole, by a link, but not written through. So a power cut may leave the newest ones empty or
torn. Nobody was reported that they are safe: each is put aside, an entry that says nothing takes its place, and what it
said is sent again.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from iolens.store.data_files import checksum_in
from iolens.store.durable import make_directory, sync_all, sync_directory, sync_file

ACTIONS: Final = "iolensActions"  # how many lines follow that of the commit itself
ASIDE: Final = "_damaged"  # below the table; no vacuum enters a folder whose name starts so
CONTEMPORARY_S: Final = 60.0  # writers that were at work together left their entries within this time
STILL_WRITTEN_S: Final = 10.0  # on a network file system an entry may be seen before its content
WRITTEN_BACK_S: Final = 300.0  # what is older than this the kernel has long written by itself
CHECKPOINT_EVERY: Final = 100
ENTRY: Final = re.compile(r"(\d{20})\.json")
CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint.*\.parquet")


@dataclass(slots=True)
class DeltaLog:
    """The log of one table, as one process sees it."""

    table: Path
    settled: int = -1  # entries up to this version are on disk
    is_checked: bool = False  # the newest entries were looked at once

    @property
    def folder(self) -> Path:
        """Where the entries are."""
        return self.table / "_delta_log"

    def entry(self, version: int) -> Path:
        """The entry of a version."""
        return self.folder / f"{version:020}.json"

    def versions(self) -> list[int]:
        """Versions of all entries that are there."""
        return sorted(int(match.group(1)) for path in self.folder.iterdir() if (match := ENTRY.fullmatch(path.name)))

    def settle(self, known: int) -> int:
        """Have all entries on disk: those up to version `known`, and those that came after; the newest version.

        Data files are on disk before their entry is made, unless another program than this wrote them.
        """
        first = max(self.settled + 1, self._first_young(known) if self.settled < 0 else 0)
        newest = known
        while self.entry(newest + 1).exists():
            newest += 1
        waiting = [entry for version in range(first, newest + 1) if (entry := self.entry(version)).exists()]
        if waiting:
            sync_all([*self._foreign_files(waiting), *waiting])
        if self.settled < 0:
            sync_directory(self.table)
        self.settled = max(newest, self.settled)
        return newest

    def add_entry(self, version: int, actions: Sequence[Mapping[str, Any]]) -> bool:
        """Make the entry of a version, whole or not at all; False where another writer has made one."""
        now_ms = time.time_ns() // 1_000_000
        about = {"timestamp": now_ms, "operation": "WRITE", "engineInfo": "iolens", ACTIONS: len(actions)}
        beside = self.folder / f"_commit_{uuid.uuid4()}.json.tmp"  # as delta-rs calls its own
        try:
            beside.write_text("".join(json.dumps(line) + "\n" for line in ({"commitInfo": about}, *actions)), "utf-8")
            sync_file(beside)
            self.entry(version).hardlink_to(beside)
        except FileExistsError:
            return False
        finally:
            beside.unlink(missing_ok=True)
        return True

    def _first_young(self, known: int) -> int:
        """The oldest of the newest entries that the kernel may not have written yet."""
        version = known
        while version >= 0 and _age_s(self.entry(version)) < WRITTEN_BACK_S:
            version -= 1
        return version + 1

    def _foreign_files(self, entries: list[Path]) -> Iterator[Path]:
        for entry in entries:
            for action in _actions(entry):
                path = unquote(str(action.get("add", {}).get("path", "")))
                if path and checksum_in(path) is None and (self.table / path).is_file():
                    yield self.table / path

    def is_torn(self, version: int) -> bool:
        """Whether an entry is what a power cut leaves: nothing, or a beginning."""
        try:
            content = self.entry(version).read_bytes()
        except FileNotFoundError:
            return False
        rest = content.rstrip(b"\0")
        if not rest or (rest != content and b"\0" not in rest):
            return True
        try:
            actions = [json.loads(line) for line in rest.splitlines()]
            said = {key for action in actions for key in action}
            expected = actions[0].get("commitInfo", {}).get(ACTIONS)
        except (ValueError, TypeError, AttributeError):
            return rest.startswith(b"{") and b"\0" not in rest
        if version == 0:
            return not {"protocol", "metaData"} <= said
        return expected is not None and expected != len(actions) - 1

    def is_empty(self, version: int) -> bool:
        """Whether an entry is there and says nothing at all, which delta-rs passes over in silence."""
        try:
            return self.entry(version).stat().st_size == 0
        except FileNotFoundError:
            return False

    def torn_at_the_end(self, newest: int | None = None) -> list[int]:
        """Torn entries among the newest, which nobody was assured are safe."""
        if newest is None:
            newest = max(self.versions(), default=-1)
        since = _modified(self.entry(newest)) - CONTEMPORARY_S
        version, torn = newest, []
        while version >= 0 and _modified(self.entry(version)) >= since:
            torn += [version] if self.is_torn(version) else []
            version -= 1
        return torn[::-1]

    def recover(self, versions: Sequence[int] = ()) -> list[str]:
        """Put torn entries and checkpoints aside, so that the table is what it was without them; what was done.

        Entries that others followed are left alone unless named: somebody may rely on them.
        """
        with self._locked():
            done = [self._put_aside(path) for path in self._damaged_checkpoints()]
            for version in sorted({*versions, *self.torn_at_the_end()}):
                self._wait_for_content(version)
                is_needed = version == 0 and self.entry(1).exists()  # without it there is no table
                if not is_needed and (self.is_torn(version) or not self.entry(version).exists()):
                    done.append(self._replace(version))
        self.settled, self.is_checked = -1, True
        return done

    def _wait_for_content(self, version: int) -> None:
        deadline = time.monotonic() + STILL_WRITTEN_S
        while self.is_torn(version) and _age_s(self.entry(version)) < STILL_WRITTEN_S and time.monotonic() < deadline:
            time.sleep(0.1)

    def _replace(self, version: int) -> str:
        """An entry that says nothing in place of a torn one; of the first one, which makes the table, no entry."""
        entry = self.entry(version)
        what = f"{entry}: {'is missing' if not entry.exists() else f'torn after {entry.stat().st_size} bytes'}"
        aside = self._aside(entry)
        if entry.exists():
            os.link(entry, aside)
        if version == 0:
            entry.unlink()
        else:
            note = {"timestamp": time.time_ns() // 1_000_000, "operation": "RECOVERY", "engineInfo": "iolens"}
            beside = aside.with_suffix(".new")
            beside.write_bytes(json.dumps({"commitInfo": {**note, ACTIONS: 0}}).encode())
            sync_file(beside)
            beside.replace(entry)
        sync_directory(aside.parent)
        sync_directory(self.folder)
        return f"{what}; kept in {aside.parent.name}/, and the table goes on without it"

    def _damaged_checkpoints(self) -> Iterator[Path]:
        """Checkpoints that cannot be read, and the hint to one that is not there: the entries say all of it again."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        good = set()
        for path in list(self.folder.iterdir()):
            if match := CHECKPOINT.fullmatch(path.name):
                try:
                    pq.read_table(path)
                    good.add(int(match.group(1)))
                except (pa.ArrowException, OSError):
                    yield path
        hint = self.folder / "_last_checkpoint"
        try:
            if json.loads(hint.read_bytes())["version"] not in good:
                yield hint
        except FileNotFoundError:
            pass
        except (ValueError, LookupError, TypeError):
            yield hint

    def _put_aside(self, path: Path) -> str:
        aside = self._aside(path)
        path.rename(aside)
        sync_directory(aside.parent)
        sync_directory(self.folder)
        return f"{path}: torn; kept in {aside.parent.name}/, the log is read without it"

    def _aside(self, path: Path) -> Path:
        folder = self.table / ASIDE
        make_directory(folder)
        return folder / f"{path.name}.{time.time_ns()}"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def is_checkpoint_due(self, before: int, newest: int) -> bool:
        """Whether a checkpoint should be made, now that entries after version `before` have come."""
        return newest // CHECKPOINT_EVERY > before // CHECKPOINT_EVERY

    def sync_checkpoint(self) -> None:
        """Have the newest checkpoint and the hint to it on disk; only then may older entries go."""
        made = [path for path in self.folder.iterdir() if CHECKPOINT.fullmatch(path.name)]
        sync_all([*sorted(made)[-1:], *self.folder.glob("_last_checkpoint")])


def _actions(entry: Path) -> Iterator[dict[str, Any]]:
    for line in entry.read_bytes().splitlines():
        with suppress(ValueError):
            yield json.loads(line)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _age_s(path: Path) -> float:
    return time.time() - _modified(path)
