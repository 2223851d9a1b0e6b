"""The server's answers: every URL of its API, its pages and what they link to, for every role and for nobody.

`iolens serve` itself starts it, with its options, tokens and middleware; where it would give its application to uvicorn
the application is asked here, in this process.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from comparison import product
from comparison.visible_page import links_of, visible_page

if TYPE_CHECKING:
    from comparison.driver import Session

OPENAPI: Final = "/api/v1/openapi.json"
HOST: Final = "127.0.0.1:8470"
ENDLESS: Final = ("/api/v1/changes",)  # the first news are the answer
UNTOLD_HEADERS: Final = frozenset(("age", "content-length", "date", "etag", "set-cookie"))
LIKE: Final = 3  # addresses that differ in names only: as many are asked
MOST_PAGES: Final = 400
HEALTH: Final = "/healthz"  # says what is under way
MOST_LOOKS, LOOK_S = 1200, 0.05
BRIEF: Final = ("nobody", "user", "operator")
READER: Final = "operator"  # who is shown everything; the crawl is this reader's
PLACES: Final = ("/", "/login", HEALTH, "/favicon.ico", "/no/such/page", "/api/v1/no-such-question", "/static/none")
FIGURES: Final = re.compile(r"there are: ([^\"]*)")

# What a parameter of the API is given, by its name; `{name}` is a value of the store. Those that a question needs are
# in each of its URLs; each of the others is tried alone.
PARAMETERS: Final[Mapping[str, str]] = {
    "after": "{middle}", "against": "{job}", "at": "{middle}", "at_most": "64KiB,1MiB", "author": "none",
    "before": "{middle}", "bootstrap": "3", "busiest": "1h", "by": "user", "calibration": "ours", "capacity": "30PB",
    "ceiling": "800", "classes": "0.3,1,3,10", "clock": "mtime", "cluster": "none", "compare": "none", "cores": "16,64",
    "cost_mdt": "400", "cost_ost": "150", "daily_growth": "133TB", "dom": "64KiB,1MiB", "drive_sizes": "3.2TB",
    "drives_of": "{filesystem}", "during": "{day}", "every": "1h", "exclusive": "1", "executable": "*",
    "figure": "none", "filesystem": "{filesystem}", "from": "{middle}", "fswpd": "0.02", "group_by": "host",
    "id": "{job}", "inode_size": "4KiB", "jobs": "{job}", "largest_file": "1TiB", "last": "1d", "layout": "8+2",
    "layout_mdt": "5+5", "layout_ost": "8+2", "metadata": "1", "method": "paper", "min_bytes": "1MiB",
    "min_coverage": "50", "min_processes": "1", "min_samples": "3", "model": "histogram", "most": "3", "name": "{user}",
    "names": "1", "new_capacity": "30PB", "owner": "{user}", "parts": "capacity", "peak": "35GB/s", "percentile": "99",
    "percentiles": "50,90", "plateau": "1", "project": "{project}", "purge_days": "14,84", "purge_every": "7",
    "purge_fraction": "0.4", "raid_block": "128KiB", "rated_dwpd": "3", "reference_capacity": "10PB",
    "reference_drive": "1.6TB", "resolution": "1h", "reverse": "1", "rmw": "1.2", "scan": "none", "sections": "rhythm",
    "significance": "0.05", "since": "{middle}", "skip": "2", "smaller": "1", "sort": "bytes", "source": "none",
    "ssi": "3", "state": "COMPLETED", "table": "none", "target": "{target}", "text": "{job}", "threshold": "80",
    "threshold_files": "1e9", "timezone": "Europe/Berlin", "title": "none", "to": "{middle}", "top": "3",
    "usable": "3=4TB", "user": "{user}", "waf": "2", "waf_limit": "2", "warranty": "4", "warranty_years": "4",
    "weight": "requests", "within": "1d,7d", "without": "{project}", "without_background": "1",
    "without_maintenance": "1", "without_project": "{project}",
}  # fmt: skip
ALSO: Final[Mapping[str, tuple[str, ...]]] = {"id": ("{other_job}", "{run_job}"), "name": ("{other_user}",)}


class Walked(BaseException):
    """The application was asked; there is nothing left to serve."""


@dataclass(slots=True)
class Reply:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)

    @property
    def text(self) -> str:
        """Status, the headers that matter, and what a reader sees."""
        headers = [f"{name}: {value}" for name, value in sorted(self.headers.items()) if name not in UNTOLD_HEADERS]
        return "\n".join([str(self.status), *headers, "", self._shown])

    @property
    def _shown(self) -> str:
        kind = self.headers.get("content-type", "")
        if bytes(self.body[: len(product.PICTURE)]) == product.PICTURE or not kind.startswith(
            ("image/", "application/pdf")
        ):
            text = self.body.decode("utf-8", "replace")
            return visible_page(text) if kind.startswith("text/html") else text
        return f"{kind} of {len(self.body)} bytes" if "pdf" not in kind else "a PDF"


def ask_server(session: Session) -> None:
    """Start the server, ask its application everything, and end it."""
    import uvicorn

    from comparison.driver import run

    roles = _tokens(session)

    def ask(app: Any, **_: Any) -> None:
        problem = None
        try:
            asyncio.run(walk(session, app, roles))
        except BaseException as error:
            problem = error
        raise Walked from problem  # past everything that explains errors

    uvicorn.Config = ask  # type: ignore[misc, assignment]
    try:
        outcome = run(["serve", "--listen", "127.0.0.1:0", "--store", "store", "--no-alerts"])
    except Walked as walked:
        if walked.__cause__ is not None:
            raise walked.__cause__ from None
        return
    raise SystemExit(f"the server did not start: {outcome.error} {outcome.text}")


def _tokens(session: Session) -> dict[str, str]:
    """A token of each role that there is, by a name; two of users: the owner of a job, and another."""
    from comparison.driver import run

    (command,) = (
        command for words, command in _commands() if words == ("serve", "token", "add")
    )  # the roles are its choices
    roles = next(parameter.type.choices for parameter in command.params if "--role" in parameter.opts)
    tokens = {"nobody": ""}
    for role in roles:
        for name in ("user", "other_user") if role == "user" else (role,):
            login = ("--user", str(session.values.get(name) or name)) if role == "user" else ()
            made = run(["serve", "token", "add", name, "--role", role, *login, "--store", "store"])
            words = re.findall(r"iolens_[A-Za-z0-9_-]{43}", made.text)
            tokens[name] = words[0] if words else ""
    return tokens


def _commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    import click

    from comparison.verbs import commands

    root = product.command_line()
    return commands(root, click.Context(root, info_name="iolens"))


async def walk(session: Session, app: Any, tokens: Mapping[str, str]) -> None:
    """Ask an application as each reader; tokens are by the reader's name."""
    client = _Client(app, tokens)
    walk = _Walk(session, client)
    await client.begin()
    described = await client.get(OPENAPI, READER)
    of_api = [*PLACES, OPENAPI, *_addresses(json.loads(bytes(described.body)), session.values)]
    addresses = dict.fromkeys([*of_api, *await walk.figures(of_api), *await walk.linked()])
    for role in tokens if not session.request["brief"] else BRIEF:
        for address in addresses:
            await walk.visit(address, role)
    await client.end()


def _addresses(described: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[str]:
    """URLs of the API as it describes itself: what each needs, then one more parameter at a time."""
    for path, methods in described["paths"].items():
        if "get" not in methods:
            continue
        known = methods["get"].get("parameters", ())
        needed = {item["name"] for item in known if item["required"]} | (
            {"filesystem"} & {item["name"] for item in known}
        )
        base = {name: text for name in sorted(needed) if (text := _parameter(name, values)) is not None}
        in_path = {name: base.pop(name, "none") for name in re.findall(r"\{(\w+)\}", path)}
        path = path.format(**in_path)
        yield _address(path, base)
        for name in sorted(needed & ALSO.keys()):
            yield from (
                _address(path, {**base, name: text})
                for other in ALSO[name]
                if (text := _value(other, values)) is not None
            )
        for other in values["filesystem"][1:] if "filesystem" in needed else ():
            yield _address(path, {**base, "filesystem": other})
        if path.endswith((".csv", ".pdf", "/figures/none")):  # which have the parameters of the question itself
            continue
        for name in sorted({item["name"] for item in known} - needed):
            if (text := _parameter(name, values)) is not None:
                yield _address(path, {**base, name: text})


def _parameter(name: str, values: Mapping[str, Any]) -> str | None:
    """What it is given; None: the store has no such value."""
    if name not in PARAMETERS:
        raise SystemExit(f"the API has a parameter {name!r}: say in {__name__}.PARAMETERS what it is given")
    return _value(PARAMETERS[name], values)


def _value(template: str, values: Mapping[str, Any]) -> str | None:
    names = re.findall(r"\{(\w+)\}", template)
    if not all(values.get(name) for name in names):
        return None
    return template.format(
        **{name: values[name][0] if isinstance(values[name], list) else values[name] for name in names}
    )


def _address(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


@dataclass(slots=True)
class _Walk:
    """Visits of the server, each sent once."""

    session: Session
    client: _Client
    visited: set[tuple[str, str]] = field(default_factory=set)

    def wants(self, address: str, role: str) -> bool:
        """Whether the answer is asked for."""
        return self.session.wants("server", f"{role} GET {address}")

    async def visit(self, address: str, role: str = READER) -> Reply:
        """Ask; send the answer if it is wanted and was not sent yet."""
        from comparison.driver import Outcome

        if (address, role) in self.visited or not self.wants(address, role):
            return Reply()
        self.visited.add((address, role))
        name, began, reply = f"server/{role} GET {address}", time.monotonic(), Reply()
        if role != READER and self.session.has(name):  # that reader's tell where to go on
            return reply
        self.session.begin(name)
        seconds = self.session.request["seconds"]
        try:
            reply = await asyncio.wait_for(self.page(address, role), seconds)
            outcome = Outcome(reply.text, "", reply.status)
        except TimeoutError:
            outcome = Outcome("", f"no answer in {seconds:g} s")
        except Exception as error:
            outcome = Outcome("", f"{type(error).__name__}: {error}", 500)
        self.session.send(name, outcome, time.monotonic() - began)
        return reply

    async def page(self, address: str, role: str) -> Reply:
        """A reply, when what it began is done: pages begin their first block, and soon too much would be asked."""
        reply = await self.client.get(address, role)
        for _ in range(MOST_LOOKS if not address.startswith(("/api/", "/blocks/")) else 0):
            state = json.loads(bytes((await self.client.get(HEALTH, role)).body))
            if not state.get("running") and not state.get("waiting"):
                break
            await asyncio.sleep(LOOK_S)
        return reply

    async def figures(self, addresses: list[str]) -> list[str]:
        """Of each question all its figures: asked for one that is not there, it names those that are."""
        figures = []
        for address in addresses:
            if "/figures/none" in address:
                reply = await self.visit(address)
                for names in FIGURES.findall(bytes(reply.body).decode("utf-8", "replace")):
                    figures += [address.replace("/none", f"/{quote(name.strip())}.svg") for name in names.split(",")]
        return figures

    async def linked(self) -> list[str]:
        """All pages and blocks, found by their links; of those that differ in names only a few."""
        values = self.session.values
        starts = ("/", *(f"/jobs/{values[name]}" for name in ("job", "other_job", "run_job") if values.get(name)))
        users = (f"/users/{quote(values[name], safe='')}" for name in ("user", "other_user") if values.get(name))
        waiting, visited, alike = [*starts, *users], list[str](), Counter[str]()
        while waiting and len(visited) < MOST_PAGES:
            address = waiting.pop(0)
            shape = _shape(address)
            alike[shape] += 1
            if address in visited or alike[shape] > LIKE:
                continue
            visited.append(address)
            if address.startswith(("/api/", "/static/")):
                continue
            is_page = not address.startswith("/blocks/")
            reply = await (self.page(address, READER) if is_page else self.visit(address))
            if reply.headers.get("content-type", "").startswith("text/html"):
                waiting += [link for link in links_of(bytes(reply.body).decode()) if not link.startswith("/static/")]
        return visited


def _shape(address: str) -> str:
    """The address without names: its first and third words, and which parameters it has."""
    parts = urlsplit(address)
    words = parts.path.split("/")
    if not parts.path.startswith(("/api/", "/blocks/")):
        words = [word if place != 2 else "…" for place, word in enumerate(words)][:4]
    query = dict(parse_qsl(parts.query))
    kept = {name: text for name, text in query.items() if name in ("show", "table", "by")}
    return f"{'/'.join(words)}?{urlencode(kept)}&{','.join(sorted(query))}"


class _Client:
    """Asks an ASGI application in the loop that runs, as the readers whose tokens are given."""

    def __init__(self, app: Any, tokens: Mapping[str, str]) -> None:
        self._app = app
        self._tokens = tokens
        self._events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._life: asyncio.Task[Any] | None = None

    async def begin(self) -> None:
        """Start the application."""
        started = asyncio.Event()

        async def send(message: Mapping[str, Any]) -> None:
            started.set()

        self._life = asyncio.create_task(
            self._app({"type": "lifespan", "asgi": {"version": "3.0"}}, self._events.get, send)
        )
        await self._events.put({"type": "lifespan.startup"})
        await started.wait()

    async def end(self) -> None:
        """Stop it."""
        await self._events.put({"type": "lifespan.shutdown"})
        if self._life is not None:
            await self._life

    async def get(self, address: str, reader: str) -> Reply:
        """The whole reply, or its beginning where it never ends."""
        parts, reply, gone = urlsplit(address), Reply(), asyncio.Event()
        headers = [(b"host", HOST.encode()), (b"accept", b"*/*")]
        if self._tokens[reader]:
            headers.append((b"authorization", f"Bearer {self._tokens[reader]}".encode()))
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
            "path": parts.path, "raw_path": parts.path.encode(), "query_string": parts.query.encode(),
            "root_path": "", "headers": headers, "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8470),
        }  # fmt: skip
        asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> dict[str, Any]:
            if (message := next(asked, None)) is not None:
                return message
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                reply.status = message["status"]
                reply.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
                return
            reply.body += message.get("body", b"")
            if reply.body and address.partition("?")[0] in ENDLESS:
                gone.set()

        await self._app(scope, receive, send)
        return reply


def state_folder() -> Path:
    """Where the server keeps its tokens: beside the store."""
    return Path("store-state")
