"""How much metadata capacity: data on MDTs by threshold, inodes, the knee of the curve and its price."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.options import BYTES, WORDS, Asked, analysis_options
from iolens.cli.reference_system import ReferenceSystem
from iolens.errors import UsageError
from iolens.units import parse_bytes, parse_capacity

if TYPE_CHECKING:
    from iolens.analyses.contents.inode_sizes import InodeSizes
    from iolens.models.dom import Method
    from iolens.plans.metadata import Prices

SHOWN_PROBLEMS = 10


@click.command(
    "metadata",
    epilog="""\b
Examples:
  iolens plan metadata --file-sizes sizes.csv --capacity 30PB --dom 64KiB,1MiB
  iolens plan metadata --file-sizes sizes.csv --capacity 22PB..30PB --method both --figure mdt.png
  iolens plan metadata -f scratch --capacity 30PB --cost-mdt 400 --cost-ost 150 --layout-mdt 5+5 --layout-ost 8+2
""",
)
@click.option(
    "--file-sizes",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Histogram of sizes, or a listing of files; default: the newest scan in the store",
)
@click.option("--capacity", required=True, metavar="SIZE", help="Capacity of the new file system, such as 30PB")
@click.option(
    "--dom", type=WORDS, default="64KiB,1MiB", show_default=True, metavar="SIZES", help="DOM thresholds to answer for"
)
@click.option(
    "--method",
    type=click.Choice(["tight", "paper", "both"]),
    default="tight",
    show_default=True,
    help="How the band is found",
)
@click.option("--inode-size", type=BYTES, default="4KiB", show_default=True, metavar="SIZE", help="Room of an inode")
@click.option("--largest-file", type=BYTES, metavar="SIZE", help="Largest file, where the last bin has no upper end")
@click.option("--cost-mdt", type=click.FloatRange(0), metavar="MONEY", help="Cost of a raw TB on MDTs")
@click.option("--cost-ost", type=click.FloatRange(0), metavar="MONEY", help="Cost of a raw TB on OSTs")
@click.option("--layout-mdt", default="5+5", show_default=True, metavar="D+P", help="Data and parity blocks of MDTs")
@click.option("--layout-ost", default="8+2", show_default=True, metavar="D+P", help="Data and parity blocks of OSTs")
@analysis_options
def COMMAND(
    asked: Asked,
    file_sizes: Path | None,
    capacity: str,
    dom: tuple[str, ...],
    method: str,
    inode_size: int,
    largest_file: int | None,
    cost_mdt: float | None,
    cost_ost: float | None,
    layout_mdt: str,
    layout_ost: str,
) -> None:
    """Capacity of the metadata targets: the first bytes of every file (Data-on-MDT) and all inodes.

    Sizes come from a histogram or a listing of the reference system, or from the newest scan in the store. A histogram
    leaves room inside its bins: the answer has a lowest, an average and a highest value.
    """
    from iolens.models.dom import METHODS
    from iolens.plans.inputs import parse_input
    from iolens.plans.metadata import plan_metadata

    size = parse_input("capacity_bytes", capacity, parse_capacity, "option --capacity")
    prices = prices_of(cost_mdt, cost_ost, layout_mdt, layout_ost)
    wanted = thresholds_of(dom)
    with ReferenceSystem.of(asked) as reference:
        sizes = reference_sizes(file_sizes, reference, largest_file)
        usage = reference.usage()
    methods: tuple[Method, ...] = METHODS if method == "both" else tuple(one for one in METHODS if one == method)
    result = plan_metadata(sizes, size, wanted, methods=methods, inode_bytes=inode_size, prices=prices, usage=usage)
    asked.show(result)


def reference_sizes(file_sizes: Path | None, reference: ReferenceSystem, largest: int | None) -> InodeSizes:
    """Inodes by size from a file, or from the store."""
    if file_sizes is None:
        return reference.inode_sizes(largest)
    return sizes_of_file(file_sizes, reference.scope.filesystem, reference.timezone, reference.opening[2], largest)


def sizes_of_file(
    path: Path, filesystem: str | None, timezone: str | None, config: str | None, largest: int | None
) -> InodeSizes:
    """Inodes by size from a histogram, or from any file a source of contents reads; what it refuses is said."""
    from iolens.analyses.contents.inode_sizes import sizes_of_rows
    from iolens.records import Note, Problem

    problems: list[Problem] = []
    rows: list[dict[str, Any]] = []
    for item in _items(path, filesystem, timezone, config):
        if isinstance(item, Problem):
            problems += [] if isinstance(item, Note) else [item]
        else:
            rows += _rows(item)
    for problem in problems[:SHOWN_PROBLEMS]:
        click.echo(f"left out: {problem}", err=True)
    if len(problems) > SHOWN_PROBLEMS:
        click.echo(f"left out: {len(problems) - SHOWN_PROBLEMS} more", err=True)
    return sizes_of_rows(rows, f"file {path}", largest)


def _items(path: Path, filesystem: str | None, timezone: str | None, config: str | None) -> Iterator[object]:
    from iolens.config import load_config
    from iolens.sources import ReadOptions, recognise

    source = recognise(path)
    settings = load_config(config).sources.get(source.name, {})
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    options = ReadOptions(filesystem or path.stem, timezone=timezone or "UTC", at=written, settings=settings)
    for capture in source.captures([path], options):
        yield from capture.items()


def _rows(item: object) -> Iterator[dict[str, Any]]:
    """Rows of `contents` in an item, whichever form it has."""
    from iolens.analyses.contents.scans import TABLE
    from iolens.records import Row, Rows
    from iolens.schema import TABLES
    from iolens.store.rows import columns_to_arrow

    if isinstance(item, Row) and item.table == TABLE:
        yield dict(item.values)
    elif isinstance(item, Rows) and item.table == TABLE:
        yield from columns_to_arrow(TABLES[TABLE], item.columns, item.count).to_pylist()


def thresholds_of(texts: tuple[str, ...]) -> list[int]:
    """DOM thresholds in bytes, each once."""
    try:
        return list(dict.fromkeys(parse_bytes(text) for text in texts))
    except ValueError as error:
        raise UsageError(f"--dom: {error}") from error


def prices_of(mdt: float | None, ost: float | None, layout_mdt: str, layout_ost: str) -> Prices | None:
    """Prices of both kinds of targets, or of neither."""
    from iolens.plans.layouts import parse_layout
    from iolens.plans.metadata import Prices

    layouts = parse_layout(layout_mdt), parse_layout(layout_ost)
    if mdt is None and ost is None:
        return None
    if mdt is None or ost is None:
        raise UsageError("a price needs both --cost-mdt and --cost-ost")
    return Prices(mdt, ost, *layouts)
