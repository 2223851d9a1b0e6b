"""Pages and their blocks: shells with the addresses of their blocks, and what each block shows of its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from iolens.errors import IolensError, UsageError
from iolens.nearest_names import not_among
from iolens.units import iso
from iolens.views.dashboard.blocks import shown_tables
from iolens.views.dashboard.shell import (
    BlockAnswer,
    BlockFrame,
    BlockGroup,
    MenuEntry,
    PageFrame,
    block_html,
    message_html,
    page_html,
    trouble_html,
)
from iolens.visible_text import visible
from iolens.web.access.permissions import may
from iolens.web.access.principal import Principal
from iolens.web.answers import Answers, StoredAnswer
from iolens.web.api_routes import ROOT, asked, reply_of
from iolens.web.inquiry import ENDS, Inquiry
from iolens.web.pages import PAGES, Block, Page
from iolens.web.permitted import may_ask, permitted, principal_of
from iolens.web.questions import QUESTIONS
from iolens.web.replies import ReplyBody, message_of

SHOWN: Final = ("show", "takes")  # parameters of a block that say how it is shown
NO_DATA: Final = "The store holds no data of a file system yet."
MOST_SHOWN: Final = 200  # characters


def page_router(answers: Answers, store_url: str) -> APIRouter:
    """Routes of all pages and blocks."""
    router = APIRouter(include_in_schema=False)
    for page in PAGES:
        router.add_api_route(_route(page), _page(answers, page), methods=["GET"], response_class=HTMLResponse)
    for name in QUESTIONS:
        router.add_api_route(f"/blocks/{name}", _block(answers, name, store_url), methods=["GET"])
    return router


# Pages


def _route(page: Page) -> str:
    """Its path; the last name in it may have slashes where no other page lies below."""
    has_pages_below = any(other.path.startswith(f"{page.path}/") for other in PAGES)
    return page.path if has_pages_below or not page.path.endswith("}") else f"{page.path[:-1]}:path}}"


def _page(answers: Answers, page: Page) -> Callable[..., Any]:
    async def reply(request: Request) -> Response:
        names, principal = await answers.filesystems(), principal_of(request.scope)
        of_path = dict(request.path_params)
        own = of_path.get("filesystem")
        if own is not None and own not in names:
            words = f"There is no file system {own!r} here{not_among(own, names)}."
            return HTMLResponse(message_html("Not found", words), 404)
        given = {key: value for key, value in request.query_params.items() if key in (*page.parameters, *ENDS)}
        frame = _frame(page, of_path, given, names, principal)
        _ask_ahead(answers, frame, given, principal)
        return HTMLResponse(page_html(frame))

    return reply


def _ask_ahead(answers: Answers, frame: PageFrame, given: Mapping[str, str], principal: Principal) -> None:
    """The answer of the first block is begun before the browser has loaded what it asks for it with."""
    first = next((block for group in frame.groups for block in group.blocks if not block.is_closed), None)
    if first is None or "plan" in frame.controls:  # which asks with what its sliders say
        return
    address = urlsplit(first.address)
    values = dict(parse_qsl(address.query))
    taken = {name: text for name, text in given.items() if text and name in values.get("takes", "").split(",")}
    ends = ENDS if any(end in taken for end in ENDS) else ()
    asked = {name: text for name, text in values.items() if name not in (*SHOWN, *ends)} | taken
    with suppress(IolensError):  # the block says what is wrong
        answers.prepare(permitted(Inquiry.of(address.path.removeprefix("/blocks/"), asked), principal), principal.name)


def _frame(
    page: Page, of_path: Mapping[str, str], given: Mapping[str, str], names: Sequence[str], principal: Principal
) -> PageFrame:
    own = of_path.get("filesystem", "")

    def of_every(blocks: Sequence[Block]) -> list[BlockGroup]:
        """The blocks of every file system."""
        return [
            BlockGroup(
                _frames(page, blocks, {**of_path, "filesystem": name}, principal),
                name,
                f"/filesystems/{quote(name, '')}",
            )
            for name in (names if blocks else ())
        ]

    groups = [BlockGroup(_frames(page, page.blocks, of_path, principal)), *of_every(page.each)]
    return PageFrame(
        name=page.name,
        title=page.title.format(**of_path),
        groups=[group for group in groups if group.blocks],
        glances=of_every(page.glance),
        menu=_menu(page, names, own, principal),
        tabs=_tabs(page, own, principal) if own else (),
        controls=[control for control in page.controls if control != "who" or may_ask("blame", principal)],
        values={**({} if any(end in given for end in ENDS) else page.usual), **given},
        filesystem=own,
        reader=principal.name,
        can_log_out=principal.name != "local",
        can_change=principal.role == "operator",
        notice="" if names else NO_DATA,
    )


def _frames(page: Page, blocks: Sequence[Block], of_path: Mapping[str, str], principal: Principal) -> list[BlockFrame]:
    return [
        BlockFrame(block.title, _address(page, block, of_path), block.half, block.closed)
        for block in blocks
        if may_ask(block.question, principal)
    ]


def _address(page: Page, block: Block, of_path: Mapping[str, str]) -> str:
    """With the values of the path and those that are usual; `takes`: what the page's own address may set."""
    known = QUESTIONS[block.question].known
    has_window = any(end in block.values for end in ENDS)
    usual = {name: text for name, text in page.usual.items() if not (has_window and name in ENDS)}
    values = {**usual, **of_path, **block.values}
    ends = () if has_window else ENDS
    taken = [name for name in (*ends, *page.parameters, "timezone") if name in known and name not in block.values]
    query = {name: text for name, text in values.items() if name in known and text}
    query |= {"show": ",".join(block.shows)} | ({"takes": ",".join(taken)} if taken else {})
    return f"/blocks/{block.question}?{urlencode(query)}"


def _menu(page: Page, names: Sequence[str], own: str, principal: Principal) -> list[MenuEntry]:
    open_to = [other for other in PAGES if other.menu and _is_open(other, principal)]
    entries = [MenuEntry(other.menu, other.path, other is page) for other in open_to]
    systems = [MenuEntry(name, f"/filesystems/{quote(name, '')}", name == own) for name in names]
    return [*entries[:1], *systems, *entries[1:]]


def _is_open(page: Page, principal: Principal) -> bool:
    has_block = any(may_ask(block.question, principal) for block in (*page.blocks, *page.each))
    return has_block and may(principal, "GET", page.path)


def _tabs(page: Page, own: str, principal: Principal) -> list[MenuEntry]:
    return [
        MenuEntry(other.tab, other.path.format(filesystem=quote(own, "")), other is page)
        for other in PAGES
        if other.tab and _is_open(other, principal)
    ]


# Blocks


def _block(answers: Answers, name: str, store_url: str) -> Callable[..., Any]:
    async def reply(request: Request) -> Response:
        try:
            inquiry, shows = asked(request, name, *SHOWN), _shows(request)
            form = f"block:{','.join(shows)}"
            return await reply_of(answers, request, inquiry, form, lambda answer: _shown(answer, shows))
        except IolensError as error:
            return HTMLResponse(trouble_html(message_of(error, store_url)))

    return reply


def _shows(request: Request) -> tuple[str, ...]:
    text = request.query_params.get("show", "tables")
    if len(text) > MOST_SHOWN:
        raise UsageError(f"show: {len(text):,} characters; at most {MOST_SHOWN}")
    return tuple(text.split(","))


def _shown(answer: StoredAnswer, shows: tuple[str, ...]) -> ReplyBody:
    inquiry, result = answer.inquiry, answer.result
    address = f"{ROOT}/{inquiry.name}"
    csv = {
        table.name: f"{address}.csv?{urlencode([*inquiry.values, ('table', table.name)])}"
        for table in shown_tables(result, shows)
        if table.name
    }
    ends = _ends(answer)
    shown = BlockAnswer(
        result=result,
        shows=shows,
        made=answer.made,
        json=f"{address}?{inquiry.query}",
        csv=csv,
        command=visible(inquiry.command(answer.scope)),
        ends=ends,
        window=f"?{urlencode({'from': ends[0], 'to': ends[1]})}" if ends else "",
        timezone=inquiry.value("timezone"),
        note=answer.note,
    )
    return ReplyBody.of(block_html(shown), "text/html; charset=utf-8")


def _ends(answer: StoredAnswer) -> tuple[str, str] | None:
    """From when to when the answer is, as its scope says, else its result."""
    scope, result = answer.scope, answer.result
    since = scope.since or getattr(result, "window_start", None)
    until = scope.until or getattr(result, "window_end", None)
    return (iso(since), iso(until)) if since is not None and until is not None else None
