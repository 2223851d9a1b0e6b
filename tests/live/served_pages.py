"""`iolens serve` in a process of its own, and visits of its pages that hear of every request and complaint."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from iolens.web.pages import PAGES
from tests.web.small_centre import OWN, OWN_JOB

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, Request, Response, Route

LONG_MS = 60_000
CHANGES = "/api/v1/changes"  # ends when the page is left, and that is no failure
READY = "main[data-ready=yes][aria-busy=false]"  # all that the last event asked for is shown


@dataclass(frozen=True)
class RunningServer:
    """A server at work, and the store it serves."""

    url: str
    store: Path


@contextlib.contextmanager
def served(store: Path, state: Path, *options: str) -> Iterator[RunningServer]:
    """A server on a free port; it is stopped at the end, and nothing is left of it."""
    command = [
        sys.executable, "-m", "iolens.cli.main", "serve", "--store", str(store), "--state", str(state),
        "--listen", "127.0.0.1:0", *options,
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ), cwd=state.parent)
    try:
        yield RunningServer(_address(process), store)
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _address(process: subprocess.Popen[str]) -> str:
    """From what the server says when it answers: `serving STORE at URL; …`."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("serving "):
            return line.rpartition(" at ")[2].partition(";")[0]
    raise AssertionError(f"the server did not start: {''.join(lines)}")


def page_paths(**names: str) -> dict[str, str]:
    """The path of every page with names filled in, by the name of the page."""
    usual = {"filesystem": "scratch", "target": "scratch-OST0001", "id": OWN_JOB, "name": OWN}
    filled = {key: quote(text) for key, text in (usual | names).items()}
    return {page.name: page.path.format(**filled) for page in PAGES}


class PageVisit:
    """Pages of a server in a context of their own, which reaches nothing else."""

    def __init__(
        self, browser: Browser, server: RunningServer, size: tuple[int, int] = (1280, 900), **settings: Any
    ) -> None:
        self.server = server
        self.context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **settings)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(LONG_MS)
        self.requests: list[str] = []
        self.foreign: list[str] = []
        self.complaints: list[str] = []
        self.context.route("**/*", self._route)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("response", self._response)
        self.page.on("requestfailed", self._failed)
        self.page.on("dialog", self._dialog)

    def __enter__(self) -> PageVisit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def open(self, path: str) -> PageVisit:
        """Go there and wait until all blocks are filled."""
        self.page.goto(self.server.url + path)
        self.wait()
        return self

    def wait(self) -> None:
        """Until all blocks are filled."""
        self.page.wait_for_selector(READY)

    def until(self, expression: str, argument: object = None) -> Any:
        """Poll a JavaScript function until it gives something true: Playwright's own way needs a laxer policy."""
        deadline = time.monotonic() + LONG_MS / 1000
        while not (value := self.page.evaluate(expression, argument)):
            assert time.monotonic() < deadline, f"still not so: {expression}"
            self.page.wait_for_timeout(50)
        return value

    def block(self, title: str) -> Locator:
        """The block with that heading."""
        return self.page.locator("[data-block]", has=self.page.get_by_role("heading", name=title, exact=True)).first

    def command(self, block: Locator) -> str:
        """The command that gives what a block shows."""
        return block.locator(".origin code").first.text_content() or ""

    def toggle_theme(self) -> None:
        """Light or dark, and every figure redrawn."""
        self.page.locator("#theme").click()
        self.wait()

    def _route(self, route: Route) -> None:
        if route.request.url.startswith((self.server.url, "data:", "blob:")):
            route.continue_()
        else:
            self.foreign.append(route.request.url)
            route.abort()

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status} {response.url}")

    def _failed(self, request: Request) -> None:
        if CHANGES not in request.url:
            self.complaints.append(f"{request.failure} {request.url}")

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


def drag(visit: PageVisit, begin: float, end: float) -> None:
    """Drag over a part of the first figure's time axis; `begin` and `end` are shares of the width of its frame."""
    left, width, middle = visit.until(FRAME)
    visit.page.mouse.move(left + width * begin, middle - 30)
    visit.page.mouse.down()  # from here on a live page waits
    visit.page.mouse.move(left + width * end, middle + 30, steps=6)
    visit.page.mouse.up()


# The frame of the first figure's first panel, which is brought into sight: its left edge, width and middle, in pixels.
FRAME = """() => {
  const figure = document.querySelector("figure.drawn:has(.live[data-drawn])");
  const [root] = figure?.roots.filter(({ model }) => model.children) ?? [];
  if (!root) return null;
  const panel = root.child_views[0];
  figure.scrollIntoView({ block: "nearest" });
  const box = panel.el.getBoundingClientRect();
  const { left, width, top, height } = panel.frame.bbox;
  return [box.left + left, width, box.top + top + height / 2];
}"""
# Whether every figure has something drawn on one of its canvases.
INKED = """() => [...document.querySelectorAll("figure.drawn .live")].every((box) => {
    const layers = [];
    const walk = (node) => {
      if (node.tagName === "CANVAS") layers.push(node);
      for (const below of [...(node.children ?? []), ...(node.shadowRoot?.children ?? [])]) walk(below);
    };
    walk(box);
    return layers.some((layer) => layer.width && layer.getContext("2d")
      .getImageData(0, 0, layer.width, layer.height).data.some((value) => value));
})"""
