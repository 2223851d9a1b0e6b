"""Bandwidth of a study for people: every case with the best of its repeats, and the comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.units import MIB, format_bytes
from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.bench_bandwidth import BandwidthLine, StudyBandwidth
    from iolens.views.render.tables import Row, TableColumn, TableView

FILES: Final = {True: "per process", False: "shared", None: None}


def tables(result: StudyBandwidth) -> list[TableView]:
    """Cases, improvements, files, places, and what the numbers rest on."""
    views = [cases(result), improvements(result), files(result), differences(result), basis(result)]
    return [table for table in views if table is not None]


def cases(result: StudyBandwidth) -> TableView:
    """Every case; columns that say the same of all are left to the basis."""
    columns: tuple[TableColumn, ...] = (
        t.text("place", "Place"), t.text("direction", "Direction"), t.text("files", "Files"),
        t.count("tasks", "Tasks"), t.size("transfer_bytes", "Block"), t.size("aggregate_bytes", "Size"),
        t.count("stripe_count", "Stripes"), t.size("stripe_bytes", "Stripe size"),
        t.number("best_mib_per_s", "Best", "MiB/s", ",.0f"), t.number("median_mib_per_s", "Median", "MiB/s", ",.0f"),
        t.number("mean_mib_per_s", "Mean", "MiB/s", ",.0f"), t.percent("spread_pct", "Spread"), t.count("runs", "Runs"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            line.place, line.direction, FILES[line.file_per_process], line.tasks, line.transfer_bytes,
            line.aggregate_bytes, line.stripe_count, line.stripe_bytes, line.best_bytes_per_s / MIB,
            line.median_bytes_per_s / MIB, line.mean_bytes_per_s / MIB, line.spread_pct, line.runs,
        )
        for line in result.cases
    ]  # fmt: skip
    columns, rows = t.telling(columns, rows, {"tasks": (None, 1), "files": (None, "per process")})
    note = "Mean: geometric, over the runs. Spread: from the slowest run to the best, of the median."
    keep = ("direction", "transfer_bytes", "best_mib_per_s")
    return t.TableView("Bandwidth", columns, rows, note, warnings=tuple(result.warnings), name="cases", keep=keep)


def improvements(result: StudyBandwidth) -> TableView | None:
    """Several OSTs against one (Fig. 17)."""
    columns = (
        t.text("place", "Place"), t.text("direction", "Direction"), t.size("transfer_bytes", "Block"),
        t.count("stripe_count", "Stripes"), t.size("stripe_bytes", "Best stripe size"),
        t.number("mib_per_s", "Best", "MiB/s", ",.0f"), t.number("one_ost_mib_per_s", "One OST", "MiB/s", ",.0f"),
        t.number("improvement_pct", "Improvement", "%", "+.0f"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            line.place, line.direction, line.transfer_bytes, line.stripe_count, line.stripe_bytes,
            line.bytes_per_s / MIB, line.one_ost_bytes_per_s / MIB, line.improvement_pct,
        )
        for line in result.improvements
    ]  # fmt: skip
    return t.TableView("Several OSTs against one", columns, rows, name="improvements") if rows else None


def files(result: StudyBandwidth) -> TableView | None:
    """File per process against one shared file (Fig. 18)."""
    columns = (
        t.text("place", "Place"), t.text("direction", "Direction"), t.count("tasks", "Tasks"),
        t.size("transfer_bytes", "Block"), t.size("aggregate_bytes", "Size"),
        t.number("per_process_mib_per_s", "Per process", "MiB/s", ",.0f"),
        t.number("shared_mib_per_s", "Shared", "MiB/s", ",.0f"), t.number("factor", "Factor", "", ".2f"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            line.place, line.direction, line.tasks, line.transfer_bytes, line.aggregate_bytes,
            line.per_process_bytes_per_s / MIB, line.shared_bytes_per_s / MIB, line.factor,
        )
        for line in result.files
    ]  # fmt: skip
    if not rows:
        return None
    return t.TableView("File per process against one shared file", columns, rows, files_words(result), name="files")


def files_words(result: StudyBandwidth) -> str:
    """`Writes: file per process is 0.9 to 1.3 times as fast.`"""
    words = []
    for direction in ("write", "read"):
        factors = [line.factor for line in result.files if line.direction == direction]
        if factors:
            low, high = f"{min(factors):.2f}", f"{max(factors):.2f}"
            span = low if low == high else f"{low} to {high}"
            words.append(f"{direction.capitalize()}s: file per process is {span} times as fast as one shared file.")
    return " ".join(words)


def differences(result: StudyBandwidth) -> TableView | None:
    """Places against the first (Fig. 13)."""
    columns = (
        t.text("direction", "Direction"), t.text("place", "Place"), t.text("reference", "Against"),
        t.count("cases", "Cases"), t.number("median_pct", "Median", "%", "+.0f"),
        t.number("least_pct", "Least", "%", "+.0f"), t.number("most_pct", "Most", "%", "+.0f"),
    )  # fmt: skip
    rows: list[Row] = [
        (line.direction, line.place, line.reference, line.cases, line.median_pct, line.least_pct, line.most_pct)
        for line in result.differences
    ]
    return t.TableView("Places side by side", columns, rows, name="places") if rows else None


def basis(result: StudyBandwidth) -> TableView:
    """What the numbers rest on."""
    columns = (
        t.text("study", "Study"), t.text("hosts", "Machines"), t.count("runs", "Runs"),
        t.size("memory_bytes", "Memory of the machine"), t.text("conditions", "Conditions"),
    )  # fmt: skip
    row = (result.study, ", ".join(result.hosts) or None, result.runs, result.memory_bytes, conditions(result) or None)
    return t.TableView("Basis", columns, [row], sideways=True, name="basis")


def conditions(result: StudyBandwidth) -> str:
    """What all cases of a direction have in common: fsync, page cache, interface."""
    words = []
    for direction in ("write", "read"):
        mine = [line for line in result.cases if line.direction == direction]
        if mine:
            words.append(f"{direction}s: {', '.join(_condition(mine))}")
    return "; ".join(words)


def _condition(lines: list[BandwidthLine]) -> list[str]:
    words = []
    for name, texts in (
        ("direct", {True: "O_DIRECT", False: "buffered"}),
        ("fsync", {True: "fsync counted", False: "fsync not counted"}),
        ("page_cache", {"dropped": "page cache dropped before", "warm": "just written, may be in memory"}),
    ):
        values = {getattr(line, name) for line in lines}
        words += [texts[value] for value in values if value in texts] if len(values) == 1 else []
    return words or ["differing conditions"]


def headline(result: StudyBandwidth) -> str:
    """`Best write 380 MiB/s in blocks of 1 MiB.`"""
    words = []
    for direction in ("write", "read"):
        mine = [line for line in result.cases if line.direction == direction]
        if mine:
            best = max(mine, key=lambda line: line.best_bytes_per_s)
            block = f" in blocks of {format_bytes(best.transfer_bytes)}" if best.transfer_bytes else ""
            words.append(f"Best {direction} {best.best_bytes_per_s / MIB:,.0f} MiB/s{block}.")
    return f"{' '.join(words)} {counted(result.runs, 'run')} of {counted(len(result.cases), 'case')}."
