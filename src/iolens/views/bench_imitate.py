"""Parameters as in Table III of the study, why they are so, the commands, and how near the imitation came."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from iolens.units import format_bytes
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from iolens.analyses.bench_imitate import ImitationResult
    from iolens.models.ior_parameters import IorParameters
    from iolens.views.render.tables import Row, TableView


PARAMETERS: Final = {
    "api": "API (-a)", "tasks": "NumTasks", "file_per_process": "FilePerProc (-F)", "direction": "WriteFile, ReadFile",
    "transfer_bytes": "TransferSize (-t)", "block_bytes": "Segments × BlockSize (-s, -b)",
    "repetitions": "Repetitions (-i)", "collective": "Collective (-c)", "random": "Random order (-z)",
    "fsync": "Fsync (-e)", "reorder": "Reorder (-C)",
}  # fmt: skip
QUANTITIES: Final = {
    "bytes": "bytes", "operations": "operations", "bytes_per_operation": "bytes per operation", "files": "files",
    "mib_per_s": "MiB/s",
}  # fmt: skip


def tables(result: ImitationResult) -> list[TableView]:
    """Parameters with the commands, evidence, what is not imitated, nearness."""
    views = [parameters(result), evidence(result), left_out(result), nearness(result)]
    return [view for view in views if view is not None]


def parameters(result: ImitationResult) -> TableView:
    """Table III, one run of IOR per row."""
    columns = (
        t.text("run", "IOR run"), t.text("what", "Imitates"), t.percent("share_pct", "Of the bytes"),
        t.text("api", "API (-a)"), t.text("file_per_process", "FilePerProc (-F)"), t.text("write", "WriteFile (-w)"),
        t.text("read", "ReadFile (-r)"), t.count("tasks", "NumTasks"), t.count("nodes", "Nodes"),
        t.size("block_bytes", "BlockSize (-b)"), t.size("transfer_bytes", "TransferSize (-t)"),
        t.count("segments", "Segments (-s)"), t.count("repetitions", "Repetitions (-i)"),
        t.text("collective", "Collective (-c)"), t.text("random", "Random order (-z)"), t.text("fsync", "Fsync (-e)"),
        t.text("reorder", "Reorder (-C)"),
    )  # fmt: skip
    rows: list[Row] = [
        (f"{number}", run.what, run.share_pct, *_cells(run.parameters, columns[3:]))
        for number, run in enumerate(result.imitation.runs, 1)
    ]
    lines = [t.sentence(note) for note in result.imitation.notes]
    lines += [shlex.join(command) for command in result.commands]
    return t.TableView(
        f"IOR parameters that imitate {result.job}", columns, rows, "\n".join(lines), sideways=True, name="parameters"
    )


def _cells(run: IorParameters, columns: tuple[t.TableColumn, ...]) -> Row:
    values = (getattr(run, column.name) for column in columns)
    return tuple(_yes(value) if isinstance(value, bool) else value for value in values)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def evidence(result: ImitationResult) -> TableView:
    """Each parameter with the counters that say so."""
    columns = (
        t.text("run", "IOR run"), t.text("parameter", "Parameter"), t.text("value", "Value"),
        t.text("known", "On record"), t.text("evidence", "Evidence"),
    )  # fmt: skip
    rows: list[Row] = [
        (f"{number}", PARAMETERS[item.parameter], item.value, _yes(item.is_known), item.words)
        for number, run in enumerate(result.imitation.runs, 1)
        for item in run.evidence
    ]
    return t.TableView("Evidence", columns, rows, name="evidence")


def left_out(result: ImitationResult) -> TableView | None:
    """Files that no run of IOR stands for."""
    columns = (t.text("what", "Files"), t.volume("moved_bytes", "Bytes"), t.percent("share_pct", "Of the bytes"))
    rows = t.rows_of(result.imitation.not_imitated, columns)
    return t.TableView("Not imitated", columns, rows, name="not_imitated") if rows else None


def nearness(result: ImitationResult) -> TableView:
    """The record beside the imitation."""
    columns = (
        t.text("run", "IOR run"), t.text("place", "Place"), t.text("quantity", "Quantity"),
        t.text("asked", "Record or its share"), t.text("imitated", "Imitated"), t.number("ratio", "Ratio", "", ".3g"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            "all" if line.run is None else f"{line.run}",
            line.place,
            QUANTITIES[line.quantity],
            _amount(line.quantity, line.asked),
            _amount(line.quantity, line.imitated),
            line.ratio,
        )
        for line in result.nearness
    ]
    note = "\n".join(t.sentence(words) for words in result.words)
    return t.TableView("How near it comes", columns, rows, note, name="nearness")


def _amount(quantity: str, value: Any) -> str:
    return format_bytes(value) if "bytes" in quantity else f"{value:,.0f}"
