"""How far a scan is: a bar with rate and estimate on a terminal, otherwise a line now and then."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from iolens.messages import NOTICE, is_shown, say

if TYPE_CHECKING:
    from iolens.scan.workers import Advance

LINE_EVERY_S: Final = 30.0  # without a terminal, a line of progress this often


@contextmanager
def scan_progress(expected: int | None) -> Iterator[Callable[[Advance], None]]:
    """A bar with rate and estimate on a terminal; otherwise a line now and then, with `--quiet` none."""
    if not sys.stderr.isatty() or not is_shown(NOTICE):
        yield ProgressLines(expected, say).tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("scanning"), BarColumn(), TextColumn("{task.description}"))
    # No thread of its own: the processes of the scan are forked while this is shown.
    with Progress(*columns, console=Console(file=sys.__stderr__), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("", total=expected)

        def tell(advance: Advance) -> None:
            bar.update(task, completed=min(advance.entries, expected or advance.entries), refresh=True)
            bar.update(task, description=progress_text(advance, expected), refresh=True)

        yield tell


class ProgressLines:
    """Progress in lines, one every half minute."""

    def __init__(self, expected: int | None, say: Callable[[str], object]) -> None:
        self.expected, self.say = expected, say
        self.due_s = LINE_EVERY_S

    def tell(self, advance: Advance) -> None:
        """A line, if it is time for one."""
        if advance.passed_s >= self.due_s:
            self.due_s = advance.passed_s + LINE_EVERY_S
            self.say(f"scanning: {progress_text(advance, self.expected)}")


def progress_text(advance: Advance, expected: int | None) -> str:
    """`1,200,000 of at most 5,000,000 inodes, 310,000/s, at most 12 min left`."""
    rate = (advance.entries - advance.entries_before) / advance.passed_s if advance.passed_s > 0 else 0.0
    if expected is None or expected < advance.entries:
        return f"{advance.entries:,} inodes, {rate:,.0f}/s"
    begin = f"{advance.entries:,} of at most {expected:,} inodes, {rate:,.0f}/s"
    return f"{begin}, at most {_duration((expected - advance.entries) / rate)} left" if rate else begin


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
