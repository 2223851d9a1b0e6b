"""Screenshots of the pages of `iolens serve` for the documentation: `scripts/serve_screenshots.py STORE [FOLDER]`.

STORE is that of `iolens demo --end 2026-01-07`. Needs Chromium, Playwright and Pillow; each picture has few colours, to
be small.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from iolens.api.demo import CULPRIT_ID, victim_id

if TYPE_CHECKING:
    from playwright.sync_api import Browser

IMAGES: Final = Path(__file__).parent.parent / "docs" / "images"
COLOURS: Final = 200
READY: Final = "main[data-ready=yes][aria-busy=false]"
SCRATCH: Final = "/filesystems/scratch"
CULPRIT: Final = "?who_from=2026-01-06T14:00:00Z&who_to=2026-01-06T16:00:00Z&who_by=job"


@dataclass(frozen=True, slots=True)
class Screenshot:
    """A page at some size; `below`: an element that is scrolled to first."""

    name: str
    path: str
    width: int = 1280
    height: int = 860
    scheme: Literal["light", "dark"] = "light"
    below: str = ""


SCREENSHOTS: Final = (
    Screenshot("centre", "/"),
    Screenshot("filesystem", SCRATCH),
    Screenshot("who", SCRATCH + CULPRIT, height=1100, below=".group figure"),
    Screenshot("job", f"/jobs/{victim_id()}", height=1000),
    Screenshot("plan", f"{SCRATCH}/plan", height=720),
    Screenshot("dark", SCRATCH, scheme="dark", below=".group figure"),
    Screenshot("narrow", "/", width=360, height=780),
)


def main(store: str, folder: str = str(IMAGES)) -> None:
    """Write `serve-NAME.png` of each."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with served(store) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        for screenshot in SCREENSHOTS:
            path = Path(folder) / f"serve-{screenshot.name}.png"
            path.write_bytes(small(taken(browser, url, screenshot)))
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
        browser.close()


@contextmanager
def served(store: str) -> Iterator[str]:
    """The address of a server of the store, which ends with the block; alerts are checked for the picture."""
    with tempfile.TemporaryDirectory(prefix="iolens-screenshots-") as state:
        program = str(Path(sys.executable).with_name("iolens"))
        command = [program, "serve", "--store", store, "--state", state, "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            ready = next(line for line in process.stderr if line.startswith("serving "))
            yield ready.rpartition(" at ")[2].partition(";")[0]
        finally:
            process.terminate()
            process.communicate()


def taken(browser: Browser, url: str, screenshot: Screenshot) -> bytes:
    """The screenshot as PNG with all its colours."""
    size = {"width": screenshot.width, "height": screenshot.height}
    context = browser.new_context(viewport=size, color_scheme=screenshot.scheme, device_scale_factor=1)
    page = context.new_page()
    page.goto(url + screenshot.path, timeout=120_000)
    page.wait_for_selector(READY, timeout=120_000)
    if "who_from" in screenshot.path:
        page.locator("#who").get_by_text(CULPRIT_ID).first.wait_for()
    if screenshot.below:
        page.locator(screenshot.below).first.evaluate(
            "(element) => scrollBy(0, element.getBoundingClientRect().top - 70)"
        )
    page.wait_for_timeout(500)  # figures paint
    picture = page.screenshot()
    context.close()
    return picture


def small(picture: bytes) -> bytes:
    """The picture with few colours."""
    from PIL import Image

    kept = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS).save(kept, "PNG", optimize=True)
    return kept.getvalue()


if __name__ == "__main__":
    main(*sys.argv[1:])
