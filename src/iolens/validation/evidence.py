"""The public data that studies rest on, loaded as a user would load them: by the sources, into a store of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Concatenate, ParamSpec, TypeVar

from iolens.errors import InputError
from iolens.sources import ReadOptions, get_source
from iolens.store.selection import StoreSelection
from iolens.store.store import Store

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A file of a public data set: where it lies below the folder of data, and where it was published."""

    path: str
    origin: str


@dataclass(slots=True)
class PublicData:
    """A folder of public data, and a temporary store of what was needed of them so far.

    Each file is loaded, and each question asked, when first needed, and once.
    """

    folder: Path | None
    answers: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)  # lines not understood, by file
    _scratch: TemporaryDirectory[str] | None = None
    _store: Store | None = None

    def __enter__(self) -> PublicData:
        self._scratch = TemporaryDirectory(prefix="iolens-validate-")
        self._store = Store(Path(self._scratch.name) / "store")
        return self

    def __exit__(self, *_: object) -> None:
        assert self._scratch is not None
        self.store.close()
        self._scratch.cleanup()

    @property
    def store(self) -> Store:
        """The temporary store."""
        assert self._store is not None, "evidence is used as a context"
        return self._store

    def has(self, file: PublicFile) -> bool:
        """Whether that file is here."""
        return self.folder is not None and (self.folder / file.path).is_file()

    def path(self, file: PublicFile) -> Path:
        """Where it is."""
        if self.folder is None or not self.has(file):
            raise InputError(file.path, "no such file", f"the one published at {file.origin}")
        return self.folder / file.path

    def digest(self, file: PublicFile) -> str | None:
        """SHA-256 of its content; None where it is not here."""
        return hashlib.sha256(self.path(file).read_bytes()).hexdigest() if self.has(file) else None

    def load(self, source: str, file: PublicFile, options: ReadOptions) -> None:
        """Its rows into the store; a file of which nothing can be read is an error."""
        if file.path in self.refused:
            return
        tally = self.store.ingest(get_source(source).captures([self.path(file)], options), source)
        if tally.problems and not tally.rows:
            raise InputError(file.path, str(tally.problems[0]))
        self.refused[file.path] = tally.refused

    def select(self, filesystem: str, since: datetime | None = None, until: datetime | None = None) -> StoreSelection:
        """What was loaded of one file system."""
        return self.store.select(filesystem, since=since, until=until)


@dataclass(frozen=True, slots=True)
class AnsweredNumber:
    """One number of an answer: the attribute at `path`, such as `waf.max`, in units of `unit`."""

    answer: Callable[[PublicData], Any]
    path: str
    unit: float = 1.0
    file: PublicFile | None = None  # where it should be reported

    def __call__(self, evidence: PublicData) -> float:
        """The number; an error where the data do not tell it."""
        number = self.answer(evidence)
        for name in self.path.split("."):
            number = None if number is None else getattr(number, name)
        return known(number, self.file) / self.unit


def known(number: float | None, file: PublicFile | None) -> float:
    """A number that the data tell; an error where they do not."""
    if number is None:
        raise InputError(file.path if file else "public data", "the number is not in these data")
    return float(number)


def remembered(
    question: Callable[Concatenate[PublicData, Arguments], Answer],
) -> Callable[Concatenate[PublicData, Arguments], Answer]:
    """Ask the same question of the same evidence once; further arguments must be hashable."""

    @wraps(question)
    def ask(evidence: PublicData, /, *args: Arguments.args, **options: Arguments.kwargs) -> Answer:
        key = (question.__module__, question.__qualname__, args, tuple(sorted(options.items())))
        if key not in evidence.answers:
            evidence.answers[key] = question(evidence, *args, **options)
        answer: Answer = evidence.answers[key]
        return answer

    return ask
