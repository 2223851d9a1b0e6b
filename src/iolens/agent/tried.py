"""What was tried for `iolens doctor`: files and mounts that are readable, or a reason why not."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.sources.lustre.lustre_client_proc import FAMILIES, PLACES
from iolens.sources.lustre.parameters import LLITE, MDC, OSC, TIMED_LEAVES, Parameter, client_family, page_size_of_node

# Files that were tried for `iolens doctor` ----------------------------------------------------------------------------
# Each is readable, or there is a reason why not.

READABLE: Final = "readable"
DEBUGFS: Final = "sys/kernel/debug"


@dataclass(slots=True)
class TargetFinding:
    """One target or mount: for each thing it should offer, "readable" or why not."""

    target: str
    kind: str  # ost, mdt or client
    files: dict[str, str] = field(default_factory=dict)

    @property
    def readable(self) -> list[str]:
        """What can be sampled."""
        return [name for name, state in self.files.items() if state == READABLE]


def tried(path: Path) -> str:
    """Whether the file can be read."""
    try:
        with path.open("rb") as stream:
            stream.read(4096)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return READABLE


def names_of(directory: Path) -> list[str]:
    """Names in a directory; none where it cannot be read."""
    try:
        return sorted(path.name for path in directory.iterdir())
    except OSError:
        return []


def why_absent(root: Path, leaf: str) -> str:
    """What may be the reason that there is no such file."""
    hidden = root / DEBUGFS
    if leaf in TIMED_LEAVES and hidden.is_dir() and not os.access(hidden, os.R_OK | os.X_OK):
        return f"not found; {hidden} is closed to this user"
    if leaf == "job_stats":
        return "not found: this version has none, or job statistics are off"
    return "not found"


# What can be read of the file systems that are mounted on this machine, for `iolens doctor` ---------------------------

# What every version has; without the first nothing is known of a mount.
EXPECTED: Final = ((LLITE, "stats"), (OSC, "stats"), (OSC, "rpc_stats"), (MDC, "md_stats"))
OFF: Final = b"disabled"


@dataclass(slots=True)
class TriedMount:
    """One mount: its devices by family, and the files of each that were tried."""

    filesystem: str
    devices: dict[str, set[str]] = field(default_factory=dict)
    states: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)  # by device, as the best of all places
    sizes_are_counted: bool | None = None  # None: there is no extents_stats

    def finding(self, root: Path, name: str) -> TargetFinding:
        """Readable where the files of all devices are."""
        files = {f"{family}.{leaf}": self._state(root, family, leaf) for family, leaf in EXPECTED}
        return TargetFinding(name, "client", files)

    def _state(self, root: Path, family: str, leaf: str) -> str:
        states = self.states.get((family, leaf), {})
        devices = self.devices.get(family, set())
        failed = [device for device in sorted(devices) if states.get(device) != READABLE]
        if devices and not failed:
            return READABLE
        reason = states.get(failed[0]) if failed else None
        return f"{len(failed)} of {len(devices)}: {reason or why_absent(root, leaf)}"

    def summary(self) -> str:
        """`scratch: 248 OSTs, 4 MDTs, call sizes are counted`."""
        counted = {True: "call sizes are counted", False: "call sizes are not counted: extents_stats is off"}
        osts, mdts = (len(self.devices.get(family, ())) for family in (OSC, MDC))
        more = f", {counted[self.sizes_are_counted]}" if self.sizes_are_counted is not None else ""
        return f"{self.filesystem}: {osts} OSTs, {mdts} MDTs{more}"


def tried_mounts(root: Path) -> dict[str, TriedMount]:
    """All mounts below a root, by name of the mount; a directory shows one even where no file can be read."""
    mounts: dict[str, TriedMount] = {}
    for place in PLACES:
        for family in FAMILIES:
            for device in names_of(root / place / family):
                if client_family(device) == family:
                    _look(mounts, root / place / family / device, family)
    return dict(sorted(mounts.items()))


def page_size_words(root: Path) -> str:
    """What is known of the node's page size, which RPCs are counted in."""
    size = page_size_of_node(root)
    if size is None:
        return "page size not known here: by the bytes of osc.*.stats, or page_size of [sources.lustre-client-proc]"
    return f"page size {size.bytes} bytes ({size.origin})"


def _look(mounts: dict[str, TriedMount], directory: Path, family: str) -> None:
    of = Parameter(family, directory.name, "stats").mount
    mount = mounts.setdefault(f"{of.filesystem}-{of.instance}", TriedMount(of.filesystem))
    mount.devices.setdefault(family, set()).add(directory.name)
    for _, leaf in (expected for expected in EXPECTED if expected[0] == family):
        states = mount.states.setdefault((family, leaf), {})
        if (directory / leaf).exists() and states.get(directory.name) != READABLE:
            states[directory.name] = tried(directory / leaf)
    if family == LLITE and tried(directory / "extents_stats") == READABLE:
        mount.sizes_are_counted = not (directory / "extents_stats").read_bytes().startswith(OFF)
