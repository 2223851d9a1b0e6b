"""Jobs of Slurm: saved output of `sacct -P`, `--parsable` or `--json`, or `sacct` itself."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import numbered_lines, unpacked, unpacked_head
from iolens.sources.reading.captures import FileSource, read_each, refuse_empty
from iolens.sources.reading.json_stream import members
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count_in_json
from iolens.sources.reading.saved_text import supplied_identity
from iolens.sources.schedulers.job_records import JobRecord, JobRows, checked_settings
from iolens.sources.schedulers.sacct_text import (
    DEFAULT_COLUMNS,
    ENDED_STATES,
    WAITING_STATES,
    SacctText,
    header_of,
    is_record,
    job_identity,
)
from iolens.units import from_epoch_us, parse_duration
from iolens.visible_text import counted

# `sacct --json` of Slurm 22.05 to 24.11 -------------------------------------------------------------------------------
# One object with a list of jobs, read one job at a time.
#
# Later versions write a number as `{"set": true, "infinite": false, "number": 5}` and a state as a list of texts.

_LATEST_S = LARGEST // 1_000_000


def json_items(path: Path, options: ReadOptions) -> Iterator[Item]:
    """All jobs of a document, then what was left out on purpose."""
    place = str(path)
    rows = JobRows(place, options, options.settings.get("cluster"))
    steps = 0
    for member in members(path, "jobs"):
        if isinstance(member, Problem):
            yield member
            continue
        try:
            job = _job(member.content)
        except ValueError as error:
            yield Problem(place, member.line, f"{error}: left out")
            continue
        listed = member.content.get("steps")
        steps += len(listed) if isinstance(listed, list) else 0
        yield from rows.add(job, member.line)
    yield from rows.finish()
    if steps:
        yield Note(place, None, f"{counted(steps, 'step')} inside of jobs: only jobs have rows")


def _job(content: Mapping[str, Any]) -> JobRecord:
    job_id, times = number(content.get("job_id")), content.get("time")
    if not job_id or not isinstance(times, dict):
        raise ValueError("an object without job_id and time: not a job of `sacct --json`")
    state = _state(content.get("state"))
    start, end, submit = (number(times.get(name)) or None for name in ("start", "end", "submission"))
    if max(start or 0, end or 0, submit or 0) > _LATEST_S:
        raise ValueError(f"job {job_id}: a time that cannot be")
    node_list = _node_list(content.get("nodes"))
    elapsed = number(times.get("elapsed"))
    has_started = state not in WAITING_STATES and (node_list is not None or bool(elapsed))
    ended = state in ENDED_STATES if state is not None else end is not None
    association = _section(content.get("association"))
    allocated = _allocated(content)
    nodes = number(content.get("allocation_nodes"))
    heterogeneous = _section(content.get("het"))
    whole_id = number(heterogeneous.get("job_id"))
    return JobRecord(
        str(whole_id or job_id),
        start * 1_000_000 if start and has_started else None,
        end * 1_000_000 if end and ended else None,
        ended,
        elapsed,
        submit * 1_000_000 if submit else None,
        {
            "user": _text(content.get("user")) or _text(association.get("user")),
            "project": _text(content.get("account")) or _text(association.get("account")),
            "name": _text(content.get("name")),
            "cluster": _text(content.get("cluster")) or _text(association.get("cluster")),
            "state": state,
            "node_list": node_list,
        },
        nodes if nodes is not None else allocated.get("node"),
        allocated.get("cpu"),
        number(heterogeneous.get("job_offset")) or 0 if whole_id else None,
    )


def number(value: object) -> int | None:
    """A whole number, plain or in the later form; None where it is not set, infinite, or something else."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") is True and value.get("infinite") is not True else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return count_in_json(value)


def _state(value: object) -> str | None:
    """`{"current": "COMPLETED"}`, or a list: the first that says whether it has ended, or the first at all."""
    current = _section(value).get("current", value)
    listed = current if isinstance(current, list) else [current]
    texts = [text for text in listed if isinstance(text, str) and text]
    return next((text for text in texts if text in ENDED_STATES), texts[0] if texts else None)


def _node_list(value: object) -> str | None:
    if isinstance(value, list):
        value = ",".join(item for item in value if isinstance(item, str))
    text = _text(value)
    return None if text is None or text.lower() == "none assigned" else text


def _allocated(content: Mapping[str, Any]) -> dict[str, int | None]:
    listed = _section(content.get("tres")).get("allocated")
    resources = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return {str(item.get("type")): number(item.get("count")) for item in resources}


def _section(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


# Runs `sacct` itself --------------------------------------------------------------------------------------------------
# All jobs of a cluster from a time on, in UTC, with columns that leave no doubt.

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
        optional += [f"--endtime={_sacct_text(self.until)}"] if self.until else []
        return [
            program, "--allusers", "--duplicates", "--parsable2", f"--starttime={_sacct_text(self.since)}",
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


def _sacct_text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _said(errors: Path) -> str:
    with errors.open("rb") as stream:
        lines = stream.read(_STDERR_BYTES).decode("utf-8", "replace").splitlines()
    return "; ".join(line.strip() for line in lines if line.strip())


# Jobs of Slurm --------------------------------------------------------------------------------------------------------
# Saved output of `sacct -P`, `--parsable` or `--json`, whatever its columns.
#
# `sacct` prints local times without a zone, so the zone must be stated; JSON has seconds since 1970.

SETTINGS: Final = {"columns": list, "cluster": str, "timezone": str, "delimiter": str, "timeout": str, "overlap": str}
_JOBS: Final = re.compile(rb'"jobs"\s*+:\s*+\[')
_OF_SACCT: Final = (b'"allocation_nodes"', b"openapi/dbv0", b'"sacct"', b"openapi/slurmdbd", b"slurmdbd/")
_LINES: Final = 20  # what a heading may stand behind


class Slurm(FileSource):
    """Saved output of `sacct`."""

    name = "slurm"
    summary = "jobs of Slurm: saved output of `sacct -P` or `sacct --json`, plain or gzip; slurm:// runs sacct"
    schemes = ("slurm",)
    continues = True

    def recognises(self, path: Path, head: bytes) -> bool:
        """A heading or a record of `sacct` between bars, or the JSON of it."""
        text = unpacked(head)
        if is_json(text):
            return _JOBS.search(text) is not None and any(mark in text for mark in _OF_SACCT)
        lines = text[: 1 << 16].decode("utf-8", "replace").splitlines()[:_LINES]
        first = next((line for line in lines if line.count("|") > 2), "").split("|")
        return header_of(first) is not None or (len(first) > 3 and is_record(first))

    def open(self, path: Path, options: ReadOptions) -> SavedSacct:
        """The file, if it can be read and the settings are right."""
        refuse_empty(path, "output of `sacct -P` or `sacct --json`")
        checked_settings(options.settings, self.name, SETTINGS, str(path))
        identity = job_identity(path, options, "columns", "cluster", "delimiter")
        return SavedSacct(path, options, identity)

    def url_captures(self, urls: Sequence[str], options: ReadOptions) -> Iterator[Capture]:
        """What `sacct` prints now, of `slurm://` or `slurm://CLUSTER`; the same output again is the same capture."""
        runs, refused = read_each(urls, partial(self._run, options=options))
        yield from refused
        for run in runs:
            yield Capture(run.place, run.identity, run.items)

    def _run(self, url: str, options: ReadOptions) -> SavedSacct:
        checked_settings(options.settings, self.name, SETTINGS, url)
        query = query_of(url, options)
        folder = Path(tempfile.mkdtemp(prefix="iolens-sacct-"))
        try:
            path = query.run(folder)
            own = {name: value for name, value in options.settings.items() if name == "cluster"}
            read = ReadOptions(filesystem=options.filesystem, timezone="UTC", settings=own)
            run = SavedSacct(path, read, supplied_identity(path, filesystem=options.filesystem, **own), url)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(run, shutil.rmtree, folder, ignore_errors=True)  # the store may read it again until then
        return run


SOURCE: Final = Slurm()


@dataclass(frozen=True)
class SavedSacct:
    """One output of `sacct` in a file; `place` is what messages call it, if not by its path."""

    path: Path
    options: ReadOptions
    identity: str
    place: str = ""

    def items(self) -> Iterator[Item]:
        """Its jobs."""
        if is_json(unpacked_head(self.path)):
            return within(json_items(self.path, self.options), self.options)
        return within(
            SacctText(self.place or str(self.path), self.options).items(numbered_lines(self.path)), self.options
        )


def is_json(head: bytes) -> bool:
    """Whether a text begins as an object does."""
    return head.lstrip().startswith(b"{")
