"""Style sheets and programs: everything that pages name is sent, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolens import __version__
from iolens.web.static_files import TYPES, VIEWS, _places
from tests.web.served_centre import ServedCentre

PAGES = ("/", "/filesystems/scratch", "/alerts", "/nowhere", "/login")


def test_every_file_that_a_page_names_is_sent(centre: ServedCentre) -> None:
    named = {place for path in PAGES for place in re.findall(r'(?:src|href)="(/static/[^"]+)"', centre.get(path).text)}
    named |= set(re.findall(r'href="(/static/[^"]+)"', centre.get("/api/v1/silences", "own", "DELETE").text))
    refused = centre.get("/users", "own")
    assert refused.status_code == 403
    named |= set(re.findall(r'href="(/static/[^"]+)"', refused.text))
    assert {Path(place).name for place in named} >= {
        "parts.css", "dashboard.css", "theme.js", "dashboard.js", "bokeh.min.js", "zoom.js", "icon.svg",
    }  # fmt: skip
    for place in named:
        answer = centre.get(place, "")  # without a token: the page of the log-in needs them
        assert answer.status_code == 200, place
        assert answer.headers["content-type"].startswith(TYPES[Path(place).suffix])
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert f"/{__version__}/" in place


def test_modules_that_programs_import_are_sent(centre: ServedCentre) -> None:
    for path in (VIEWS / "dashboard" / "static").glob("*.js"):
        for name in re.findall(r'from "\./([^"]+)"', path.read_text("utf-8")):
            assert centre.get(f"/static/{__version__}/{name}", "").status_code == 200


@pytest.mark.parametrize(
    "path",
    ["x/nothing.js", "x/shell.py", "x/..%2f..%2fshell.py", "x/page.html.jinja", "x", "x/", "dashboard.css",
     "x/%2e%2e/%2e%2e/pyproject.toml", "x/dashboard.css/more"],
)  # fmt: skip
def test_nothing_else_is_sent(centre: ServedCentre, path: str) -> None:
    assert centre.get(f"/static/{path}", "").status_code in (400, 404)


def test_no_file_is_sent_of_which_the_type_is_not_known() -> None:
    assert {path.suffix for path in _places().values()} <= set(TYPES)
    assert all(path.is_file() for path in _places().values())
