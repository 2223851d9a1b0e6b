"""The JSON API, version 1: every question at `/api/v1/NAME`, its tables as CSV, its figures as pictures.

Keys are those of the command line with `--format json`, and so are the values; `as_of` is when the store was asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

from fastapi import APIRouter, Request
from fastapi.responses import Response

from iolens.errors import IolensError, UsageError
from iolens.nearest_names import not_among
from iolens.views.dashboard.blocks import named_figures, named_tables
from iolens.views.render.json_text import to_json
from iolens.views.render.shown_times import shown_in
from iolens.views.render.tables import to_csv
from iolens.web.answers import Answers, NobodyWaitsError, StoredAnswer
from iolens.web.inquiry import Inquiry
from iolens.web.parameters import UrlParameter
from iolens.web.permitted import heard_by, permitted, principal_of, seen_by
from iolens.web.questions import QUESTIONS, ServedQuestion
from iolens.web.replies import ReplyBody

ROOT: Final = "/api/v1"
PICTURES: Final = {".svg": "image/svg+xml", ".png": "image/png", ".pdf": "application/pdf"}
RATIONALE: Final = "plan/rationale"

Made = TypeVar("Made")


def api_router(answers: Answers) -> APIRouter:
    """Routes of all questions, each with its parameters in the description."""
    router = APIRouter(prefix=ROOT)
    for question in QUESTIONS.values():
        tag = question.name.partition("/")[0]
        shared: dict[str, Any] = {"tags": [tag], "methods": ["GET"]}
        router.add_api_route(
            f"/{question.name}", _json(answers, question), summary=question.summary, response_class=Response,
            operation_id=question.name.replace("/", "_"), openapi_extra=_described(question, "application/json"),
            description=f"The answer of `iolens {' '.join(question.command)} --format json`.", **shared,
        )  # fmt: skip
        router.add_api_route(
            f"/{question.name}.csv", _csv(answers, question), summary=f"{question.summary}: one table as CSV",
            operation_id=f"{question.name.replace('/', '_')}_csv", response_class=Response,
            openapi_extra=_described(question, "text/csv", TABLE), **shared,
        )  # fmt: skip
        if not question.has_figures:
            continue
        router.add_api_route(
            f"/{question.name}/figures/{{figure}}", _picture(answers, question), response_class=Response,
            summary=f"{question.summary}: a figure", operation_id=f"{question.name.replace('/', '_')}_figure",
            openapi_extra=_described(question, "image/svg+xml"), **shared,
        )  # fmt: skip
    router.add_api_route(
        f"/{RATIONALE}.pdf", _rationale(answers), summary="The design as a PDF", response_class=Response,
        operation_id="plan_rationale_pdf", openapi_extra=_described(QUESTIONS[RATIONALE], "application/pdf"),
        methods=["GET"], tags=["plan"],
    )  # fmt: skip
    return router


TABLE: Final = UrlParameter("table", "Name of the table [the main one]")


def _described(question: ServedQuestion, media_type: str, *more: UrlParameter) -> dict[str, Any]:
    """Parameters and answer of a route as OpenAPI has them."""
    parameters = [
        {
            "name": item.name, "in": "query", "required": item.is_needed, "description": item.meaning,
            "schema": {"type": "string"},
        }
        for item in (*question.known.values(), *more)
    ]  # fmt: skip
    shape = {"type": "object"} if media_type == "application/json" else {"type": "string"}
    return {
        "parameters": parameters,
        "responses": {"200": {"description": question.summary, "content": {media_type: {"schema": shape}}}},
    }


def asked(request: Request, name: str, *besides: str) -> Inquiry:
    """The inquiry of a request as its reader may ask it, without parameters that say how it is shown."""
    given: dict[str, str] = {}
    for key, value in request.query_params.multi_items():
        if key in given:
            raise UsageError(f"{key} is given twice")
        given[key] = value
    inquiry = Inquiry.of(name, {key: value for key, value in given.items() if key not in besides})
    return permitted(inquiry, principal_of(request.scope))


async def reply_of(
    answers: Answers,
    request: Request,
    inquiry: Inquiry,
    form: str,
    make: Callable[[StoredAnswer], ReplyBody],
    headers: dict[str, str] | None = None,
) -> Response:
    """What is sent, after a look at whose it is; `Age` is that of the answer. Nobody is waited for who has gone."""
    principal = principal_of(request.scope)

    async def contents() -> tuple[ReplyBody, StoredAnswer]:
        try:
            answer = seen_by(await answers.ask(inquiry, principal.name), principal)
        except IolensError as error:
            raise heard_by(error, inquiry, principal) from None
        known: ReplyBody | None = answer.known_form(form)
        if known is None:
            known = await answers.run(lambda _: answer.form(form, make), principal.name)
        return known, answer

    body, answer = await while_waited_for(request, contents())
    return body.reply(request, {"Age": str(int(answer.age_s)), **(headers or {})})


async def while_waited_for(request: Request, work: Coroutine[Any, Any, Made]) -> Made:
    """The result of some work; it is cancelled when the client has gone."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise NobodyWaitsError("the client has gone")
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _json(answers: Answers, question: ServedQuestion) -> Callable[..., Any]:
    async def reply(request: Request) -> Response:
        inquiry = asked(request, question.name)
        return await reply_of(answers, request, inquiry, "json", _json_contents)

    return reply


def _json_contents(answer: StoredAnswer) -> ReplyBody:
    return ReplyBody.of(to_json(answer.result, as_of=answer.as_of), "application/json")


def _csv(answers: Answers, question: ServedQuestion) -> Callable[..., Any]:
    async def reply(request: Request) -> Response:
        inquiry, table = asked(request, question.name, TABLE.name), request.query_params.get(TABLE.name, "")
        name = f"{question.name.replace('/', '-')}{'-' if table else ''}{table}.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return await reply_of(answers, request, inquiry, f"csv:{table}", lambda answer: _table(answer, table), headers)

    return reply


def _table(answer: StoredAnswer, wanted: str) -> ReplyBody:
    tables = {table.name: table for table in named_tables(answer.result)}
    if wanted and wanted not in tables:
        raise UsageError(f"no table {wanted!r} here{not_among(wanted, tables)}")
    if not tables:
        raise UsageError("there is no table here")
    chosen = tables[wanted] if wanted else next(iter(tables.values()))
    return ReplyBody.of(to_csv(chosen), "text/csv; charset=utf-8")


def _picture(answers: Answers, question: ServedQuestion) -> Callable[..., Any]:
    async def reply(request: Request, figure: str) -> Response:
        suffix = Path(figure).suffix or ".svg"
        if suffix not in PICTURES:
            raise UsageError(f"a figure is {', '.join(PICTURES)}, not {suffix}")
        name = figure.removesuffix(suffix)
        inquiry, form = asked(request, question.name), f"picture:{figure}"
        return await reply_of(answers, request, inquiry, form, lambda answer: _drawn(answer, name, suffix))

    return reply


def _drawn(answer: StoredAnswer, name: str, suffix: str) -> ReplyBody:
    from iolens.views.render.matplotlib_figure import to_bytes

    figures = named_figures(answer.result)
    if name not in figures:
        raise UsageError(f"no figure {name!r} here{not_among(name, figures)}")
    with shown_in(answer.inquiry.value("timezone")):
        return ReplyBody.of(to_bytes(figures[name](), suffix.removeprefix(".")), PICTURES[suffix])


def _rationale(answers: Answers) -> Callable[..., Any]:
    async def reply(request: Request) -> Response:
        headers = {"Content-Disposition": 'attachment; filename="rationale.pdf"'}
        return await reply_of(answers, request, asked(request, RATIONALE), "pdf", _pdf, headers)

    return reply


def _pdf(answer: StoredAnswer) -> ReplyBody:
    from iolens.api.plans.rationale import write_rationale

    with TemporaryDirectory(prefix="iolens-rationale-") as folder:
        (path,) = write_rationale(answer.result, Path(folder) / "rationale.pdf")
        return ReplyBody.of(path.read_bytes(), "application/pdf")
