"""A metadata plan: sizes of inodes from a file, or from the newest scan of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from iolens.analyses.contents.scans import TABLE, InodeSizes, sizes_of_rows
from iolens.api.plans.making import PlanOptions
from iolens.api.plans.reference_system import ReferenceSystem
from iolens.models.dom import METHODS, Method
from iolens.plans.cases import Input, parse_input
from iolens.plans.metadata import MetadataPlan, dom_thresholds, plan_metadata, prices_of
from iolens.records import Note, Problem, Row, Rows
from iolens.schema import TABLES
from iolens.sources import ReadOptions, recognise
from iolens.store.rows import columns_to_arrow
from iolens.units import parse_capacity

SHOWN_PROBLEMS: Final = 10
BOTH: Final = "both"  # methods


def make(options: PlanOptions, reference_of: Callable[..., ReferenceSystem]) -> MetadataPlan:
    """The plan that the options ask for."""
    size = given_capacity(options)
    assert size is not None
    layouts = options["layout_mdt"], options["layout_ost"]
    prices = prices_of(options["cost_mdt"], options["cost_ost"], *layouts)
    thresholds = dom_thresholds(options.words("dom"))
    reference = reference_of()
    sizes = reference_sizes(options, reference)
    methods: tuple[Method, ...] = tuple(known for known in METHODS if options["method"] in (known, BOTH))
    return plan_metadata(
        sizes,
        size,
        thresholds,
        methods=methods,
        inode_bytes=options["inode_size"],
        prices=prices,
        usage=reference.usage(),
    )


def given_capacity(options: PlanOptions) -> Input | None:
    """The capacity of the new system, where it is given."""
    text = options.text("capacity", "B")
    return None if text is None else parse_input("capacity_bytes", text, parse_capacity, options.origin("capacity"))


def reference_sizes(options: PlanOptions, reference: ReferenceSystem) -> InodeSizes:
    """Inodes by size from a file, or from the store."""
    path, largest = options["file_sizes"], options["largest_file"]
    return reference.inode_sizes(largest) if path is None else _sizes_of_file(path, reference, largest)


def _sizes_of_file(path: Path, reference: ReferenceSystem, largest: int | None) -> InodeSizes:
    """Inodes by size from a histogram, or from any file a source of contents reads; what it refuses is said."""
    problems: list[Problem] = []
    rows: list[dict[str, Any]] = []
    for item in _items(path, reference):
        if isinstance(item, Problem):
            problems += [] if isinstance(item, Note) else [item]
        else:
            rows += _rows(item)
    for problem in problems[:SHOWN_PROBLEMS]:
        reference.listener.say(f"left out: {problem}")
    if len(problems) > SHOWN_PROBLEMS:
        reference.listener.say(f"left out: {len(problems) - SHOWN_PROBLEMS} more")
    return sizes_of_rows(rows, f"file {path}", largest)


def _items(path: Path, reference: ReferenceSystem) -> Iterator[object]:
    source = recognise(path)
    settings = reference.access.config().sources.get(source.name, {})
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    filesystem, zone = reference.scope.filesystem or path.stem, reference.timezone or "UTC"
    for capture in source.captures([path], ReadOptions(filesystem, timezone=zone, at=written, settings=settings)):
        yield from capture.items()


def _rows(item: object) -> Iterator[dict[str, Any]]:
    """Rows of `contents` in an item, whichever form it has."""
    if isinstance(item, Row) and item.table == TABLE:
        yield dict(item.values)
    elif isinstance(item, Rows) and item.table == TABLE:
        yield from columns_to_arrow(TABLES[TABLE], item.columns, item.count).to_pylist()
