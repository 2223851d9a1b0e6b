"""What readers with the role `user` get: the load of file systems, their own jobs, and nobody else's name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode

import httpx
import pytest

from iolens.api import OpenStore
from iolens.api.page_parts import names_in
from iolens.question import EVERYBODY, FILE, STAFF, Gathered, Means, Option, Question, Rights, question
from iolens.question import OWN as OWN_RIGHTS
from iolens.questions import all_questions
from iolens.web.access.principal import LOCAL, Principal
from iolens.web.inquiry import Inquiry
from iolens.web.pages import PAGES
from iolens.web.parameters import UrlParameter
from iolens.web.permitted import REFUSED, NotPermittedError, may_ask, permitted, principal_of
from iolens.web.questions import QUESTIONS, ServedQuestion
from tests.web.inquiries import INQUIRIES, Values
from tests.web.served_centre import ServedCentre
from tests.web.small_centre import OTHER, OTHER_JOB, OWN, OWN_JOB

ADA = Principal("ada's token", "user", "ada")
VIEWER = Principal("v", "viewer")
PERSONS = ("ada", OTHER, "*", f"ada,{OTHER}")
OF_JOBS = [name for name, question in QUESTIONS.items() if question.rights.own]
CLOSED = [name for name, question in QUESTIONS.items() if not question.rights.is_open_to_users]


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


TEMPTING: dict[Means, tuple[str, ...]] = {
    "person": (OTHER, "*", "marc", OWN), "others": ("1",), "job": (OWN_JOB, OTHER_JOB, "7000003"),
    "project": ("genomes",),
}  # fmt: skip
MORE: dict[str, tuple[Values, ...]] = {"runs/projects": ({"min_processes": "1"}, {"executable": "assemble.x"})}


def tempting(name: str) -> Iterator[Values]:
    """What is asked of a question; of one about the own jobs, with others in each parameter that can name somebody."""
    served, first = QUESTIONS[name], INQUIRIES[name][0]
    if name in CLOSED or served.rights.public:
        yield first
        return
    yield from (*INQUIRIES[name], *MORE.get(name, ()))
    bare = {key: text for key, text in first.items() if key == "filesystem" or served.known[key].is_needed}
    for key, parameter in served.known.items():
        for text in TEMPTING.get(parameter.means, ()):
            yield {**bare, key: text, "last": "1d"}


def bodies(centre: ServedCentre) -> Iterator[tuple[str, httpx.Response]]:
    """Everything that `own` can be tempted to ask, as JSON, CSV and block, with names of others in it or wrong."""
    with centre.client("own") as client:
        for name, question in QUESTIONS.items():
            for values in tempting(name):
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
        asked = dict(parse_qsl(address.partition("?")[2]))
        is_error = "trouble" in answer.text or answer.status_code != 200
        repeated = asked if is_error else ("project", "without")  # the answer or its command says what was chosen
        written = {asked[key] for key in repeated if key in asked}
        names = set(pattern.findall(answer.text)) - written
        assert not names, (address, names)
        assert "hidden-place" not in answer.text, address
    answered = {re.split(r"[?.]", address)[0] for address, status in seen.items() if status == 200}
    assert {f"/api/v1/{name}" for name in QUESTIONS if name not in CLOSED} <= answered
    assert {f"/api/v1/{name}" for name in CLOSED}.isdisjoint(answered)
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


def saying(question: ServedQuestion, person: str) -> dict[str, str]:
    """Values of all its parameters that it needs, or that name somebody or something."""
    texts = {"person": person, "project": "genomes", "job": OTHER_JOB, "others": "1"}
    known = question.known.items()
    return {key: texts.get(item.means, "1PB") for key, item in known if item.means or item.is_needed}


@pytest.mark.parametrize("person", PERSONS)
@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_user_asks_for_the_own_name_or_not_at_all(name: str, person: str) -> None:
    """By what each parameter means, however it is called."""
    check_rights(QUESTIONS[name], person)


def check_rights(question: ServedQuestion, person: str) -> None:
    asked = Inquiry.of(question.name, saying(question, person))
    assert permitted(asked, VIEWER) == asked
    if not question.rights.is_open_to_users or (question.rights.owner_in and person != "ada"):
        with pytest.raises(NotPermittedError, match=REFUSED):
            permitted(asked, ADA)
        return
    allowed = permitted(asked, ADA)
    for key, parameter in question.known.items():
        meant = {"person": "ada", "others": None}.get(parameter.means, asked.value(key))
        assert allowed.value(key) == meant, key


@pytest.mark.parametrize("name", OF_JOBS)
def test_who_says_nothing_asks_for_the_own_jobs_too(name: str) -> None:
    """As far as the function that answers: every option that means a person is the login name."""
    question = next(item for item in all_questions() if item.address == name)
    allowed = permitted(Inquiry.of(name, {}), ADA)
    keywords = question.keywords(allowed.options())
    persons = [
        getattr(keywords[part.name], option.name) if isinstance(part, Gathered) else keywords[option.name]
        for part in question.parts
        for option in (part.options if isinstance(part, Gathered) else (part,))
        if option.means == "person"
    ]
    assert persons
    assert set(persons) == {("ada",)}


@pytest.mark.parametrize("name", [name for name, question in QUESTIONS.items() if question.rights.public])
def test_what_is_public_names_nobody(name: str) -> None:
    assert permitted(Inquiry.of(name, {}), ADA) == Inquiry.of(name, {})
    assert not {"person", "job", "others"} & {item.means for item in QUESTIONS[name].known.values()}


def test_parameters_mean_what_their_options_mean() -> None:
    for declared in all_questions():
        meant = {option.url_name: option.means for option in declared.options if option.is_at_url}
        served = QUESTIONS[declared.address]
        assert {item.name: item.means for item in served.parameters} == meant
        assert served.rights is declared.rights


WHOSE = Option("whose", "Somebody's", flag="--of", in_url="x", means="person")
NEIGHBOURS = Option("neighbours", "With others", flag="--all", means="others")
RUN = Option("which", "Some run", means="job")


@pytest.mark.parametrize("person", PERSONS)
def test_rights_go_by_what_an_option_means_and_not_by_its_name(person: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up = Question("made up", "Made up", lambda ask, **_: None, (WHOSE, NEIGHBOURS), rights=OWN_RIGHTS)
    served = ServedQuestion.of(made_up)
    monkeypatch.setitem(QUESTIONS, served.name, served)  # type: ignore[arg-type]
    check_rights(served, person)
    asked = permitted(Inquiry.of(served.name, {"x": person, "all": "1"}), ADA)
    assert asked.values == (("x", "ada"),)


@pytest.mark.parametrize(
    ("rights", "options", "says"),
    [
        (OWN_RIGHTS, (), "no option says of whom"),
        (OWN_RIGHTS, (Option("user", "Called so, and says nothing"),), "no option says of whom"),
        (OWN_RIGHTS, (replace(WHOSE, at_url=False),), "no option says of whom"),
        (OWN_RIGHTS, (replace(WHOSE, kind=FILE),), "no option says of whom"),
        (OWN_RIGHTS, (WHOSE, RUN), "nothing says whose it is"),
        (EVERYBODY, (RUN,), "nothing says whose it is"),
    ],
)
def test_a_declaration_that_would_show_the_jobs_of_others_is_refused(
    rights: Rights, options: tuple[Option, ...], says: str
) -> None:
    declared = question("made up", "Made up", *options, rights=rights)
    with pytest.raises(ValueError, match=f"made up: .*{says}"):
        declared(lambda ask, **_: None)
    parameters = tuple(UrlParameter.of(option) for option in options if option.is_at_url)
    with pytest.raises(ValueError, match=says):
        ServedQuestion("made up", "Made up", (), lambda ask, _: None, parameters, rights)
    assert Question("made up", "Made up", lambda ask, **_: None, options).rights is STAFF


@pytest.mark.parametrize("login", ["", "*", "a*", "?", "a,b", ",", " ada", "(unknown)", None])
@pytest.mark.parametrize("name", OF_JOBS)
def test_a_login_that_could_mean_several_people_sees_nothing(login: str | None, name: str) -> None:
    with pytest.raises(NotPermittedError):
        permitted(Inquiry.of(name, {}), Principal("p", "user", login))


def test_agents_ask_nothing_and_whoever_is_not_named_is_local() -> None:
    assert not any(may_ask(name, Principal("a", "agent")) for name in QUESTIONS)
    assert not may_ask("nonsense", Principal("v", "viewer"))
    assert principal_of({}) is LOCAL
