"""Applications for people: what a job of each moves and opens, and the sizes of its RPCs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.schema import DIRECTIONS
from iolens.units import format_bytes, format_bytes_si
from iolens.views.render import tables as t
from iolens.views.runs_summary.words import INTERFACES as API_NAMES
from iolens.visible_text import counted, some_names

if TYPE_CHECKING:
    from iolens.analyses.job_applications import Applications, ApplicationTotals, LoggedAccesses, SizeShare
    from iolens.views.render.tables import TableView

FEWEST_RPCS: Final = 1000  # below, a share of small ones says little


def tables(result: Applications) -> list[TableView]:
    """The totals, then what logs tell of accesses, and the shares of each RPC size."""
    return [totals(result), accesses(result), *(sizes(result, direction) for direction in DIRECTIONS)]


def label_of(line: ApplicationTotals) -> str:
    """What an application is called in tables and figures."""
    name = line.name or "(no name)"
    return name if line.cores is None else f"{name}, {counted(line.cores, 'core')}"


def totals(result: Applications) -> TableView:
    """One line for each application."""
    columns = (
        t.text("name", "Application"), t.count("cores_min", "Cores from"), t.count("cores_max", "to"),
        t.count("jobs", "Jobs"), t.volume("read_bytes_mean", "Read per job"),
        t.volume("write_bytes_mean", "Written per job"), t.number("opens_mean", "Opens per job", "", ",.0f"),
        t.number("closes_mean", "Closes per job", "", ",.0f"), t.number("stats_mean", "Stats per job", "", ",.0f"),
        t.percent("small_read_rpc_pct", "Reads ≤ 64 KiB"), t.percent("small_write_rpc_pct", "Writes ≤ 64 KiB"),
        t.number("duration_s_mean", "Duration", "s", ",.0f"),
    )  # fmt: skip
    what = "applications" if result.by == "name" else "applications by core count"
    rows = t.rows_of(result.applications, columns)
    return t.TableView(
        f"{result.filesystem}: {what}",
        columns,
        rows,
        "\n".join(_notes(result)),
        warnings=_warnings(result),
        name="totals",
    )


def _notes(result: Applications) -> list[str]:
    """Which moves most, which has the smallest RPCs, and what is not here."""
    notes = [_most(result)] if result.applications else []
    less = f"{counted(result.applications_left_out, 'application')} that moved less"
    unnamed = "no name" if result.by == "name" else "no name or core count"
    reasons = (
        (result.jobs_left_out, f"of {less}"), (result.jobs_unnamed, f"of which {unnamed} is known"),
        (result.jobs_without_counters, "without counters"), (result.jobs_running, "still running"),
    )  # fmt: skip
    missing = [f"{counted(count, 'job')} {words}" for count, words in reasons if count]
    return [*notes, f"Not here: {', '.join(missing)}."] if missing else notes


def _most(result: Applications) -> str:
    most = max(map(_moved, result.applications))
    largest = [line for line in result.applications if _moved(line) == most]
    words = f"{label_of(largest[0])} moves most: {format_bytes_si(most)} in {counted(largest[0].jobs, 'job')}"
    if len(largest) > 1:
        words = f"{some_names([label_of(line) for line in largest], 3)} move most: {format_bytes_si(most)} each"
    if not most:
        words = "No application is known to have moved a byte"
    shares = [
        (share, direction, line)
        for line in result.applications
        for direction in DIRECTIONS
        if (share := getattr(line, f"small_{direction}_rpc_pct")) is not None
        and sum(_count(size, direction) for size in line.rpc_sizes) >= FEWEST_RPCS
    ]
    if not shares:
        return f"{words}."
    share, direction, line = max(shares, key=lambda item: item[0])
    if not share:
        return f"{words}. No application has RPCs of 64 KiB or less."
    small = f"{t.show_percent(share)} % of its {direction}s are of 64 KiB or less"
    more = sum(item[0] == share for item in shares) - 1
    equal = f", like {counted(more, 'other')}" if more else ""
    return f"{words}. {label_of(line)} has the largest share of small RPCs{equal}: {small}."


def _moved(line: ApplicationTotals) -> int:
    return (line.read_bytes or 0) + (line.write_bytes or 0)


def _warnings(result: Applications) -> tuple[str, ...]:
    sharing = sum(line.sharing_nodes for line in result.applications)
    return (f"{counted(sharing, 'job')} shared nodes with others, whose I/O is in the counters",) if sharing else ()


def accesses(result: Applications) -> TableView:
    """Attributes of the study's survey, of applications with Darshan logs."""
    columns = (
        t.text("name", "Application"), t.count("logged_jobs", "Jobs with a log"),
        t.percent("sequential_read_pct", "Reads sequential"), t.percent("sequential_write_pct", "Writes sequential"),
        t.percent("appended_write_pct", "Written append-only"), t.percent("unique_pct", "Own files"),
        t.percent("shared_pct", "Shared by all"), t.percent("partially_shared_pct", "Shared by some"),
        t.text("interface", "Interface"),
    )  # fmt: skip
    logged = [(line, line.accesses) for line in result.applications if line.accesses is not None]
    rows = [
        t.row_of(seen, columns, {"name": label_of(line), "logged_jobs": line.logged_jobs, "interface": _through(seen)})
        for line, seen in logged
    ]
    jobs, seen_jobs = (sum(getattr(line, name) for line in result.applications) for name in ("jobs", "logged_jobs"))
    note = f"By the Darshan logs of {seen_jobs:,} of {counted(jobs, 'job')}; files of all file systems."
    if not rows:
        note = "No Darshan log of these jobs is stored: how they access files is not known."
    return t.TableView("Accesses by application", columns, rows, note, name="accesses")


def _through(seen: LoggedAccesses) -> str | None:
    """The interface of most bytes, with its share where there are others."""
    if seen.interface is None:
        return None
    share = seen.interface_pct.get(seen.interface, 100.0)
    return API_NAMES.get(seen.interface, seen.interface) + (f" ({t.show_percent(share)} %)" if share < 100 else "")


def sizes(result: Applications, direction: str) -> TableView:
    """Per cent of the RPCs by size, a column for each size."""
    bins = sorted({size.size_bytes for line in result.applications for size in line.rpc_sizes})
    columns = (
        t.text("name", "Application"), t.count("rpcs", f"{direction.capitalize()}s"),
        *(t.percent(f"{direction}_pct_{size}", format_bytes(size)) for size in bins),
    )  # fmt: skip
    rows = [
        (label_of(line), sum(_count(size, direction) for size in line.rpc_sizes), *_shares(line, direction, bins))
        for line in result.applications
        if line.rpc_sizes
    ]
    note = "" if rows else "No RPCs by size are known."
    return t.TableView(
        f"{direction.capitalize()}s by size of RPC, up to", columns, rows, note, name=f"{direction}_sizes"
    )


def _count(size: SizeShare, direction: str) -> int:
    return size.reads if direction == "read" else size.writes


def _shares(line: ApplicationTotals, direction: str, bins: list[int]) -> list[float | None]:
    known: dict[int, float | None] = {size.size_bytes: getattr(size, f"{direction}_pct") for size in line.rpc_sizes}
    has_any = any(share is not None for share in known.values())
    return [known.get(size, 0.0 if has_any else None) for size in bins]
