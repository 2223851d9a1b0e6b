"""Runs `sacct` itself: all jobs of a cluster from a time on, in UTC, with columns that leave no doubt."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.sources.reading.options import ReadOptions
from iolens.sources.schedulers.sacct_columns import DEFAULT_COLUMNS
from iolens.units import from_epoch_us, parse_duration

TIMEOUT: Final = "10min"
OVERLAP: Final = "1h"  # accounting may come late: slurmctld keeps records while slurmdbd does not answer
FIRST: Final = datetime(1970, 1, 2, tzinfo=UTC)  # to Slurm the beginning of 1970 is no time
_URL: Final = re.compile(r"slurm://(?:([A-Za-z0-9][\w.-]*+))?/?", re.ASCII)
_OWN_FORMATS: Final = ("SLURM_TIME_FORMAT", "SACCT_FORMAT", "SACCT_FEDERATION", "SACCT_LOCAL")
_STDERR_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class SacctQuery:
    """What is asked, of which cluster (None: the one this machine belongs to)."""

    place: str
    cluster: str | None
    since: datetime
    until: datetime | None
    timeout_s: float

    def command(self, program: str) -> list[str]:
        """The arguments; no shell sees them."""
        optional = [f"--clusters={self.cluster}"] if self.cluster else []
        optional += [f"--endtime={_text(self.until)}"] if self.until else []
        return [
            program, "--allusers", "--duplicates", "--parsable2", f"--starttime={_text(self.since)}",
            f"--format={','.join(DEFAULT_COLUMNS)}", *optional,
        ]  # fmt: skip

    def run(self, folder: Path) -> Path:
        """The output in a file below `folder`; InputError says why there is none."""
        program = shutil.which("sacct")
        if program is None:
            raise InputError(self.place, "there is no sacct on PATH", "a machine with the commands of Slurm")
        output, errors = folder / "sacct.txt", folder / "errors.txt"
        with output.open("wb") as stdout, errors.open("wb") as stderr:
            try:
                process = subprocess.Popen(
                    self.command(program),
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    env=_environment(),
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(self.place, f"{program} cannot be run: {error.strerror or error}") from error
            code = self._wait(process)
        if code != 0:
            ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise InputError(self.place, f"sacct {ended}: {_said(errors) or 'it printed no reason'}")
        return output

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            return process.wait(self.timeout_s)
        except subprocess.TimeoutExpired:
            expected = "a larger timeout in [sources.slurm], or a shorter window with --from and --to"
            raise InputError(self.place, f"sacct did not end within {self.timeout_s:g} s", expected) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def query_of(url: str, options: ReadOptions) -> SacctQuery:
    """From `--from` on, else from the last stored job, a little earlier; all jobs where none is stored.

    Jobs that were running when they were stored end later than that: `sacct` lists all that ran from a time on.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise InputError(url, "not an address of Slurm", "slurm:// or slurm://CLUSTER")
    overlap, timeout_s = (
        _duration(options, name, default, url) for name, default in (("overlap", OVERLAP), ("timeout", TIMEOUT))
    )
    since = options.since or _last(match[1], options, overlap)
    return SacctQuery(url, match[1], since, options.until, timeout_s)


def _last(cluster: str | None, options: ReadOptions, overlap_s: float) -> datetime:
    """Without the name of a cluster the one that is furthest behind decides."""
    known = options.last_jobs
    last_us = known.get(cluster) if cluster else min(known.values(), default=None)
    if last_us is None:
        return FIRST
    last = min(from_epoch_us(last_us), datetime.now(UTC))  # a clock that was ahead must not hide jobs
    return max(FIRST, last - timedelta(seconds=overlap_s))


def _duration(options: ReadOptions, name: str, default: str, place: str) -> float:
    try:
        return parse_duration(str(options.settings.get(name, default)))
    except ValueError as error:
        raise InputError(place, f"sources.slurm.{name}: {error}") from None


def _environment() -> dict[str, str]:
    """With UTC as its zone, `sacct` reads and prints times that are never given twice."""
    kept = {name: value for name, value in os.environ.items() if name not in _OWN_FORMATS}
    return {**kept, "TZ": "UTC"}


def _text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _said(errors: Path) -> str:
    with errors.open("rb") as stream:
        lines = stream.read(_STDERR_BYTES).decode("utf-8", "replace").splitlines()
    return "; ".join(line.strip() for line in lines if line.strip())
