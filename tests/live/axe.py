"""axe-core from npm, kept between sessions: looks for barriers in a page."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tests.live.spark_cluster import ComponentMissing

if TYPE_CHECKING:
    from playwright.sync_api import Page

PACKAGE = "axe-core@4"
FILE = Path("node_modules", "axe-core", "axe.min.js")
INSTALL_S = 120
RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  const where = ({ html, any, all }) => `${html.slice(0, 160)} (${[...any, ...all].map(({ message }) => message)})`;
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 5).map(where).join(" | ")}`);
}"""


@cache
def axe_script() -> str:
    """The program; ComponentMissing where it is neither there nor can be installed."""
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cached / "iolens-test" / "axe" / FILE
    if not path.is_file():
        _install(path.parents[len(FILE.parts) - 1])
    return path.read_text("utf-8")


def _install(folder: Path) -> None:
    if shutil.which("npm") is None:
        raise ComponentMissing("axe-core needs npm: install the package npm")
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_S)
    if done.returncode or not (folder / FILE).is_file():
        raise ComponentMissing(f"axe-core could not be installed: {done.stderr[-500:]}")


def barriers(page: Page) -> list[str]:
    """Serious and critical violations, with the elements that have them."""
    page.evaluate(axe_script())
    violations: list[str] = page.evaluate(RUN)
    return violations
