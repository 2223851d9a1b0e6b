"""Imbalance for people: what it amounts to in words, how long it lasts, hot targets, and who is not like its peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iolens.units import format_bytes_si
from iolens.views.render import tables as t
from iolens.views.render.coverage import coverage_table, covered
from iolens.views.render.section import moved, with_servers
from iolens.visible_text import listed, some_names, times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.imbalance.analysis import Imbalance
    from iolens.analyses.imbalance.part import PeerTarget
    from iolens.analyses.imbalance.server_loads import ServerImbalance
    from iolens.analyses.imbalance.spreads import HotTarget, ImbalanceThreshold
    from iolens.views.render.tables import Row, TableColumn, TableView

SHOWN: Final = 12  # targets; JSON has them all
ALL_SHOWN: Final = 24  # as many are not cut
NAMED: Final = 6
FINDINGS: Final = {
    "dead": "moved nothing while its peers did, to the end",
    "silent": "moved nothing for a time while its peers did",
    "low": "far less than its peers",
    "high": "far more than its peers",
    "usual": "as its peers",
}


def tables(result: Imbalance) -> list[TableView]:
    """Everything the result says."""
    views = [thresholds(result), extremes(result), hot_targets(result), peers(result)]
    views += [*([servers(result)] if result.between_servers is not None else []), dispersion(result)]
    if result.background is not None:
        views.append(background(result))
    return [*views, snapshots(result), coverage(result)]


def threshold_name(threshold: ImbalanceThreshold) -> str:
    """`80th percentile`, or the value that was asked for."""
    return _named(threshold.percentile, threshold.std_bytes_per_s)


def _named(percentile: float | None, value: float) -> str:
    if percentile is None:
        return f"{format_bytes_si(value)}/s"
    ending = "th" if percentile in (11, 12, 13) else {1.0: "st", 2.0: "nd", 3.0: "rd"}.get(percentile % 10, "th")
    return f"{percentile:g}{ending} percentile"


def verdict(result: Imbalance) -> str:
    """In a few sentences."""
    reported = [_amount(result), *(_lasting(result, threshold) for threshold in result.thresholds if threshold.periods)]
    hottest = _hottest(result.hot_targets, result.thresholds, "target")
    between = [server_verdict(result.between_servers)] if result.between_servers is not None else []
    words = covered(result, " ".join([*reported, *hottest, *_strangers(result.peers), *between]))
    return " ".join([*(result.slow_targets or ())[:NAMED], words])


def server_verdict(result: ServerImbalance) -> str:
    """The same of servers, and which of them stands out."""
    count, p80, p95 = len(result.targets_by_server), result.std_p80_bytes_per_s, result.std_p95_bytes_per_s
    if p80 is None or p95 is None:
        return f"Between the {count} servers nothing is known: no two of them are whole at the same time."
    spread = (
        f"Between the {count} servers the standard deviation was at most {format_bytes_si(p80)}/s for 80 % of the time,"
        f" for 95 % at most {format_bytes_si(p95)}/s."
    )
    return " ".join([spread, *_hottest(result.hot_servers, result.thresholds, "server"), *_strangers(result.peers)])


def _amount(result: Imbalance) -> str:
    p80, p95 = (f"{format_bytes_si(value)}/s" for value in (result.std_p80_bytes_per_s, result.std_p95_bytes_per_s))
    return f"For 80 % of the time the standard deviation between targets was at most {p80}, for 95 % at most {p95}."


def _lasting(result: Imbalance, threshold: ImbalanceThreshold) -> str:
    lasted = result.lifetimes[threshold.name]
    assert lasted.p90_s is not None
    assert lasted.max_s is not None
    reached = f"It reached {format_bytes_si(threshold.std_bytes_per_s)}/s {times(f'{threshold.periods:,}')}"
    nine, longest = t.show_seconds(lasted.p90_s), t.show_seconds(lasted.max_s)
    if threshold.periods == 1:
        return f"{reached}, for {longest}."
    return f"{reached}: nine in ten of these periods lasted at most {nine}, the longest {longest}."


def _hottest(hot: Sequence[HotTarget], thresholds: Sequence[ImbalanceThreshold], unit: str) -> list[str]:
    first = next((item for item in hot if item.threshold == thresholds[0].name), None)
    if first is None:
        return []
    same = [item for item in hot if (item.threshold, item.hours) == (first.threshold, first.hours)]
    names = [
        f"{item.target}, {t.show_percent(item.hottest_pct)} % of that time the most loaded {unit}" for item in same
    ]
    return [f"Most often hot: {some_names(names, NAMED)}{', equally long' if len(same) > 1 else ''}."]


def _strangers(peers: Sequence[PeerTarget]) -> list[str]:
    words = {
        "dead": ("moves nothing while its peers do", "move nothing while their peers do"),
        "silent": ("moved nothing for a time", "moved nothing for a time"),
        "low": ("moves far less than its peers", "move far less than their peers"),
        "high": ("moves far more than its peers", "move far more than their peers"),
    }
    answer = []
    for finding, (name, several) in words.items():
        names = [line.target for line in peers if line.finding == finding]
        if names:
            answer.append(f"{listed(names, NAMED)} {name if len(names) == 1 else several}.")
    return answer


def duration(name: str, heading: str) -> TableColumn:
    """Seconds, shown in the unit that suits."""
    return t.TableColumn(name, heading, "number", t.show_seconds)


def hours(name: str, heading: str) -> TableColumn:
    """Hours, shown in the unit that suits."""
    return t.TableColumn(name, heading, "number", lambda value: t.show_seconds(3600.0 * value))


def thresholds(result: Imbalance) -> TableView:
    """How often, how long, how far apart."""
    columns = (
        t.text("threshold", "Threshold"), t.rate("std_bytes_per_s", "Std of targets"), t.percent("ticks_pct", "Time"),
        t.count("periods", "Periods"), duration("lifetime_p50_s", "Lifetime 50 %"),
        duration("lifetime_p90_s", "90 %"), duration("lifetime_max_s", "Longest"),
        duration("distance_p50_s", "Distance 50 %"), duration("distance_p90_s", "90 %"),
        duration("distance_max_s", "Longest"), t.count("periods_cut", "Cut by gaps"),
    )  # fmt: skip
    rows: list[Row] = []
    for threshold in result.thresholds:
        lasted, apart = result.lifetimes[threshold.name], result.distances[threshold.name]
        rows.append(
            (threshold_name(threshold), threshold.std_bytes_per_s, threshold.ticks_pct, threshold.periods,
             lasted.p50_s, lasted.p90_s, lasted.max_s, apart.p50_s, apart.p90_s, apart.max_s, threshold.periods_cut)
        )  # fmt: skip
    return t.TableView(
        f"{result.filesystem}: imbalance of {result.targets} targets", columns, rows, verdict(result), name="thresholds"
    )


def extremes(result: Imbalance) -> TableView:
    """The least, mean and most loaded target, and the standard deviation, over ticks."""
    columns = (
        t.text("what", "Over targets"), t.rate("p50_bytes_per_s", "50 % of time up to"),
        t.rate("p80_bytes_per_s", "80 %"), t.rate("p95_bytes_per_s", "95 %"), t.rate("p99_bytes_per_s", "99 %"),
        t.rate("max_bytes_per_s", "Largest"),
    )  # fmt: skip
    words = {"minimum": "Least loaded", "mean": "Mean", "maximum": "Most loaded", "std": "Standard deviation"}
    rows: list[Row] = [(words[name], *t.row_of(extreme, columns[1:])) for name, extreme in result.extremes.items()]
    return t.TableView(
        "Load per target",
        columns,
        rows,
        f"{result.samples:,} ticks of {t.show_seconds(result.tick_s)}.",
        name="extremes",
    )


def hot_targets(result: Imbalance) -> TableView:
    """Who was hot, and when, by the first threshold."""
    columns = (
        t.text("target", "Target"), t.percent("hottest_pct", "Most loaded"),
        t.percent("outstanding_pct", "Above mean + 2 std"), hours("hours", "Hot for"), duration("longest_s", "Longest"),
        t.time("longest_from", "from"), t.time("first", "First"), t.time("last", "Last"),
    )  # fmt: skip
    first = result.thresholds[0]
    mine: list[HotTarget] = [hot_target for hot_target in result.hot_targets if hot_target.threshold == first.name]
    note = "Shares are of the unbalanced time; hot is most loaded, or above mean + 2 std."
    if not mine:
        note = "No tick was unbalanced."
    elif len(mine) > ALL_SHOWN:
        note += f" The first {SHOWN} of {len(mine)}; JSON has them all, by every threshold."
        mine = mine[:SHOWN]
    return t.TableView(
        f"Hot targets at the {threshold_name(first)}",
        *with_servers(result.servers, columns, mine),
        note,
        name="hot_targets",
    )


def peers(result: Imbalance) -> TableView:
    """Strangers first; all of a few."""
    columns = (
        t.text("target", "Target"), t.text("finding", "Finding"), t.rate("mean_bytes_per_s", "Mean"),
        t.rate("max_bytes_per_s", "Largest"), t.number("load_ratio", "of the mean target's", "×", ",.2f"),
        t.number("robust_z", "Robust z", "", "+.1f"), t.percent("active_pct", "Active"),
        t.percent("silent_pct", "Silent while peers move"), duration("longest_silent_s", "Longest"),
        t.time("silent_from", "from"), t.percent("background_pct", "Background"),
        t.percent("reported_pct", "Reported"),
    )  # fmt: skip
    ordered = sorted(result.peers, key=_strangeness)
    strangers = sum(target.finding != "usual" for target in ordered)
    note = ""
    if len(ordered) > ALL_SHOWN:
        shown = max(SHOWN, min(strangers, ALL_SHOWN))
        note = f"{shown} of {len(ordered)} targets, largest deviation first; JSON has them all."
        ordered = ordered[:shown]
    used = [column for column in columns if any(getattr(target, column.name) is not None for target in ordered)]
    rows: list[Row] = [tuple(_peer_cell(target, column.name) for column in used) for target in ordered]
    view = with_servers(result.servers, tuple(used), ordered, rows)
    notes = "\n".join(filter(None, [note, *moved(result.servers)]))
    return t.TableView("Targets against their peers", *view, notes, name="peers")


def _peer_cell(target: PeerTarget, name: str) -> Any:
    return FINDINGS[target.finding] if name == "finding" else getattr(target, name)


def _strangeness(target: PeerTarget) -> tuple[int, float]:
    return list(FINDINGS).index(target.finding), -abs(target.robust_z or 0.0)


def servers(result: Imbalance) -> TableView:
    """Servers against each other: loads are sums over their targets."""
    between = result.between_servers
    assert between is not None
    columns = (
        t.text("target", "Server"), t.count("targets", "Targets"), t.rate("mean_bytes_per_s", "Mean"),
        t.rate("max_bytes_per_s", "Largest"), t.number("load_ratio", "of the mean server's", "×", ",.2f"),
        t.percent("hottest_pct", "Most loaded"), t.percent("outstanding_pct", "Above mean + 2 std"),
        t.percent("reported_pct", "Known"), t.text("finding", "Finding"),
    )  # fmt: skip
    hot = {item.target: item for item in reversed(between.hot_servers)}  # the first threshold's
    rows: list[Row] = []
    for line in between.peers:
        shares = (hot[line.target].hottest_pct, hot[line.target].outstanding_pct) if line.target in hot else (0.0, 0.0)
        loads = line.mean_bytes_per_s, line.max_bytes_per_s, line.load_ratio
        targets = between.targets_by_server[line.target]
        rows.append((line.target, targets, *loads, *shares, line.reported_pct, FINDINGS[line.finding]))
    note = [server_verdict(between)]
    if between.targets_without_server:
        note.append(f"In no sum, for their server is not known: {listed(between.targets_without_server, NAMED)}.")
    return t.TableView(f"Servers of {result.filesystem}", columns, rows, "\n".join(note), name="servers")


def dispersion(result: Imbalance) -> TableView:
    """Whether a higher load is spread less evenly."""
    columns = (
        t.rate("mean_from_bytes_per_s", "Mean load from"), t.rate("mean_to_bytes_per_s", "to"),
        t.percent("ticks_pct", "Time"), t.rate("std_p50_bytes_per_s", "Std, 50 %"),
        t.rate("std_p95_bytes_per_s", "Std, 95 %"), t.number("std_over_mean", "Std ÷ mean", "", ",.2f"),
    )  # fmt: skip
    rows = t.rows_of(result.dispersion, columns)
    note = "Mean load of a target, in steps of a quarter of a power of ten; std ÷ mean is the median."
    return t.TableView("Spread by load", columns, rows, note, name="dispersion")


def background(result: Imbalance) -> TableView:
    """Scrub, rebuild and the like."""
    columns = (
        t.text("filesystem", "File system"), t.text("included", "In the loads above"),
        t.count("targets", "Targets telling it"), t.volume("bytes", "Bytes"),
        t.percent("share_pct", "Share of all bytes"),
        t.rate("with_std_p80_bytes_per_s", "Std p80 with it"), t.rate("without_std_p80_bytes_per_s", "without it"),
        t.rate("with_std_p95_bytes_per_s", "Std p95 with it"), t.rate("without_std_p95_bytes_per_s", "without it"),
    )  # fmt: skip
    item = result.background
    assert item is not None
    row: Row = (
        result.filesystem,
        "yes" if item.included else "no",
        *t.row_of(item, columns[2:]),
    )
    return t.TableView("Background I/O", columns, [row], sideways=True, name="background")


def snapshots(result: Imbalance) -> TableView:
    """Two times, as under Fig. 1."""
    columns = (
        t.time("time", "Tick that ends"), t.count("targets", "Targets"), t.rate("min_bytes_per_s", "Least"),
        t.rate("max_bytes_per_s", "Most"), t.rate("mean_bytes_per_s", "Mean"), t.rate("std_bytes_per_s", "Std"),
    )  # fmt: skip
    rows: list[Row] = [
        (snapshot.time, len(snapshot.targets), *t.row_of(snapshot, columns[2:])) for snapshot in result.snapshots
    ]
    return t.TableView("Snapshots", columns, rows, name="snapshots")


def coverage(result: Imbalance) -> TableView:
    """What the answer rests on, and what was missing."""
    fields = (
        t.count("targets_known", "Targets known"), t.count("targets_reporting", "Reporting"),
        t.text("missing_targets", "Not reporting"), t.percent("complete_pct", "Complete"),
        t.text("target_kinds", "Kind"), t.text("targets_of_other_kinds", "Of other kinds, left out"),
        t.text("sources", "Sources"), t.count("overlapping_rows", "Overlapping rows"),
        t.count("ticks_left_out", "Ticks with fewer than two targets"),
        t.count("ticks_incomplete", "Ticks that lack a target"), t.count("gaps", "Gaps"),
        t.percent("percentile_error_pct", "Percentiles of load are off by at most"),
    )  # fmt: skip
    return coverage_table(
        [(result.filesystem, result.coverage)], fields, "\n".join(map(t.sentence, result.coverage.notes))
    )
