"""A real Chromium without a network: the system's own browser, driven by Playwright from PyPI."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tests.live.spark_cluster import ComponentMissing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PROGRAMS = ("chromium", "chromium-browser")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip
WIDE = (1440, 900)
NARROW = (390, 844)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """The browser, closed at the end."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise ComponentMissing("no chromium on PATH: install the package chromium")
    if find_spec("playwright") is None:
        raise ComponentMissing("playwright is not installed: pip install playwright (its own browsers are not needed)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One page in a context of its own: what it asked for, what it complained about."""

    def __init__(
        self, browser: Browser, path: Path, size: tuple[int, int] = WIDE, *, javascript: bool = True, script: str = ""
    ) -> None:
        self.context = browser.new_context(
            offline=True, viewport={"width": size[0], "height": size[1]}, java_script_enabled=javascript
        )
        if script:
            self.context.add_init_script(script)
        self.page: Page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("console", self._console)
        self.page.goto(path.as_uri())

    def _dialog(self, dialog: object) -> None:
        self.complaints.append(f"a dialog: {dialog}")
        dialog.dismiss()  # type: ignore[attr-defined]

    def _console(self, message: object) -> None:
        if message.type in ("error", "warning"):  # type: ignore[attr-defined]
            self.complaints.append(message.text)  # type: ignore[attr-defined]

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def draw_all(self) -> int:
        """Scroll to every figure until it is drawn; how many there are."""
        figures = self.page.locator("figure")
        for number in range(figures.count()):
            figures.nth(number).scroll_into_view_if_needed()
            figures.nth(number).locator(".live canvas").first.wait_for(state="visible", timeout=20_000)
        return figures.count()
