"""What became of the segments of each agent, counted by the server and by the writer, each in a file of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from iolens.agent.sampling.private_files import replace_private
from iolens.sources.reading.bounded_input import opened_itself

UPLOADS_FILE: Final = "uploads.json"
WRITER_FILE: Final = "writer.json"
LARGEST_FILE: Final = 64 << 20
_NOT_READ: Final = (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


@dataclass(slots=True)
class UploadCounts:
    """What one agent sent: when last, and how much since the files of the hub were made."""

    last_seen_us: int = 0
    segments: int = 0
    bytes: int = 0
    refused: int = 0
    reason: str = ""  # of the last refusal


@dataclass(slots=True)
class StoredCounts:
    """What the writer did with the segments of one agent."""

    stored: int = 0
    late: int = 0
    bad: int = 0
    taken_over: int = 0  # targets that another server served before
    dropped: int = 0  # segments that were put aside, and went because there were too many


@dataclass(slots=True)
class WriterRecord:
    """What the writer says of itself after each batch; counts are since the files of the hub were made."""

    pid: int = 0
    started_us: int = 0
    time_us: int = 0  # when this was written
    commit_us: int | None = None  # when a batch was last stored
    batches: int = 0
    segments: int = 0
    samples: int = 0
    rows: int = 0
    cpu_s: float = 0.0  # of this process
    rss_bytes: int = 0
    trouble: str = ""
    agents: dict[str, StoredCounts] = field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Replace the file."""
        replace_private(directory / WRITER_FILE, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, directory: Path) -> WriterRecord:
        """The file; an empty record where it is missing or damaged."""
        try:
            plain = _plain(directory / WRITER_FILE)
            agents = {str(host): _counts(StoredCounts, item) for host, item in plain.pop("agents", {}).items()}
            return cls(**_known(cls, plain), agents=agents)
        except _NOT_READ:
            return cls()


def write_uploads(directory: Path, counts: Mapping[str, UploadCounts]) -> None:
    """Replace the file of the server's counts."""
    replace_private(directory / UPLOADS_FILE, json.dumps({host: asdict(own) for host, own in counts.items()}).encode())


def read_uploads(directory: Path) -> dict[str, UploadCounts]:
    """The server's counts; none where the file is missing or damaged."""
    try:
        return {str(host): _counts(UploadCounts, item) for host, item in _plain(directory / UPLOADS_FILE).items()}
    except _NOT_READ:
        return {}


def _plain(path: Path) -> dict[str, Any]:
    with opened_itself(path) as stream:
        plain: dict[str, Any] = json.loads(stream.read(LARGEST_FILE))
    return plain


def _counts(kind: Any, plain: Mapping[str, Any]) -> Any:
    return kind(**_known(kind, plain))


def _known(kind: Any, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that this version has too."""
    names = {item.name for item in fields(kind)}
    return {name: value for name, value in plain.items() if name in names}
