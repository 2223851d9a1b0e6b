"""Names that try everything, on the pages of `iolens serve`: shown as they are, obeyed by nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from iolens.schema import size_column
from iolens.store.store import Store
from iolens.visible_text import visible
from tests.analyses.blame.test_blame import MIDNIGHT, Rows, job
from tests.hostile_names import HOSTILE
from tests.live.served_pages import PageVisit, RunningServer, page_paths, served
from tests.store.samples import capture

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.live

FILESYSTEM = '<img src=x onerror="window.owned=1">'
USER = HOSTILE["markup of pages"]
TICKS = range(MIDNIGHT - 1800, MIDNIGHT + 1800, 60)
LINES = 20  # of the table of users; the others are added up
OWNED = "() => window.owned ?? null"


def storable_names() -> list[str]:
    """Those that are text: a store refuses others."""
    return [name for name in HOSTILE.values() if not any("\ud800" <= character <= "\udfff" for character in name)]


def hostile_rows() -> Rows:
    """An hour of targets and jobs with such names, and a job with a plain id of a user, project and program of each."""
    rows = Rows()
    for number, name in enumerate(storable_names()):
        common = {"filesystem": FILESYSTEM, "target": name, "target_kind": "ost"}
        for start in TICKS:
            times = {"start": start, "time": start + 60, **common}
            ops = 100 + number
            rows.target_sizes.append({**times, size_column("write", 4096): ops, size_column("read", 1 << 20): number})
            rows.target_io.append({**times, "write_ops": ops, "write_bytes": 4096 * ops, "read_ops": number})
            for job_id in (name, str(1000 + number)):
                rows.job_io.append({**times, "job_id": job_id, "write_ops": ops // 2, "write_bytes": 4096 * (ops // 2)})
        rows.jobs += [job(job_id, name, name, name) for job_id in (name, str(1000 + number))]
    return rows


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of a store full of them."""
    folder = tmp_path_factory.mktemp("hostile")
    Store(folder / "store").ingest([capture(list(hostile_rows().items()), "made up")], "test")
    with served(folder / "store", folder / "state", "--no-alerts") as running:
        yield running


@pytest.mark.parametrize("page", page_paths())
def test_no_page_obeys_a_name(browser: Browser, server: RunningServer, page: str) -> None:
    names = {"filesystem": FILESYSTEM, "target": USER, "id": USER, "name": USER}
    with PageVisit(browser, server) as visit:
        visit.open(page_paths(**names)[page])
        assert visit.page.evaluate(OWNED) is None
        assert (
            visit.page.locator("main img, main b:not(.mark), main script:not([type='application/json'])").count() == 0
        )
        assert FILESYSTEM in visit.page.locator("nav.menu").inner_text()
        assert visit.complaints == []
        assert visit.foreign == []


def test_every_name_is_shown_and_what_has_a_link_opens(browser: Browser, server: RunningServer) -> None:
    with PageVisit(browser, server) as visit:
        visit.open(page_paths()["users"] + "?last=all")
        text = visit.page.locator("main").inner_text()
        shown = [name for name in storable_names() if " ".join(visible(name).split())[:20] in " ".join(text.split())]
        assert len(shown) >= LINES - 1  # the longest is cut
        links = [link.get_attribute("href") for link in visit.page.locator("tbody th a").all()]
        assert f"/users/{quote(USER)}" in links
        assert len(links) >= LINES / 2
        for address in links:
            answer = visit.page.request.get(f"{server.url}{address}")
            assert answer.status == 200, address
        visit.page.locator("tbody th a", has_text=USER).first.click()
        visit.wait()
        assert visit.page.locator("h1").inner_text() == USER
        assert visit.page.evaluate(OWNED) is None
        assert visit.complaints == []
