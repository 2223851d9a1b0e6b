import csv
import io
import math
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iolens.views.render import tables as t

COLUMNS = (
    t.text("target", "Target"), t.percent("mean_fsu_pct", "Mean FSU"), t.count("ios", "I/Os"),
    t.volume("read_bytes", "Read"), t.time("first_sample", "First"), t.day("date", "Day"),
)  # fmt: skip
ROWS = [
    ("OST0000", 12.3456789, 1234567, 133 * 10**12, datetime(2012, 10, 22, 19, 0, 5, tzinfo=UTC), date(2012, 10, 22)),
    ("OST0001|[red]", math.nan, None, None, None, None),
]
TABLE = t.TableView("Targets", COLUMNS, ROWS, "Two of them.")
FACTS = t.TableView("Facts", COLUMNS, ROWS, sideways=True)


def test_the_terminal_shows_units_and_a_dash_for_what_is_missing():
    lines = t.to_terminal([TABLE]).splitlines()
    assert lines[0] == "Targets"
    assert lines[1].split() == ["Target", "Mean", "FSU", "(%)", "I/Os", "Read", "First", "(UTC)", "Day"]
    assert lines[3].split() == ["OST0000", "12.3", "1,234,567", "133", "TB", "2012-10-22", "19:00:05", "2012-10-22"]
    assert lines[4].split() == ["OST0001|[red]", "–", "–", "–", "–", "–"]
    assert lines[5] == "Two of them."


def test_sideways_tables_put_the_unit_beside_the_value():
    text = t.to_terminal([FACTS])
    assert "Mean FSU      12.3 %                –\n" in text


def test_piped_text_has_no_escape_codes_nor_trailing_blanks():
    text = t.to_terminal([TABLE, FACTS])
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("width", [20, 60, 80, None])
def test_nothing_is_cut_off_at_any_width(width):
    names = [f"scratch-OST{i:04x}" for i in range(40)]
    columns = (t.text("targets", "Targets that did not report"), t.count("ios", "Input and output operations"))
    table = t.TableView("A table", columns, [(names, 123456789)], "A note that is longer than twenty columns, by far.")
    text = t.to_terminal([table], width)
    assert all(name in text for name in names)
    assert "123,456,789" in text
    assert "…" not in text
    if width in (60, 80):
        assert max(map(len, text.splitlines())) <= width


def test_a_number_is_not_parted_from_its_unit():
    note = "as 1 MiB I/Os would have kept it busy 8.3 % of the time"
    for width in range(12, 50):
        lines = t.to_terminal([t.TableView("", (), [], note)], width).splitlines()
        assert not any(line.startswith(("%", "MiB")) for line in lines)


def test_markdown_escapes_bars():
    text = t.to_markdown([TABLE])
    assert "| Target | Mean FSU (%) |" in text
    assert "| --- | ---: | ---: | ---: | --- | --- |" in text
    assert "| OST0001\\|[red] | – | – | – | – | – |" in text
    assert text.startswith("## Targets\n\n")
    assert text.endswith("Two of them.\n")


def test_csv_has_machine_names_and_plain_numbers():
    header, first, second = csv.reader(io.StringIO(t.to_csv(TABLE)))
    assert header == ["target", "mean_fsu_pct", "ios", "read_bytes", "first_sample", "date"]
    assert first == ["OST0000", "12.3456789", "1234567", "133000000000000", "2012-10-22T19:00:05Z", "2012-10-22"]
    assert second == ["OST0001|[red]", "", "", "", "", ""]


def test_parquet_types_do_not_depend_on_values():
    full = pq.read_table(io.BytesIO(t.to_parquet(TABLE)))
    none = pq.read_table(io.BytesIO(t.to_parquet(t.TableView("", COLUMNS, ROWS[1:]))))
    assert full.schema == none.schema
    assert full.schema.field("first_sample").type == pa.timestamp("us", tz="UTC")
    assert full.column("mean_fsu_pct").to_pylist() == [12.3456789, None]
    assert full.column("ios").to_pylist() == [1234567, None]
    assert full.to_pylist()[0]["first_sample"] == ROWS[0][4]


def test_lists_in_cells():
    table = t.TableView("", (t.text("a", "A"), t.text("b", "B")), [(["x", "y"], [])])
    assert t.to_csv(table) == "a,b\nx;y,\n"
    assert t.to_terminal([table]).splitlines()[3].split("  ")[0] == "x, y"
    assert "none" in t.to_terminal([table])


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0.0"), (0.031, "0.031"), (9.06, "9.1"), (100.0, "100.0"), (172.34, "172.3")]
)
def test_percentages(value, shown):
    assert t.show_percent(value) == shown


def test_colours_are_those_that_the_command_lets_through(monkeypatch):
    """Others would be shown as `\\x1b[…`: names of others are not obeyed."""
    from iolens.cli.visible_streams import VisibleStream

    monkeypatch.setenv("TERM", "xterm-256color")
    columns = tuple(t.text(name, name) for name in "abc")
    table = t.TableView("Title", columns, [("x" * 20,) * 3], "A note.", warnings=("careful",))
    text = t.to_terminal([table], 50, colour=True)
    assert "\x1b[1m" in text
    stream = VisibleStream(io.BytesIO(), "utf-8")
    stream.colours = True
    stream.write(text)
    stream.flush()
    assert stream.buffer.getvalue().decode() == text
