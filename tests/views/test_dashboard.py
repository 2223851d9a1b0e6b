"""Pages and blocks as HTML: hostile names stay text, names lead where they should, and alerts are lines."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from iolens.alerts.results import AlertList
from iolens.views.alerts import report_lines, report_words
from iolens.views.dashboard import shell
from iolens.views.dashboard.blocks import cell_link
from iolens.views.dashboard.shell import (
    FIELDS,
    BlockAnswer,
    BlockFrame,
    BlockGroup,
    MenuEntry,
    PageFrame,
    block_html,
    in_page_words,
    login_html,
    message_html,
    page_html,
    trouble_html,
)
from iolens.views.render import figures
from iolens.views.render import tables as t
from iolens.views.render.section import OverviewLines
from iolens.views.render.tables import TableView
from iolens.visible_text import visible
from tests.alerts.centres import minute
from tests.alerts.samples import alert
from tests.hostile_names import HOSTILE

MADE = datetime(2026, 1, 5, 12, tzinfo=UTC)


def block(result: Any, *shows: str, **more: Any) -> str:
    return block_html(BlockAnswer(result, shows, MADE, "/api/v1/x?a=1&b=2", {}, "iolens x", **more))


def listed(*alerts: Any, **more: Any) -> AlertList:
    values: dict[str, Any] = {
        "listed_at": minute(20), "checked_at": minute(20), "alerts": list(alerts), "resolved": [], "silences": [],
        "undelivered": [], "not_evaluated": [], **more,
    }  # fmt: skip
    return AlertList(**values)


@pytest.mark.parametrize("name", HOSTILE.values(), ids=list(HOSTILE))
def test_no_name_is_obeyed(name: str) -> None:
    """In a page, a block, a message and a log-in: no tag, no attribute and no sign that is not seen comes from it."""
    address = quote(name, "", errors="replace")
    frame = PageFrame(
        name, name, [BlockGroup([BlockFrame(name, f"/blocks/x?{address}")], name, f"/{address}")],
        [MenuEntry(name, "/")], controls=("window", "search"), values={"from": name, "text": name}, filesystem=name,
        reader=name, notice=name,
    )  # fmt: skip
    plain = replace(
        frame, name="x", title="x", groups=[BlockGroup([BlockFrame("x", "/blocks/x?x")], "x", "/x")],
        menu=[MenuEntry("x", "/")], values={"from": "x", "text": "x"}, filesystem="x", reader="x", notice="x",
    )  # fmt: skip
    stored = name.encode("utf-8", "replace").decode()  # no table holds halves of pairs
    hostile = listed(alert(subject=stored, why=stored, filesystem=stored, command=stored))
    pairs = [
        (page_html(frame), page_html(plain)),
        (trouble_html(name), trouble_html("x")),
        (message_html(name, name), message_html("x", "x")),
        (login_html(f"/{address}", name), login_html("x", "x")),
        (block(hostile, "lines", "tables"), block(listed(alert()), "lines", "tables")),
    ]
    for text, expected in pairs:
        assert [tag.split()[0] for tag in re.findall(r"<[^>]+>", without_links(text))] == [
            tag.split()[0] for tag in re.findall(r"<[^>]+>", without_links(expected))
        ]
        assert text.encode("utf-8")
        assert not set(text) & {"\x1b", "\x9b", "\x07", "\x08", "\x00", "\r", "\u202e", "\u200b", "\u2028", "\udcff"}


def without_links(text: str) -> str:
    """A name that no address can have is shown without a link."""
    return re.sub(r"</?a\b[^>]*>", "", text)


@dataclass(frozen=True)
class OfFileSystem:
    filesystem: str
    by: str = "user"
    who: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Line:
    name: str
    is_known: bool = True


TABLE = TableView("Shares", (t.text("name", "Name"),), [], name="shares")
RESULT = OfFileSystem("a/b", "user", (Line("ada"),))


@pytest.mark.parametrize(
    ("column", "value", "address"),
    [
        ("job_id", "4711", "/jobs/4711"),
        ("jobid", "slurm 1?x#y", "/jobs/slurm%201%3Fx%23y"),
        ("user", "ünï", "/users/%C3%BCn%C3%AF"),
        ("filesystem", "scratch", "/filesystems/scratch"),
        ("target", "OST0001", "/filesystems/a%2Fb/targets/OST0001?w"),
        ("name", "ada", "/users/ada"),
        ("name", "other users", ""),  # the sum of others has no page
        ("user", "..", ""), ("user", ".", ""), ("user", "", ""), ("user", "a/../b", ""), ("user", "a\\b", ""),
        ("user", "%2e", ""), ("user", "a\udcff", ""),
        ("user", "x" * 1001, ""), ("user", None, ""), ("user", 7, ""), ("size", "ada", ""),
    ],
)  # fmt: skip
def test_where_names_lead(column: str, value: Any, address: str) -> None:
    assert cell_link(RESULT, "?w", TABLE, column, value) == address


def test_a_share_of_a_project_and_a_target_of_nothing_lead_nowhere() -> None:
    assert cell_link(replace(RESULT, by="project"), "", TABLE, "name", "ada") == ""
    assert cell_link(object(), "", replace(TABLE, name="x"), "target", "OST0001") == ""


def test_ids_without_a_record_are_no_user_but_may_be_jobs() -> None:
    without = replace(RESULT, who=(Line("4711", is_known=False),))
    assert cell_link(without, "", TABLE, "name", "4711") == ""
    assert cell_link(replace(without, by="job"), "", TABLE, "name", "4711") == "/jobs/4711"


def test_a_block_says_when_it_was_made_where_its_numbers_are_and_how_to_get_them() -> None:
    command = shlex.join(["iolens", "x", "-f", "<b>"])
    answer = BlockAnswer(
        listed(), ("words",), MADE, "/api/v1/alerts?a=1&b=2", {"alerts": "/api/v1/alerts.csv?table=alerts"}, command,
        ("2026-01-05T00:00:00Z", "2026-01-06T00:00:00Z"), timezone="Europe/Berlin", note="Only until noon.",
    )  # fmt: skip
    shown = block_html(answer)
    assert "As of 2026-01-05 13:00:00 Europe/Berlin" in shown
    assert 'data-from="2026-01-05T00:00:00Z" data-to="2026-01-06T00:00:00Z"' in shown
    assert '<a href="/api/v1/alerts?a=1&amp;b=2">JSON</a>' in shown
    assert '<a href="/api/v1/alerts.csv?table=alerts" download>CSV</a>' in shown
    assert [unescape(code) for code in re.findall(r"<code>(.*?)</code>", shown)] == [command]
    assert "Only until noon." in shown
    assert "As of" not in block(listed(), "now")  # the block below says it


def test_nothing_to_show_is_said() -> None:
    assert "Nothing is stored of it in this window." in block(listed(), "table:silences")


# Alerts


def lines(result: AlertList) -> list[tuple[str, list[str]]]:
    return [
        (label, [line.words for line in group])
        for part in report_lines(result)
        if isinstance(part, OverviewLines)
        for label, group in part.lines
    ]


def test_alerts_are_lines_the_worst_first() -> None:
    late = alert(why="b.", severity="critical", since=minute(5))
    early = alert(why="a.", severity="critical", since=minute(1), who=None)
    info = alert(why="c.", severity="info", state="pending", who=[])
    ((label, firing), (waiting, pending)) = lines(listed(alert(why="d."), late, early, info))
    assert (label, waiting) == ("Firing", "Pending")
    assert [words[:2] for words in firing] == ["a.", "b.", "d."]
    assert [words[:2] for words in pending] == ["c."]
    assert "Most disk time: 4711 (ana) 61.0 %." in firing[2]
    assert "Most disk time" not in firing[0] + pending[0]
    assert lines(listed()) == []


def test_a_line_says_what_became_of_an_alert() -> None:
    silenced = alert(silenced_by="silence 7", unknown_why="No drive reports its wear.")
    ((_, (words,)),) = lines(listed(silenced))
    assert words.endswith(" Not sent: silence 7. Not known now: No drive reports its wear.")
    over = replace(alert(), state="resolved", resolved_at=minute(40))
    ((label, (words,)),) = lines(listed(resolved=[over]))
    assert (label, "Resolved 20" in words) == ("Resolved", True)


def test_how_it_stands() -> None:
    assert list(report_words(listed(checked_at=None))) == ["Not checked yet."]
    assert next(report_words(listed())).startswith("No alert fires, as of ")
    assert next(report_words(listed(alert()))).startswith("1 alert fires, as of ")
    assert next(report_words(listed(alert(), alert()))).startswith("2 alerts fire, as of ")


def test_a_line_leads_to_the_page_of_its_subject() -> None:
    shown = block(listed(alert()), "lines")
    (address,) = re.findall(r'<a href="(/filesystems/[^"]+)"', shown)
    assert unquote(unescape(address)).startswith("/filesystems/scratch?from=")
    assert visible("iolens blame -f scratch") in unescape(shown)


FIGURES = Path(shell.__file__).parent / "static" / "figures.js"
DESCRIPTION = {
    "attributes": {"palette": list(figures.HEAT), "low": 1, "nan_color": figures.NO_DATA},
    "data": {"palette": [1, 2]},
}
IN_NODE = """
globalThis.matchMedia = () => ({ matches: true });
const { recoloured, lighten } = await import(process.argv[1]);
const dark = recoloured(JSON.parse(process.argv[2]));
const model = { palette: dark.attributes.palette, setv(values) { Object.assign(this, values); } };
model[Symbol.iterator] = function* () { yield { attr: "palette", get_value: () => model.palette }; };
lighten(model);
const once = model.palette;
lighten(model);
console.log(JSON.stringify({ dark, once, twice: model.palette }));
"""


def _brightness(colours: list[str]) -> list[float]:
    """Of each colour, from 0 to 255, by the weights of Rec. 709."""
    parts = [[int(colour[place : place + 2], 16) for place in (1, 3, 5)] for colour in colours]
    return [0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in parts]


@pytest.mark.skipif(shutil.which("node") is None, reason="node runs the program of the page without a browser")
def test_a_dark_heat_map_runs_from_dark_to_bright_and_is_printed_in_light_colours() -> None:
    """On a dark page what is idle is dark and what is busy is bright; paper has the palette of a light page."""
    command = ["node", "--input-type=module", "-e", IN_NODE, FIGURES.as_uri(), json.dumps(DESCRIPTION)]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    dark = answer["dark"]["attributes"]
    shades = _brightness(dark["palette"])
    assert shades == sorted(shades)
    assert (shades[0] < 5, shades[-1] > 240) == (True, True)
    assert dark["nan_color"] == "#2a313a"  # the dark grey of what is missing, not among them
    assert answer["dark"]["data"] == DESCRIPTION["data"]
    assert answer["once"] == answer["twice"] == list(figures.HEAT)


@pytest.mark.parametrize(
    ("words", "on_a_page"),
    [
        ("no drive tells both; give --waf", "no drive tells both; give “Write amplification”"),
        ("the window is empty: --to is not after --from", "the window is empty: “To” is not after “From”"),
        ("is not known (give --peak, or configure it)",
         "is not known (give the option --peak of the command, or configure it)"),
        ("those of 2012 (--calibration grace-2012); more",
         "those of 2012 (the option --calibration grace-2012 of the command); more"),
        ("ls --color=never a--from --from-here", "ls --color=never a--from the option --from-here of the command"),
    ],
)  # fmt: skip
def test_a_sentence_of_a_page_names_fields_instead_of_options(words: str, on_a_page: str) -> None:
    assert in_page_words(words) == on_a_page
    assert shell.trouble_html(words) == f'<p class="trouble">{on_a_page}</p>'


def test_a_command_in_a_sentence_of_a_page_keeps_its_options() -> None:
    text = shell.trouble_html("give --fswpd, or use `iolens blame --from 2026-01-05`")
    assert "give “File-system writes per day”, or use <code>iolens blame --from 2026-01-05</code>" in text


def test_fields_are_called_as_on_the_page() -> None:
    controls = "".join(
        path.read_text("utf-8") for path in sorted((FIGURES.parent.parent / "templates").glob("control_*"))
    )
    assert [label for label in FIELDS.values() if f">{label} <" not in controls and f'"{label}"' not in controls
            and f"<span>{label}</span>" not in controls] == []  # fmt: skip
