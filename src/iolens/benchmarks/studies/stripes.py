"""Stripe layouts of Lustre: set for a new file with `lfs setstripe`, or not applicable where there is no Lustre."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from iolens.benchmarks.device_counters import mounted_kind
from iolens.benchmarks.programs import run_program
from iolens.errors import UsageError
from iolens.units import format_bytes


@dataclass(frozen=True, slots=True)
class FileStripes:
    """How a file is striped; None: as the directory says."""

    count: int | None = None
    size_bytes: int | None = None

    @property
    def is_default(self) -> bool:
        """Whether nothing is asked for."""
        return self.count is None and self.size_bytes is None

    def key(self) -> str:
        """For the name of a point: `/stripes=16x1048576`, nothing where nothing is asked for."""
        if self.is_default:
            return ""
        count, size = ("default" if value is None else str(value) for value in (self.count, self.size_bytes))
        return f"/stripes={count}x{size}"

    def __str__(self) -> str:
        count = "default stripes" if self.count is None else f"{self.count} stripe{'s' if self.count != 1 else ''}"
        return count if self.size_bytes is None else f"{count} of {format_bytes(self.size_bytes)}"


def filesystem_kind(path: Path, root: Path = Path("/")) -> str:
    """`lustre`, `ext4`, `nfs4`, `tmpfs`: what is mounted there."""
    number = path.stat().st_dev
    return mounted_kind(f"{os.major(number)}:{os.minor(number)}", root)


def can_stripe(path: Path, root: Path = Path("/")) -> bool:
    """Whether files there can be striped: Lustre, with its program `lfs`."""
    return filesystem_kind(path, root) == "lustre" and shutil.which("lfs") is not None


def refuse_stripes(path: Path, root: Path = Path("/")) -> None:
    """Say why stripes are not applicable, where they are not."""
    kind = filesystem_kind(path, root)
    if kind != "lustre":
        raise UsageError(f"{path} is {kind}: stripes are not applicable; leave out --stripe-count and --stripe-size")
    if shutil.which("lfs") is None:
        raise UsageError(f"{path} is Lustre, but `lfs` is not on PATH: it sets stripes")


def make_striped(path: Path, striping: FileStripes) -> None:
    """Make an empty file with these stripes; nothing where none are asked for."""
    if striping.is_default:
        return
    program = shutil.which("lfs")
    if program is None:
        raise UsageError("`lfs` is not on PATH: it sets stripes")
    options = ["-c", str(striping.count)] if striping.count is not None else []
    options += ["-S", str(striping.size_bytes)] if striping.size_bytes is not None else []
    run_program([program, "setstripe", *options, str(path)])


def stripe_directory(path: Path, striping: FileStripes) -> None:
    """Files made in the directory from now on have these stripes."""
    make_striped(path, striping)
