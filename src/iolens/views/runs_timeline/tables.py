"""A run over time for people: its phases of I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t
from iolens.views.runs_timeline.words import ORIGINS, activity_words

if TYPE_CHECKING:
    from iolens.analyses.runs.timeline import RunTimeline
    from iolens.views.render.tables import TableView

MOST_SHOWN: Final = 30


def tables(result: RunTimeline) -> list[TableView]:
    """The phases, in order of time; of many those that moved most."""
    columns = (
        t.number("start_s", "From", "s", ",.3f"), t.number("end_s", "To", "s", ",.3f"), t.volume("read_bytes", "Read"),
        t.volume("write_bytes", "Written"), t.number("mib_per_s", "Rate", "MiB/s", ",.1f"),
        t.count("active_ranks", "Ranks"), t.percent("active_ranks_pct", "of all ranks"),
    )  # fmt: skip
    largest = sorted(result.phases, key=lambda phase: phase.read_bytes + phase.write_bytes, reverse=True)[:MOST_SHOWN]
    shown = sorted(largest, key=lambda phase: phase.start_s)
    notes = [activity_words(result), f"From {ORIGINS[result.origin]}; bins of {result.bin_s:.3g} s."]
    notes += [t.sentence(note) for note in result.notes]
    if result.has_shared_row:
        notes.append("Which ranks used shared files is not known: they are not in the number of ranks.")
    if result.ranks_per_row > 1:
        notes.append(f"Ranks are counted in groups of {result.ranks_per_row:,}.")
    if len(result.phases) > len(shown):
        notes.append(f"{len(result.phases) - len(shown):,} phases that moved less are not shown.")
    name = result.executable or "run"
    title = f"{name}, job {result.jobid}: phases of I/O" if result.jobid else f"{name}: phases of I/O"
    return [t.TableView(title, columns, t.rows_of(shown, columns), "\n".join(notes), name="phases")]
