"""The API of a running server against the command line: the same JSON, the same CSV, and what OpenAPI says of it."""

from __future__ import annotations

import html
import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from iolens import __version__
from iolens.units import parse_time
from iolens.web.access.permissions import may
from iolens.web.access.principal import Principal
from iolens.web.questions import QUESTIONS
from tests.cli.command import Finished, iolens
from tests.web.inquiries import INQUIRIES, NO_JSON, Values
from tests.web.served_centre import ServedCentre
from tests.web.small_centre import OWN, OWN_JOB

ASKED = [(name, values) for name, every in INQUIRIES.items() for values in every]
LISTED_AT = re.compile(r'"listed_at": "[^"]+"')  # when alerts were listed, to the second
WITH_JSON = [(name, values) for name, values in ASKED if name not in NO_JSON]


def named(value: Any) -> str | None:
    return value if isinstance(value, str) else " ".join(f"{key}={text}" for key, text in value.items())


def shown_command(centre: ServedCentre, name: str, values: Values) -> list[str]:
    """Its words without `iolens`, as a block shows it."""
    block = centre.get(f"/blocks/{name}", params=values)
    command = re.search(r'<p class="command"><code>(iolens .*?)</code>', block.text)
    assert command is not None, block.text
    return shlex.split(html.unescape(command[1]))[1:]


def printed(centre: ServedCentre, words: list[str], *more: str) -> Finished:
    """The server reads with one process for each answer: sums of several differ in the last digit."""
    workers = () if words[0] in ("store", "alerts") else ("--workers", "1")
    return iolens(*words, *workers, *more, IOLENS_STORE=str(centre.store), IOLENS_STATE=str(centre.state))


def test_every_question_is_asked_with_every_parameter() -> None:
    assert set(INQUIRIES) == set(QUESTIONS)
    given = {name: {key for values in every for key in values} for name, every in INQUIRIES.items()}
    windows = {"from", "to", "during", "last", "timezone", "target", "source", "resolution"}
    missing = {name: set(QUESTIONS[name].known) - windows - keys for name, keys in given.items()}
    assert {name: keys for name, keys in missing.items() if keys} == {}
    assert windows <= set().union(*given.values())


@pytest.mark.parametrize(("name", "values"), WITH_JSON, ids=named)
def test_json_is_that_of_the_command_shown(centre: ServedCentre, name: str, values: Values) -> None:
    answer = centre.get(f"/api/v1/{name}", params=values)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    done = printed(centre, shown_command(centre, name, values), "--format", "json")
    if name == "latency":  # nothing is stored of it: one message on the command line, nulls in the API
        assert (done.code, done.out, answer.json()["samples"]) == (2, "", 0)
        assert "nothing is stored" in done.err
        return
    assert done.code == 0, done.err
    answered, said = (json.loads(LISTED_AT.sub('"listed_at": null', text), parse_float=str)
                      for text in (answer.text, done.out))  # fmt: skip
    assert parse_time(answered.pop("as_of")) <= datetime.now(UTC)  # which the command need not say
    assert answered == said  # to the last digit


def test_commands_that_write_documents_are_shown_and_run(centre: ServedCentre, tmp_path: Path) -> None:
    """The page of a job is HTML there, the rationale a document; the rest of its JSON is the same."""
    job = {"id": OWN_JOB}
    assert shown_command(centre, "job", job) == ["report", "--job", OWN_JOB]
    done = printed(centre, ["report", "--job", OWN_JOB], "-o", str(tmp_path / "job.html"))
    assert done.code == 0, done.err
    page = centre.get("/api/v1/job", params=job).json()
    assert (page["job_id"], page["user"]) == (OWN_JOB, OWN)
    assert OWN_JOB in (tmp_path / "job.html").read_text("utf-8")
    design = INQUIRIES["plan/rationale"][0]
    words = shown_command(centre, "plan/rationale", design)
    done = printed(centre, words, "-o", str(tmp_path / "design.json"))
    assert done.code == 0, done.err
    of_file = json.loads((tmp_path / "design.json").read_text("utf-8"))
    of_server = centre.get("/api/v1/plan/rationale", params=design).json()
    assert of_server.pop("as_of")
    assert {key for key, value in of_server.items() if value != of_file[key]} == {"about"}
    assert of_server["about"]["store"] is None
    assert sorted(shlex.split(of_server["about"]["command"])) == sorted(["iolens", *words])


@pytest.mark.parametrize(
    ("name", "table"),
    [("utilization", "per_target"), ("blame", "shares"), ("runs/coverage", "projects"), ("plan/performance", ""),
     ("sources", "refused_inputs")],
)  # fmt: skip
def test_csv_is_that_of_the_command(centre: ServedCentre, name: str, table: str) -> None:
    values = INQUIRIES[name][0]
    answer = centre.get(f"/api/v1/{name}.csv", params={**values, **({"table": table} if table else {})})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    file_name = f"{name.replace('/', '-')}{'-' if table else ''}{table}.csv"
    assert answer.headers["content-disposition"] == f'attachment; filename="{file_name}"'
    words = shown_command(centre, name, values)
    done = printed(centre, words, "--format", "csv", *(["--table", table] if table else []))
    assert (done.code, done.out.encode()) == (0, answer.content)


def test_a_block_links_to_the_csv_of_each_of_its_tables(centre: ServedCentre) -> None:
    values = INQUIRIES["utilization"][1]
    shown = centre.get("/blocks/utilization", params={**values, "show": "table:per_target,table:coverage"}).text
    links = [html.unescape(address) for address in re.findall(r'<a href="([^"]+)" download>', shown)]
    assert [parse_qs(urlsplit(link).query)["table"] for link in links] == [["per_target"], ["coverage"]]
    first_lines = [centre.get(link).text.splitlines()[0] for link in links]
    assert all("," in line for line in first_lines)
    assert first_lines[0] != first_lines[1]


@pytest.mark.parametrize(
    ("figure", "kind", "begins"),
    [("sizes.svg", "image/svg+xml", b"<?xml"), ("sizes", "image/svg+xml", b"<?xml"),
     ("sizes.png", "image/png", b"\x89PNG"), ("sizes.pdf", "application/pdf", b"%PDF")],
)  # fmt: skip
def test_figures_are_pictures(centre: ServedCentre, figure: str, kind: str, begins: bytes) -> None:
    answer = centre.get(f"/api/v1/utilization/figures/{figure}", params=INQUIRIES["utilization"][1])
    assert (answer.status_code, answer.headers["content-type"], answer.content[: len(begins)]) == (200, kind, begins)


def test_the_rationale_is_a_pdf(centre: ServedCentre) -> None:
    answer = centre.get("/api/v1/plan/rationale.pdf", params=INQUIRIES["plan/rationale"][0])
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/pdf")
    assert answer.content.startswith(b"%PDF")
    assert answer.headers["content-disposition"] == 'attachment; filename="rationale.pdf"'


SYSTEM = "filesystem=scratch"


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("utilization?filesystem=nowhere", 400, "the store holds no file system 'nowhere'"),
        ("utilization", 400, "the store holds several file systems"),
        (f"utilization?{SYSTEM}&{SYSTEM}", 400, "filesystem is given twice"),
        (f"utilization?{SYSTEM}&lastt=1d", 400, "utilization has no parameter 'lastt'; did you mean last?"),
        (f"utilization?{SYSTEM}&last=1d&from=2026-01-05", 400, "from and last do not go together"),
        (f"utilization?{SYSTEM}&from=noon", 400, "from: 'noon': not a time; write 2026-01-05T19:00"),
        (f"utilization?{SYSTEM}&from=2026-01-06&to=2026-01-05", 400, "window"),
        (f"utilization?{SYSTEM}&last=1e300d", 400, "last: "),
        (f"utilization?{SYSTEM}&timezone=..%2F..%2Fetc%2Fpasswd", 400, "timezone: no time zone is called"),
        (f"utilization?{SYSTEM}&target=nowhere", 400, "nowhere"),
        (f"utilization?{SYSTEM}&calibration=nowhere", 400, "nowhere"),
        (f"utilization/figures/nonsense.svg?{SYSTEM}", 400, "no figure 'nonsense' here; there are: bandwidth"),
        (f"utilization/figures/bandwidth.exe?{SYSTEM}", 400, "a figure is .svg, .png, .pdf, not .exe"),
        (f"utilization.csv?{SYSTEM}&table=per_targe", 400, "did you mean per_target"),
        (f"plan/performance?{SYSTEM}&ssi=fast", 400, "fast"),
        (f"plan/performance?{SYSTEM}&percentile=,", 400, "--percentile: name at least one"),
        (f"plan/metadata?{SYSTEM}", 400, "plan/metadata needs capacity: Capacity of the new file system"),
        (f"blame?{SYSTEM}&busiest=long", 400, "busiest: "),
        (f"blame?{SYSTEM}&resolution=60s", 400, "blame has no parameter 'resolution'"),
        (f"jobs?{SYSTEM}&top=0", 400, "top: '0' is not a whole number from 1 to 1,000"),
        (f"jobs?{SYSTEM}&sort=size", 400, "sort: 'size' is not known"),
        ("job", 400, "job needs id: Id of the job, or of a run"),
        ("explain?id=", 400, "explain needs id: Id of a job or run"),
        ("job?id=nowhere", 404, "the store: no job 'nowhere'"),
        ("user?name=verra&last=1h", 404, "the store: no user 'verra'; did you mean vera?"),
        ("explain?id=nowhere", 400, "no run, log or job is called 'nowhere'"),
        ("nonsense", 404, "There is no such page."),
        ("runs", 404, "There is no such page."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_a_status_and_one_line(centre: ServedCentre, query: str, status: int, words: str) -> None:
    answer = centre.get(f"/api/v1/{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    message = answer.json()["error"]
    assert words in message
    assert "\n" not in message
    assert "hidden-place" not in message


ROUTES = {f"/api/v1/{name}{suffix}" for name in QUESTIONS for suffix in ("", ".csv")}
ROUTES |= {f"/api/v1/{name}/figures/{{figure}}" for name, question in QUESTIONS.items() if question.has_figures}
ROUTES |= {"/api/v1/changes", "/api/v1/plan/rationale.pdf", "/api/v1/silences"}


@pytest.fixture(scope="module")
def description(centre: ServedCentre) -> dict[str, Any]:
    answer = centre.get("/api/v1/openapi.json")
    assert answer.status_code == 200
    described: dict[str, Any] = answer.json()
    return described


def test_openapi_describes_every_route_as_its_rules_say(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1.")
    assert description["info"]["title"] == "iolens"
    assert description["info"]["version"] == __version__
    paths = description["paths"]
    assert set(paths) == {*ROUTES, "/api/v1/silences/{number}"}
    operations = [(path, operation) for path, methods in paths.items() for operation in methods.values()]
    identities = [operation["operationId"] for _, operation in operations]
    assert len(identities) == len(set(identities))
    for path, operation in operations:
        assert operation["summary"]
        check_operation(path, operation)
    check_references(description)


def check_operation(path: str, operation: dict[str, Any]) -> None:
    parameters = operation.get("parameters", [])
    keys = [(parameter["in"], parameter["name"]) for parameter in parameters]
    assert len(keys) == len(set(keys)), path
    in_path = {name for place, name in keys if place == "path"}
    assert in_path == set(re.findall(r"{(\w+)}", path)), path
    for parameter in parameters:
        assert parameter["in"] in ("query", "path", "header", "cookie")
        assert "type" in parameter["schema"] or "anyOf" in parameter["schema"]
        assert parameter["in"] != "path" or parameter["required"] is True
    assert operation["responses"]
    for status, response in operation["responses"].items():
        assert re.fullmatch(r"[1-5](\d\d|XX)|default", status)
        assert response["description"]
        assert all(re.fullmatch(r"[\w.+-]+/[\w.+-]+", kind) for kind in response.get("content", {}))


def check_references(description: dict[str, Any]) -> None:
    """Whatever is referred to is there."""
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(description)):
        place: Any = description
        for word in reference.split("/"):
            place = place[word]


def test_openapi_lists_every_parameter_of_every_question(description: dict[str, Any]) -> None:
    for name, question in QUESTIONS.items():
        for suffix, more in (("", set()), (".csv", {"table"})):
            listed = description["paths"][f"/api/v1/{name}{suffix}"]["get"]["parameters"]
            assert {item["name"]: item["required"] for item in listed} == {
                **{key: parameter.is_needed for key, parameter in question.known.items()},
                **dict.fromkeys(more, False),
            }
        assert (f"/api/v1/{name}/figures/{{figure}}" in description["paths"]) is question.has_figures


def test_every_documented_get_is_open_to_viewers(description: dict[str, Any]) -> None:
    documented = {path for path, methods in description["paths"].items() if "get" in methods}
    assert documented == ROUTES
    for path in documented:
        assert may(Principal("a viewer", "viewer"), "GET", path.format(figure="x.svg")), path
