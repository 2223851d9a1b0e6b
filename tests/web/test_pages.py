"""The table of pages against the views: every question, table, figure and sentence that is named can be shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolens import views
from iolens.views.render.view_names import view_module
from iolens.web.pages import BY_NAME, PAGES, Block, Page
from iolens.web.questions import QUESTIONS

VIEWS = Path(views.__file__).parent
OTHER_NAMES = {  # of views that are not called as their question
    "jobs": "job_search", "jobs/list": "job_list", "job": "job_page", "user": "user_page",
    "applications": "job_applications", "sources": "source_list", "agents": "hub_state", "filesystems": "centre_state",
}  # fmt: skip


def every_block(page: Page) -> tuple[Block, ...]:
    return (*page.blocks, *page.each, *page.glance)


BLOCKS = [(page, block) for page in PAGES for block in every_block(page)]
SHOWS = sorted({(block.question, show) for _, block in BLOCKS for show in block.shows})


def view_of(question: str) -> str:
    return OTHER_NAMES.get(question, question.replace("/", "_"))


def sources_of(view: str) -> str:
    """What a view is made of, with what several share."""
    folders = [path for folder in (VIEWS / view, VIEWS / "render") for path in folder.glob("*.py")]
    modules = [VIEWS / f"{view}.py", *([VIEWS / "runs.py"] if view.startswith("runs_") else [])]
    return "\n".join(path.read_text("utf-8") for path in (*folders, *modules) if path.exists())


def is_there(view: str, show: str) -> bool:
    kind, _, name = show.partition(":")
    if kind == "figure":
        return name in view_module(view, "figures").FIGURES
    if kind == "table":
        return re.search(rf'(name=|, )"{name}"', sources_of(view)) is not None
    if kind == "answer":
        return f'Answer("{name}"' in sources_of(view)
    if kind == "chapters":
        return "def chapters(" in sources_of(view)
    if kind == "tables":
        return hasattr(view_module(view, "tables"), "tables")
    return f"def report_{kind}(" in sources_of(view)


@pytest.mark.parametrize(("question", "show"), SHOWS)
def test_what_a_block_shows_is_in_the_view_of_its_question(question: str, show: str) -> None:
    assert is_there(view_of(question), show)


@pytest.mark.parametrize(("page", "block"), BLOCKS, ids=lambda item: item.name if isinstance(item, Page) else "")
def test_values_of_blocks_can_be_read(page: Page, block: Block) -> None:
    known = QUESTIONS[block.question].known
    for name, text in block.values.items():
        assert known[name].read(text or "x") is not None


def test_every_page_has_a_path_of_its_own_and_a_way_to_it() -> None:
    assert len({page.path for page in PAGES}) == len(PAGES) == len(BY_NAME)
    from_links = {"target", "job", "user"}  # names in tables lead there
    assert {page.name for page in PAGES if not page.menu and not page.tab} == from_links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_reader_sets_is_taken_by_a_block(page: Page) -> None:
    known = {name for block in every_block(page) for name in QUESTIONS[block.question].known}
    assert set(page.usual) <= known
    assert set(page.parameters) <= known
    assert set(re.findall(r"{(\w+)}", page.path)) <= known
