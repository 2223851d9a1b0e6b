"""Searches a finished copy for the names that it must not have: in values, statistics, log entries and names of files.

Values are searched decoded, whatever compression their pages have; so are the extremes and the metadata in footers of
Parquet files, and every string of Delta's log. A name counts where letters and digits around it end: `ann` is in
`/home/ann/x` and not in `channel`. A name that is all digits (a job's number) counts where a value of a column with
pseudonyms begins with it: among numbers it would be anywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from iolens.api.anonymize.pseudonyms import PREFIXES, TREATMENTS, WITHHELD_TEXT, Treatment
from iolens.schema import TABLES
from iolens.sources import source_names
from iolens.store.data_files import ROWS_PER_GROUP
from iolens.store.store import RESOLUTIONS

SHORTEST: Final = 3  # characters of a name that is searched for
MOST_LEAKS: Final = 100  # that are listed
_TOKEN: Final = re.compile(r"[^\W_]+")
_IDENTITY: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{64}\b")
_MADE_HERE: Final = re.compile(  # what Delta and the store make up: identities, checksums, times and versions
    rf"{_IDENTITY.pattern}|\d{{4}}-\d\d-\d\d(?:[T ][0-9:.]+(?:Z|[+-]\d\d:\d\d)?)?|\b\d{{20}}\b"
)
_DELTA_WORDS: Final = (
    "add remove txn commitInfo protocol metaData appId version lastUpdated path partitionValues size modificationTime"
    " dataChange stats numRecords minValues maxValues nullCount timestamp operation operationParameters WRITE Append"
    " CREATE TABLE Ignore mode engineInfo clientVersion delta rs iolens iolensActions partitionBy minReaderVersion"
    " minWriterVersion schemaString partitionColumns createdTime configuration dataSkippingNumIndexedCols format"
    " provider parquet options fields struct nullable metadata type string long double boolean date name id"
    " description zstd part delta_log json store schema batches_version batches_entry_sha256 sha256 location"
    " operationMetrics isBlindAppend isolationLevel Serializable anonymize arrow cpp ARROW none Overwrite"
)
_SCHEDULER_WORDS: Final = (
    "BOOT_FAIL CANCELLED COMPLETED COMPLETING CONFIGURING DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PENDING PREEMPTED"
    " RUNNING REQUEUED RESIZING REVOKED SUSPENDED TIMEOUT ENDED EXITED COMPLETE batch extern interactive"
)
_COMMON_NAMES: Final = (Treatment.PATH, Treatment.APPLICATION)  # directories and programs are often called by words


class Leak(NamedTuple):
    """A replaced name that the copy has, and where."""

    name: str
    place: str


@cache
def ordinary_words() -> frozenset[str]:
    """Words that any store has: of tables, columns and their descriptions, sources, Delta's log and schedulers."""
    texts = [_DELTA_WORDS, _SCHEDULER_WORDS, WITHHELD_TEXT, *RESOLUTIONS, *PREFIXES.values(), *source_names()]
    for table in TABLES.values():
        texts += [table.name, table.doc, *(f"{column.name} {column.doc}" for column in table.columns)]
    words = {word.strip(".,;:()`'…") for text in texts for word in text.split()}
    return frozenset(words | {token for text in texts for token in _TOKEN.findall(text)})


class NameSearch:
    """The search for names: what it came upon is in `leaks`, and in `remaining` what a kept column may have."""

    def __init__(self, replaced: Mapping[str, Treatment]) -> None:
        self.leaks: list[Leak] = []
        self.remaining: list[Leak] = []
        self.ordinary: list[str] = []  # words and dates, which any store has
        self._treatments = replaced
        self._numbers: set[str] = set()
        self._by_token: dict[str, list[str]] = {}  # names by their longest token, or the identity that they have
        self._others: list[str] = []  # names without letters and digits
        for name in replaced:
            if len(name) >= SHORTEST and name.strip():
                self._add(name)

    def _add(self, name: str) -> None:
        tokens = _TOKEN.findall(_MADE_HERE.sub(" ", name))
        made_up = _IDENTITY.search(name)
        if name in ordinary_words() or (not tokens and not made_up and _MADE_HERE.search(name)):
            self.ordinary.append(name)
        elif name.isdecimal():
            self._numbers.add(name)
        elif made_up or tokens:
            self._by_token.setdefault(made_up[0] if made_up else max(tokens, key=len), []).append(name)
        else:
            self._others.append(name)

    def search(self, folder: Path, step: Callable[[str], None] = lambda label: None) -> None:
        """Every file below a folder, and its name."""
        for path in sorted(folder.rglob("*")):
            place = str(path.relative_to(folder))
            self._look(place, f"name of {place}")
            if path.is_file():
                for text, where, treatment in _texts(path, place):
                    self._look(text, where, treatment)
                step(f"searched {place}")

    def names_in(self, text: str, treatment: Treatment | None = None) -> Iterator[str]:
        """Replaced names that a text has; `treatment` is that of its column, None elsewhere, where numbers count."""
        number = None if treatment in (None, Treatment.KEPT) else re.match(r"[0-9]+", text)
        if number and number[0] in self._numbers:
            yield number[0]
        seen: set[str] = set()
        for token in (*_IDENTITY.findall(text), *_TOKEN.findall(_MADE_HERE.sub(" ", text))):
            for name in self._by_token.get(token, ()):
                if name not in seen and _stands_in(name, text):
                    seen.add(name)
                    yield name
        yield from (name for name in self._others if name in text)

    def _look(self, text: str, place: str, treatment: Treatment | None = None) -> None:
        for name in self.names_in(text, treatment):
            is_common = treatment is Treatment.KEPT and self._treatments[name] in _COMMON_NAMES
            noted = self.remaining if is_common else self.leaks
            if len(noted) < MOST_LEAKS and (leak := Leak(name, place)) not in noted:
                noted.append(leak)


def _stands_in(name: str, text: str) -> bool:
    """Whether a text has a name by itself: not within a longer word."""
    begin = text.find(name)
    while begin >= 0:
        end = begin + len(name)
        is_apart_before = begin == 0 or not (name[0].isalnum() and text[begin - 1].isalnum())
        if is_apart_before and (end == len(text) or not (name[-1].isalnum() and text[end].isalnum())):
            return True
        begin = text.find(name, begin + 1)
    return False


def _texts(path: Path, place: str) -> Iterator[tuple[str, str, Treatment | None]]:
    """Every text of a file, where it is, and the treatment of the column that it is of."""
    treatments = TREATMENTS.get(next((name for name in place.split("/") if name in TREATMENTS), ""), {})
    if path.suffix != ".parquet":
        for line in path.read_text("utf-8", "surrogateescape").splitlines():
            for text, key in _strings_of(line):
                yield text, place, treatments.get(key)
        return
    file = pq.ParquetFile(path)
    for text, key in _footer_texts(file.metadata):
        yield text, f"footer of {place}", treatments.get(key)
    for batch in file.iter_batches(ROWS_PER_GROUP):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            for text in _column_texts(column):
                yield text, f"{place}, column {name}", treatments.get(name)


def _column_texts(column: pa.Array) -> Iterator[str]:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        yield from (value for value in pc.unique(column).to_pylist() if value is not None)
    elif pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        yield from (text for text, _ in _strings_in(column.to_pylist()))


def _footer_texts(metadata: pq.FileMetaData) -> Iterator[tuple[str, str]]:
    """Texts of the footer, with the column of extremes; the schema of Arrow says in another form what columns say."""
    yield metadata.created_by, ""
    for key, value in (metadata.metadata or {}).items():
        if key != b"ARROW:schema":
            yield from ((text.decode("utf-8", "replace"), "") for text in (key, value))
    for group in range(metadata.num_row_groups):
        for position in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(position)
            yield chunk.path_in_schema, ""
            stated = chunk.statistics
            if stated is not None and stated.has_min_max and isinstance(stated.min, str):
                yield from ((text, chunk.path_in_schema) for text in (stated.min, stated.max))


def _strings_of(text: str, key: str = "") -> Iterator[tuple[str, str]]:
    """The strings of a line of JSON, also of JSON inside its strings, with their keys; another line as it is."""
    try:
        content = json.loads(text)
    except ValueError:
        yield text, key
        return
    yield from _strings_in(content, key)


def _strings_in(content: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(content, str):
        yield from _strings_of(content, key) if content.startswith(("{", "[")) else ((content, key),)
    elif isinstance(content, bytes):
        yield content.decode("utf-8", "replace"), key
    elif isinstance(content, dict):
        for name, value in content.items():
            yield str(name), ""
            yield from _strings_in(value, str(name))
    elif isinstance(content, list | tuple):
        for item in content:
            yield from _strings_in(item, key)
