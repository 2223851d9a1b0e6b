"""Pages of a job and a user without a browser: the answer first, hostile names, nothing loaded, nobody named."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from iolens.analyses.job_page import DiskCost, JobCompany, JobPage, JobUse, LayerTotals, MissingPart, PageNeighbour
from iolens.analyses.runs.advise import AdviceLine
from iolens.analyses.user_page import UserDay, UserJob, UserPage, UserUse
from iolens.views.job_page import job_page_html
from iolens.views.report.page import ReportInfo
from iolens.views.user_page import user_page_html
from iolens.visible_text import shown_name
from tests.hostile_names import HOSTILE, SOURCES_OF_TROUBLE
from tests.views.test_hostile_names import is_harmless
from tests.views.test_report import Page

ABOUT = ReportInfo("1.2.3", datetime(2026, 1, 8, 3, 4, 5, tzinfo=UTC))
START, END = datetime(2026, 1, 6, 22, tzinfo=UTC), datetime(2026, 1, 7, tzinfo=UTC)
EVERY = pytest.mark.parametrize("name", SOURCES_OF_TROUBLE, ids=list(HOSTILE))
COST = DiskCost("job_stats", 2288.0, 18.9, 6.3, 34.5, 60.0, 21.1, ["own"])


def advice(name: str = "blastn", code: str = "small-accesses", runs: int = 1) -> AdviceLine:
    words = (
        f"72 % of 7,129,670 writes of {name} are 100 KiB or less",
        {},
        f"Move 1 MiB or more with each call in {name}.",
    )
    return AdviceLine(code, "warn", name, name, runs, 13.2, 2.39, 1.55, "like_runs", "1", "a", *words, "a study")


def a_job(name: str = "blastn") -> JobPage:
    neighbours = [PageNeighbour(False, None, None, None, 26.2, 45.0), PageNeighbour(True, name, name, name, 5.0, 9.0)]
    company = JobCompany([name], 24, 42.1, neighbours, 3, 2.0, 0.0)
    layers = [LayerTotals("log", 711 * 10**9, 808 * 10**9, 347_932), LayerTotals("servers", 1, 2, None, 3, 4)]
    return JobPage(
        job_id=name, cluster=name, user=name, project=name, name=name, programs=[name], state=name, start=START,
        end=END, times_from="record", nodes=2, cores=32, processes=32, core_hours=64.0, runs=1, io_core_hours=1.45,
        uses=[JobUse(name, layers, COST, company)], advice=[advice(name)], is_judged=True, explanation=None,
        missing=[MissingPart(f"what its nodes counted of {name}", f"nothing of {name} is stored")], notes=[name],
    )  # fmt: skip


def a_user(name: str = "chandra") -> UserPage:
    return UserPage(
        user=name, window_start=START, window_end=END, jobs=12, runs=11, core_hours=768.0, io_core_hours=17.4,
        read_bytes=10_800 * 10**9, write_bytes=13 * 10**12, uses=[UserUse(name, COST)],
        top_jobs=[UserJob(name, name, START, 7200.0, 64.0, 5, 7, 6938.0, 1)],
        days=[UserDay(date(2026, 1, 6), name, 21.6, 47_379.0, 5), UserDay(date(2026, 1, 7), name, None, None, None)],
        days_each=1, advice=[advice(name, runs=12)], is_judged=True, slow_runs=[],
        missing=[MissingPart(name, name)],
    )  # fmt: skip


def job_text(page: JobPage, zone: str | None = None) -> str:
    return Page(job_page_html(page, replace(ABOUT, timezone=zone))).text


def user_text(page: UserPage, zone: str | None = None) -> str:
    return Page(user_page_html(page, replace(ABOUT, timezone=zone))).text


def test_the_answer_of_a_job_comes_first() -> None:
    page = Page(job_page_html(a_job(), ABOUT))
    assert page.headings[:2] == ["Job blastn: blastn", "In short"]
    for words in (
        "Job blastn (blastn) of blastn ran 2 h on 2 nodes (64 core-hours); it read 711 GB and wrote 808 GB.",
        "It took 18.9 % of the disk time of blastn while it ran (2,288 s); the disks were 34.5 % busy in all.",
        "What to change first: 72 % of 7,129,670 writes of blastn are 100 KiB or less; up to 1.55 times faster I/O",
        "It moved only 6.3 % of the bytes of all jobs: its bytes were expensive",
    ):
        assert words in page.text


def test_commands_in_advice_are_code_and_nothing_else_is() -> None:
    """A directory may have any name; between the quotes of a shell it may hold a backtick."""
    sentence = "Run `lfs setstripe -c 8 '/s/<b>a`b'` first; `rm` and <i> are no commands of ours."
    html = job_page_html(replace(a_job(), advice=[replace(advice(), remedy=sentence)]), ABOUT)
    assert "Run <code>lfs setstripe -c 8 &#39;/s/&lt;b&gt;a`b&#39;</code> first; `rm` and &lt;i&gt; are" in html
    assert "<b>a" not in html


def test_a_slow_ost_is_not_of_the_programs_making() -> None:
    slow = replace(advice(code="slow-ost"), subject="OST 14 of /scratch", shares_time_with=["rank-imbalance"])
    text = job_text(replace(a_job(), advice=[slow]))
    assert "Not of the program's making: 72 % of 7,129,670 writes" in text
    assert "13.2 core-hours went into this part of the I/O, in part the same time as of rank-imbalance" in text


def test_the_answer_of_a_user_comes_first() -> None:
    page = Page(user_page_html(a_user(), ABOUT))
    assert page.headings[:2] == ["Storage use of chandra", "In short"]
    for words in (
        "From 2026-01-06 22:00 to 2026-01-07 00:00 UTC, chandra ran 12 jobs (768 core-hours); they read 10.8 TB",
        "They took 18.9 % of the disk time of chandra in this time (2,288 s)",
        "Seen in 12 runs of chandra. 13.2 core-hours went into this part of the I/O.",
        "about 2.39 core-hours could be saved",
    ):
        assert words in page.text


def test_times_are_in_the_zone() -> None:
    assert "2026-01-06 23:00 to 2026-01-07 01:00 Europe/Berlin (2 h)" in job_text(a_job(), "Europe/Berlin")
    assert "From 2026-01-06 23:00 to 2026-01-07 01:00 Europe/Berlin" in user_text(a_user(), "Europe/Berlin")


def test_neighbours_are_another_users_job_unless_the_result_names_them() -> None:
    text = job_text(a_job())
    assert "another user's job 26.2" in text
    assert "job blastn of the same user (blastn) 5.0" in text
    assert "3 further jobs 2.0" in text


@pytest.mark.parametrize(
    ("neighbour", "words"),
    [
        (PageNeighbour(None, None, None, None, 7.5, None), "a job whose user is not known 7.5"),
        (PageNeighbour(False, "9", "bo", "vasp", 7.5, None), "job 9 of bo (vasp) 7.5"),
        (PageNeighbour(None, "9", None, None, 7.5, None), "job 9 7.5"),
    ],
)
def test_a_neighbour_by_what_is_known_of_it(neighbour: PageNeighbour, words: str) -> None:
    (use,) = a_job().uses
    assert use.company is not None
    company = replace(use.company, neighbours=[neighbour])
    assert words in job_text(replace(a_job(), uses=[replace(use, company=company)]))


def test_association_is_called_so() -> None:
    (use,) = a_job().uses
    text = job_text(replace(a_job(), uses=[replace(use, cost=replace(COST, method="overlap"))]))
    assert "It took about 18.9 %" in text
    assert "That is association, not proof." in text
    assert "association" not in job_text(a_job())


def test_a_job_of_which_nothing_is_known() -> None:
    bare = replace(
        a_job(), uses=[], advice=[], is_judged=False, runs=0, nodes=None, cores=None, processes=None, core_hours=None,
        end=None,
    )  # fmt: skip
    text = job_text(bare)
    for words in (
        "was still running; what it moved is not known. How much disk time it took is not known.",
        "What could be better is not known: there is neither a Darshan log nor a count of the nodes.",
        "What is not known What its nodes counted of blastn: nothing of blastn is stored.",
    ):
        assert words in text


def test_a_user_without_anything_in_the_window() -> None:
    nothing = replace(a_user(), jobs=0, uses=[], top_jobs=[], days=[], advice=[], is_judged=False, missing=[])
    page = Page(user_page_html(nothing, ABOUT))
    assert "Nothing of chandra is stored from 2026-01-06 22:00 to" in page.text
    assert page.headings == ["Storage use of chandra", "In short"]


def test_three_findings_in_full_and_the_others_in_a_line() -> None:
    lines = [advice(code=f"code-{number}") for number in range(10)]
    page = Page(job_page_html(replace(a_job(), advice=lines), ABOUT))
    assert len([heading for heading in page.headings if "100 KiB or less" in heading]) == 3
    assert "(code-3);" in page.text
    assert "; and 2 more." in page.text


def test_nothing_found_and_by_what_it_was_judged() -> None:
    fine = replace(a_job(), advice=[])
    assert "Nothing was found that needs a change." in job_text(fine)
    assert "without a Darshan log only what the nodes counted could be judged" in job_text(replace(fine, runs=0))


def test_figures_are_still_and_no_program_is_in_the_page() -> None:
    html = user_page_html(a_user(), ABOUT)
    page = Page(html)
    assert page.all("script") == []
    assert page.all("nav") == []
    assert [str(image["src"])[:19] for image in page.all("img")] == ["data:image/svg+xml;"]
    assert not [tag for tag, attributes in page.tags if {"href", "srcset", "action"} & attributes.keys()]
    assert len(html) < 100_000


@EVERY
def test_hostile_names_are_shown_and_never_obeyed(name: str) -> None:
    for html in (job_page_html(a_job(name), ABOUT), user_page_html(a_user(name), ABOUT)):
        page = Page(html)
        assert page.all("script") == []
        assert [image for image in page.all("img") if not str(image["src"]).startswith("data:")] == []
        assert page.all("b") in ([], [{}])  # our own, of a figure's number
        assert is_harmless(page.text)
        assert shown_name(name).split()[0][:40] in page.text
        assert len(html) < 200_000
