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
OF_JOBS = ("jobs", "lost", "applications", *(name for name in QUESTIONS if name.startswith("runs/")))
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
        **{name: (*INQUIRIES[name], {"user": OTHER, **SCRATCH, "last": "1d"}) for name in ("jobs", "applications")},
        **{name: ({}, {"user": OTHER}, {"user": "*"}, {"project": "genomes"}) for name in ("lost", "runs/coverage")},
        "runs/projects": ({"min_processes": "1"}, {"executable": "assemble.x"}),
        "job": ({"id": OWN_JOB, "names": "1"}, {"id": OTHER_JOB}, {"id": "7000003"}, {"id": OWN_JOB, "cluster": "x"}),
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
    assert {status for status in seen.values()} <= {200, 400, 403, 404}
