"""Options of the command line in sentences, in the words of a page: the field that has the same meaning."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolens import __version__
from iolens.views.dashboard.blocks import block_parts, cell_link
from iolens.views.render.doubts import notes, unsaid, warned, warnings
from iolens.views.render.escaped_text import html_text, with_commands
from iolens.views.render.figures import Figure, in_shown_zone
from iolens.views.render.shown_times import shown_in, time_with_zone
from iolens.views.render.tables import sentence
from iolens.views.report.page import template_part

if TYPE_CHECKING:
    from jinja2 import Environment


FIELDS: Final = {
    "--from": "From", "--to": "To", "--ssi": "Speed over the old system (SSI)", "--purge-days": "Files may go after",
    "--purge-fraction": "A purge reclaims", "--daily-growth": "Growth", "--dom": "Data-on-MDT up to",
    "--classes": "Class of the drives", "--layout": "Stripe of drives, data + parity", "--waf": "Write amplification",
    "--fswpd": "File-system writes per day", "--capacity": "Capacity that MDTs serve",
    "--smaller": "A system smaller than what is used today is meant",
}  # fmt: skip
"""Labels of the controls of pages by the option that sets the same."""
_OPTION: Final = re.compile(
    r"(?<=\()(?P<whole>--[a-z][a-z-]*[a-z]) (?P<value>\S+)(?=\))|(?<![^\s(;,])--[a-z][a-z-]*[a-z](?![\w=-])"
)


def in_page_words(text: str) -> str:
    """The sentence with fields for options; where no page has such a field, the command below the block has it."""
    return _OPTION.sub(lambda match: _named(match["whole"] or match[0], match["value"]), text)


def _named(option: str, value: str | None) -> str:
    """An option that stands in brackets alone has its value with it."""
    after = "" if value is None else f" {value}"
    return f"“{FIELDS[option]}”{after}" if option in FIELDS else f"the option {option}{after} of the command"


# Pages and blocks as HTML. Pages are shells ---------------------------------------------------------------------------
# Their blocks are fetched by the page's own program.

HERE: Final = Path(__file__).parent
REPORT: Final = HERE.parent / "report"


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A link of the menu or of the tabs."""

    title: str
    path: str
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class BlockFrame:
    """A block before it is filled: where its contents are, and how it stands on the page."""

    title: str
    address: str
    is_half: bool = False
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class BlockGroup:
    """Blocks of the page itself, or of one file system of many."""

    blocks: Sequence[BlockFrame]
    title: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class PageFrame:
    """A page before its blocks are filled. `values` are those of its controls, `reader` is who reads it."""

    name: str
    title: str
    groups: Sequence[BlockGroup]
    menu: Sequence[MenuEntry]
    glances: Sequence[BlockGroup] = ()  # the newest numbers of every file system
    tabs: Sequence[MenuEntry] = ()
    controls: Sequence[str] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    filesystem: str = ""
    reader: str = ""
    can_log_out: bool = False
    can_change: bool = False
    notice: str = ""


@dataclass(frozen=True, slots=True)
class BlockAnswer:
    """What a block shows and what stands below it: when it was made, where its numbers are, and the command."""

    result: Any
    shows: Sequence[str]
    made: datetime
    json: str
    csv: Mapping[str, str]  # addresses by the name of the table
    command: str
    ends: tuple[str, str] | None = None  # from when to when it is
    window: str = ""  # of the page, for links to others: `?from=…&to=…`
    timezone: str | None = None
    note: str = ""  # what its reader must know

    @property
    def is_glance(self) -> bool:
        """Whether it is a few numbers among others, whose block below says where they come from."""
        return tuple(self.shows) == ("now",)


def page_html(frame: PageFrame) -> str:
    """The whole page."""
    return _environment().get_template("page.html.jinja").render(page=frame, version=__version__)


def block_html(answer: BlockAnswer) -> str:
    """The contents of a block."""
    with shown_in(answer.timezone):
        link = partial(cell_link, answer.result, answer.window)
        shown = block_parts(answer.result, answer.shows)
        parts = [template_part(part, _figure, link) for part in shown]
        made = time_with_zone(answer.made)
        cautions = [warned(line) for line in unsaid(warnings(answer.result), shown)] if parts else []
        said = unsaid(notes(answer.result), shown) if parts and not answer.is_glance else []
        remarks = [sentence(line.rstrip(".")) for line in said]
    page = _environment().get_template("block.html.jinja")
    return page.render(parts=parts, answer=answer, made=made, cautions=cautions, remarks=remarks)


def trouble_html(words: str) -> str:
    """The contents of a block that cannot be answered."""
    return _environment().from_string('<p class="trouble">{{ words | said }}</p>').render(words=words)


def login_html(next_page: str, problem: str) -> str:
    """The form of a log-in: the page to go to afterwards, and what was wrong before."""
    return _environment().get_template("login.html.jinja").render(next=next_page, problem=problem, version=__version__)


def message_html(title: str, words: str) -> str:
    """A page with a message alone: something is not there, or may not be seen."""
    return _environment().get_template("message.html.jinja").render(title=title, words=words, version=__version__)


def _figure(figure: Figure) -> dict[str, Any]:
    """Without a still picture: drawing one takes longer than all the rest."""
    from markupsafe import Markup

    from iolens.views.render.bokeh_figure import item, json_for_script
    from iolens.views.report.page import alternative, bounded

    live = Markup(json_for_script({**item(bounded(figure)), **_times(figure)}))  # noqa: S704 (escaped)
    drawn = {"title": figure.title, "alternative": alternative(figure)}
    return {"kind": "figure", "number": 0, "drawn": drawn, "still": "", "live_json": live}


def _times(figure: Figure) -> dict[str, Any]:
    """By how much times in the figure differ from UTC, where it has times: the program asks for what it zooms into."""
    timed = [panel for panel in figure.panels if panel.x.scale == "time" and panel.x.low is not None]
    if not timed:
        return {}
    shown = next(panel for panel in in_shown_zone(figure).panels if panel.x.scale == "time")
    assert shown.x.low is not None
    assert timed[0].x.low is not None
    return {"offset_ms": (shown.x.low - timed[0].x.low) / 1000}


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    places = FileSystemLoader([HERE / "templates", REPORT])
    pages = Environment(
        autoescape=True, loader=places, undefined=StrictUndefined, finalize=html_text, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    pages.filters |= {"with_commands": with_commands, "said": partial(with_commands, said=in_page_words)}
    return pages
