"""The sums of one process of a scan: rows of inodes are gathered until they are many, then counted by group.

A group is a project, an owner and a type. Hard-linked inodes are set apart until all of their names may have been met.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from iolens.scan.batch_stat import ROWS
from iolens.scan.findings import Findings
from iolens.scan.inodes import DIRECTORY, IMPOSSIBLE, INODE, TYPES, Inodes, copy_rows, count, group_key, of_key, type_of
from iolens.scan.owners import owner_name
from iolens.scan.rule import WalkRule
from iolens.sources.contents.inode_counts import InodeCounts

ROWS_HELD: Final = 16384


class InodeTally:
    """Inodes counted into the `findings` of the step that is under way."""

    def __init__(self, rule: WalkRule) -> None:
        self.rule = rule
        self.project_names: list[str | None] = [None]
        self._project_codes: dict[str | None, int] = {None: 0}
        self._rows: Inodes = np.empty(ROWS_HELD + 2 * ROWS, INODE)  # used again: memory just asked for is slow
        self._begin()

    def _begin(self) -> None:
        self.findings = Findings(InodeCounts(self.rule.time_us))
        self._held = 0
        self._codes: dict[int, int] = {}  # of groups, by key
        self._widths: tuple[list[int], list[int]] = ([], [])

    def end_step(self) -> Findings:
        """All that was counted since the last step."""
        self._count()
        self.findings.counts.add_widths(*self._widths)
        findings = self.findings
        self._begin()
        return findings

    def project_code(self, project: str | None) -> int:
        """The number that stands for a project in rows."""
        code = self._project_codes.get(project)
        if code is None:
            code = self._project_codes[project] = len(self.project_names)
            self.project_names.append(project)
        return code

    def add_width(self, project: int, uid: int, entries: int) -> None:
        """Count a directory by how many entries it has."""
        codes, widths = self._widths
        codes.append(self._group_code(group_key(project, uid, DIRECTORY)))
        widths.append(entries)

    def add_directories(self, rows: Inodes) -> None:
        """Count directories that were opened."""
        self.findings.names += len(rows)
        self._hold(rows)

    def add_entries(self, rows: Inodes) -> None:
        """Count entries that were no directories when they were listed: one that is now has gone."""
        self.findings.names += len(rows)
        is_directory = type_of(rows["key"]) == DIRECTORY
        if is_directory.any():
            self.findings.vanished += int(is_directory.sum())
            rows = rows[~is_directory]
        is_linked = rows["links"] > 1
        if is_linked.any():
            self._set_apart(rows[is_linked])
            rows = rows[~is_linked]
        self._hold(rows)

    def _hold(self, rows: Inodes) -> None:
        begin, self._held = self._held, self._held + len(rows)
        copy_rows(rows, self._rows[begin : self._held])
        if self._held >= ROWS_HELD:
            self._count()

    def _set_apart(self, rows: Inodes) -> None:
        rows = self._countable(rows)
        if not self.rule.cross_filesystems:
            rows["device"] = 0  # nodes number the same device differently
        self.findings.links.add(rows, self.findings.counts.groups)

    def _count(self) -> None:
        if self._held:
            count(self._countable(self._rows[: self._held]), self.findings.counts)
            self._held = 0

    def _countable(self, rows: Inodes) -> Inodes:
        """Inodes whose type has a name and whose size can be, each with its group's code; others are not readable."""
        rows = self._of_possible_size(rows)
        keys, places, counts = np.unique(rows["key"], return_inverse=True, return_counts=True)
        codes = [self._group_code(key) for key in keys.tolist()]
        rows["code"] = np.array(codes, np.int64)[places]
        if min(codes, default=0) >= 0:
            return rows
        for key, code, inodes in zip(keys.tolist(), codes, counts.tolist(), strict=True):
            if code < 0:
                reason = f"{inodes} inodes of unknown type {type_of(key):#o}"
                self.findings.cannot_read(self.rule.root, reason, inodes)
        return rows[rows["code"] >= 0]

    def _of_possible_size(self, rows: Inodes) -> Inodes:
        """Those whose size and allocation a file system can have; the others are counted as not readable."""
        impossible = (rows["size"] < 0) | (rows["allocated"] == IMPOSSIBLE)
        if not impossible.any():
            return rows
        inodes, size = int(impossible.sum()), int(rows["size"][impossible][0])
        reason = f"{inodes} inodes of an impossible size, such as {size} bytes"
        self.findings.cannot_read(self.rule.root, reason, inodes)
        possible: Inodes = rows[~impossible]
        return possible

    def _group_code(self, key: int) -> int:
        """The code of a group; −1 where its type is none we know."""
        if key not in self._codes:
            project, uid, file_type = of_key(key)
            group = owner_name(uid), self.project_names[project], TYPES.get(file_type, "")
            self._codes[key] = self.findings.counts.code(*group) if file_type in TYPES else -1
        return self._codes[key]
