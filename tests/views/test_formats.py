import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from iolens.errors import IolensError, UsageError
from iolens.views.render import atomic
from iolens.views.render.formats import FORMATS, draw_figures, figures_of, render, tables_of

from .results import busy_day, compared, empty

RESULTS = {"day": busy_day, "compare": compared, "empty": empty}


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("form", FORMATS)
def test_every_result_in_every_format(form, result, tmp_path):
    path = tmp_path / "out"
    render(RESULTS[result](), form, path)
    assert path.stat().st_size > 100
    assert b"nan" not in path.read_bytes().lower().replace(b"nano", b"")
    assert [child.name for child in tmp_path.iterdir()] == ["out"]


def test_standard_output_and_a_file_get_the_same(tmp_path, capsys):
    for form in ("table", "json", "csv", "markdown"):
        render(busy_day(), form)
        render(busy_day(), form, tmp_path / form)
        assert capsys.readouterr().out == (tmp_path / form).read_text(encoding="utf-8")


def test_csv_is_one_line_per_file_system(capsys):
    render(compared(), "csv")
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.startswith("filesystem,window_start,window_end,model,targets,samples,")
    assert [line.split(",")[0] for line in lines] == ["scratch", "scratch2"]
    assert lines[0].split(",")[1] == "2012-10-22T00:00:00Z"


def test_parquet_reads_back(tmp_path):
    render(busy_day(), "parquet", tmp_path / "u.parquet")
    (row,) = pq.read_table(tmp_path / "u.parquet").to_pylist()
    assert row["filesystem"] == "scratch"
    assert row["busy_time_pct"] == busy_day().busy_time_pct


def test_json_reads_back(capsys):
    render(empty(), "json")
    assert json.loads(capsys.readouterr().out)["mean_fsu_pct"] is None


def test_parquet_never_goes_to_standard_output():
    with pytest.raises(UsageError, match="--output"):
        render(busy_day(), "parquet")


def test_parquet_never_goes_to_a_terminal():
    leader, follower = os.openpty()
    try:
        with pytest.raises(UsageError, match="terminal"):
            render(busy_day(), "parquet", Path(os.ttyname(follower)))
    finally:
        os.close(leader)
        os.close(follower)


def test_an_unknown_format_lists_the_known():
    with pytest.raises(UsageError, match="table, json, csv, parquet, markdown"):
        render(busy_day(), "yaml")  # type: ignore[arg-type]


def test_a_terminal_gets_bold_titles_within_its_width(monkeypatch):
    class Terminal(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "72")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    render(busy_day(), "table")
    text = screen.getvalue()
    assert "\x1b[1m" in text
    plain = text.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert max(map(len, plain.splitlines())) <= 72


def test_a_stream_without_unicode_gets_question_marks_not_an_error(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    render(empty(), "table")
    stream.seek(0)
    assert "Mean FSU              ?" in stream.read()


def test_a_written_file_keeps_links_and_ordinary_permissions(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    before = os.umask(0o022)
    try:
        render(empty(), "json", link)
    finally:
        os.umask(before)
    assert link.is_symlink()
    assert json.loads(real.read_text())["filesystem"] == "scratch"
    assert stat.S_IMODE(real.stat().st_mode) == 0o644


def test_a_failed_write_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "u.json"
    path.write_text("old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(IolensError, match=r"u\.json: cannot be written: No space left on device"):
        atomic.write(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_directory_is_explained(tmp_path):
    with pytest.raises(IolensError, match="cannot be written: No such file or directory"):
        render(empty(), "json", tmp_path / "none" / "u.json")


def test_a_device_is_written_to_directly():
    render(empty(), "json", Path(os.devnull))
    assert Path(os.devnull).is_char_device()


def test_the_first_figure_is_the_default_and_names_are_checked(tmp_path):
    result = empty()
    assert list(figures_of(result)) == ["bandwidth", "histogram", "sizes", "heatmap"]
    assert draw_figures(result, [f"{tmp_path}/a=b.svg", f"sizes={tmp_path}/s.svg"])[1] == tmp_path / "s.svg"
    assert "utilization and bandwidth" in (tmp_path / "a=b.svg").read_text()
    assert "by size" in (tmp_path / "s.svg").read_text()
    with pytest.raises(UsageError, match="bandwidth, heatmap, histogram, sizes"):
        draw_figures(result, ["nonsense=x.svg"])


def test_nothing_is_drawn_when_one_request_is_wrong(tmp_path):
    with pytest.raises(UsageError, match=r"\.html, \.pdf, \.png, \.svg"):
        draw_figures(empty(), [f"{tmp_path}/good.svg", f"{tmp_path}/bad.gif"])
    assert list(tmp_path.iterdir()) == []


def test_views_are_found_by_the_name_of_the_analysis():
    assert tables_of(empty())[0].title == "scratch: file system utilization (calibration class)"


def test_formats_are_cheap_to_import():
    heavy = "{'numpy', 'rich', 'pyarrow', 'matplotlib', 'bokeh'}"
    modules = ", ".join(f"iolens.views.render.{name}" for name in ("formats", "figures", "tables", "json_text"))
    code = f"import sys, {modules}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
