"""What readers with the role `user` get: the load of file systems, their own jobs, and nobody else's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import httpx
import pytest

from iolens.api import OpenStore
from iolens.api.page_names import names_in
from iolens.web.access.principal import LOCAL, Principal
from iolens.web.inquiry import Inquiry
from iolens.web.pages import PAGES
from iolens.web.permitted import REFUSED, NotPermittedError, may_ask, permitted, principal_of
from iolens.web.questions import QUESTIONS
from tests.web.inquiries import HOUR, INQUIRIES, SCRATCH
from tests.web.served_centre import ServedCentre
from tests.web.small_centre import OTHER, OTHER_JOB, OWN, OWN_JOB

ADA = Principal("ada's token", "user", "ada")
OF_JOBS = ("jobs", "jobs/list", "lost", "applications", *(name for name in QUESTIONS if name.startswith("runs/")))
CLOSED = [name for name, question in QUESTIONS.items() if not question.is_open_to_users]


@pytest.fixture(scope="module")
def strangers(centre: ServedCentre) -> list[str]:
    """Names of everybody else, of their projects, jobs and programs, that the own ones do not have as well."""
    with OpenStore(str(centre.store)) as opened:
        columns = [("jobs", name) for name in ("user", "project", "name")]
        columns += [("runs", name) for name in ("user", "executable")] + [("contents", "owner")]
        known = set().union(*(names_in(opened, table, column) for table, column in columns))
        own = {value for row in opened.store.jobs() if row["user"] == OWN for value in row.values()}
        own |= {"wrf.exe", "weather"}
        jobs = {str(row["job_id"]) for row in opened.store.jobs() if row["user"] != OWN}
    others = sorted({name for name in known if name not in own} | jobs)
    assert {OTHER, "genomes", "assemble.x", OTHER_JOB} <= set(others)
    assert OWN not in others
    return others


def bodies(centre: ServedCentre) -> Iterator[tuple[str, httpx.Response]]:
    """Everything that `own` can be tempted to ask, as JSON, CSV and block, with names of others in it or wrong."""
    tempting = {
        **{
            name: (*INQUIRIES[name], {"user": OTHER, **SCRATCH, "last": "1d"})
            for name in ("jobs", "jobs/list", "applications")
        },
        "lost": ({"user": OTHER}, {"user": "*"}),
        "runs/coverage": ({"user": OTHER}, {"project": "genomes"}),
        "runs/projects": ({"min_processes": "1"}, {"executable": "assemble.x"}),
        "job": ({"id": OWN_JOB, "names": "1"}, {"id": "7000003"}),
        "explain": ({"id": OWN_JOB}, {"id": OTHER_JOB}, {"id": "7000003"}),
        "user": ({"name": OTHER}, {"name": "marc"}, {"name": OWN, **HOUR}),
    }
    with centre.client("own") as client:
        for name, question in QUESTIONS.items():
            for values in tempting.get(name, INQUIRIES[name][:1]) if question.is_open_to_users else INQUIRIES[name][:1]:
                given = urlencode({key: text for key, text in values.items() if key in question.known})
                for path in (f"/api/v1/{name}", f"/blocks/{name}", f"/api/v1/{name}.csv"):
                    yield f"{path}?{given}", client.get(f"{path}?{given}")
        values = {"filesystem": "scratch", "target": "scratch-OST0001", "id": OWN_JOB, "name": OWN}
        for page in PAGES:
            yield page.path, client.get(page.path.format(**values))
        for path in ("/api/v1/openapi.json", f"/api/v1/explain/figures/timeline.svg?id={OWN_JOB}", "/nowhere"):
            yield path, client.get(path)


def test_no_body_names_anybody_else(centre: ServedCentre, strangers: list[str]) -> None:
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, strangers))})(?!\w)")
    seen: dict[str, int] = {}
    for address, answer in bodies(centre):
        seen[address] = answer.status_code
        asked = {OTHER, "marc"} if "trouble" in answer.text or answer.status_code != 200 else set()
        names = set(pattern.findall(answer.text)) - (asked & set(address.split("=")))
        assert not names, (address, names)
        assert "hidden-place" not in answer.text, address
    assert sum(status == 200 for status in seen.values()) > 60
    assert set(seen.values()) <= {200, 400, 403, 404}


def test_own_jobs_are_listed_whoever_is_asked_for(centre: ServedCentre) -> None:
    for user, owner in (("own", OWN), ("other", OTHER)):
        answer = centre.get("/api/v1/lost", user, params={"user": "*", "top": "1000"}).json()
        viewed = centre.get("/api/v1/lost", params={"user": owner, "top": "1000"}).json()
        assert answer == viewed
        assert answer["runs"] > 0
    everybody = centre.get("/api/v1/lost", params={"top": "1000"}).json()
    assert everybody["runs"] > answer["runs"]


def test_the_own_job_is_shown_and_others_sound_like_none(centre: ServedCentre) -> None:
    own = centre.get("/api/v1/explain", "own", params={"id": OWN_JOB})
    assert (own.status_code, own.json()["user"], own.json()["neighbours"]) == (200, OWN, [])
    assert centre.get("/api/v1/explain", params={"id": OWN_JOB}).json()["neighbours"]  # a viewer sees them
    for name in ("job", "explain"):
        refused = [centre.get(f"/api/v1/{name}", "own", params={"id": number}) for number in (OTHER_JOB, "7000003")]
        assert {(answer.status_code, answer.text) for answer in refused} == {(403, f'{{"error":"{REFUSED}"}}')}
    for login in (OTHER, "nobody"):
        answer = centre.get("/api/v1/user", "own", params={"name": login})
        assert (answer.status_code, answer.json()) == (403, {"error": REFUSED})
    block = centre.get("/blocks/explain", "own", params={"id": OTHER_JOB})
    assert block.text == f'<p class="trouble">{REFUSED}</p>'


@pytest.mark.parametrize("name", CLOSED)
def test_what_is_of_everybody_is_refused(centre: ServedCentre, name: str) -> None:
    for path in (f"/api/v1/{name}", f"/api/v1/{name}.csv", f"/blocks/{name}"):
        assert centre.get(path, "own", params=INQUIRIES[name][0]).status_code == 403


def test_pages_of_a_user_have_only_what_is_open(centre: ServedCentre) -> None:
    text = centre.get("/filesystems/scratch", "own").text
    menu = re.findall(r'<a href="([^"]+)"', text.partition('<nav aria-label="Menu"')[2].partition("</nav>")[0])
    assert menu == ["/", "/filesystems/scratch", "/filesystems/scratch2", "/jobs", "/applications"]
    tabs = text.partition('<nav aria-label="Tabs"')[2].partition("</nav>")[0]
    assert re.findall(r'<a href="([^"]+)"', tabs) == ["/filesystems/scratch"]
    assert 'id="who"' not in text
    assert 'data-block="/blocks/alerts' not in centre.get("/", "own").text
    assert 'data-block="/blocks/alerts' in centre.get("/").text


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_user_asks_for_the_own_name_or_not_at_all(name: str) -> None:
    needed = {key: "ada" for key, parameter in QUESTIONS[name].known.items() if parameter.is_needed}
    asked = Inquiry.of(name, {**needed, **({"names": "1"} if "names" in QUESTIONS[name].known else {})})
    assert permitted(asked, Principal("v", "viewer")) == asked
    if name in CLOSED:
        with pytest.raises(NotPermittedError, match=REFUSED):
            permitted(asked, ADA)
        return
    allowed = permitted(asked, ADA)
    assert allowed.value("user") == ("ada" if name in OF_JOBS else None)
    assert allowed.value("names") is None


@pytest.mark.parametrize("login", ["", "*", "a*", "?", "a,b", ",", " ada", "(unknown)", None])
@pytest.mark.parametrize("name", OF_JOBS)
def test_a_login_that_could_mean_several_people_sees_nothing(login: str | None, name: str) -> None:
    with pytest.raises(NotPermittedError):
        permitted(Inquiry.of(name, {}), Principal("p", "user", login))


def test_agents_ask_nothing_and_whoever_is_not_named_is_local() -> None:
    assert not any(may_ask(name, Principal("a", "agent")) for name in QUESTIONS)
    assert not may_ask("nonsense", Principal("v", "viewer"))
    assert principal_of({}) is LOCAL
