"""Every row of the table of permissions, asked by everybody, on a real server."""

from __future__ import annotations

import pytest

from iolens.web.access.permissions import PERMISSIONS, Permission, may, permission_of
from iolens.web.access.principal import ROLES, Principal
from tests.web.access.running_application import Running

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
EXAMPLES = {"{name}": "scratch", "{id}": "17", "**": "more/of/it"}


def example(row: Permission) -> str:
    return "/".join(EXAMPLES.get(name, name) for name in row.pattern.split("/"))


def test_each_row_decides_on_its_own_example() -> None:
    assert [permission_of(example(row)) for row in PERMISSIONS] == list(PERMISSIONS)


@pytest.mark.parametrize("row", PERMISSIONS, ids=lambda row: row.pattern)
def test_without_a_token_or_with_a_wrong_one_only_public_pages_open(server: Running, row: Permission) -> None:
    for method in METHODS:
        for token in (None, "iolens_" + "x" * 43):
            status = server.get(example(row), token, method, headers={"Origin": server.url}).status_code
            if row.is_public:
                assert status != 401, (method, token)
            else:
                assert status == 401, (method, token)


@pytest.mark.parametrize("row", PERMISSIONS, ids=lambda row: row.pattern)
@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_do_what_the_table_says(server: Running, row: Permission, role: str) -> None:
    for method in METHODS:
        if row.pattern.endswith("/changes"):
            continue  # it does not end; see test_middleware
        roles = row.roles.get(method)
        status = server.get(example(row), server.tokens[role], method, headers={"Origin": server.url}).status_code
        if roles is not None and (not roles or role in roles):
            assert status not in (401, 403), method  # the test application has not every page: 404 or 405
        elif row.is_public or any(role in others for others in row.roles.values()):
            assert status == 405, method
        else:
            assert status == 403, method


@pytest.mark.parametrize(
    ("path", "roles"),
    [
        ("/", {"viewer", "user", "operator"}),
        ("/filesystems/scratch", {"viewer", "user", "operator"}),
        ("/filesystems/scratch/targets/OST0000", {"viewer", "operator"}),
        ("/jobs", {"viewer", "user", "operator"}),
        ("/jobs/17", {"viewer", "user", "operator"}),
        ("/applications", {"viewer", "user", "operator"}),
        ("/users", {"viewer", "operator"}),
        ("/users/ada", {"viewer", "user", "operator"}),
        ("/data", {"viewer", "operator"}),
        ("/alerts", {"viewer", "operator"}),
        ("/api/v1/filesystems", {"viewer", "user", "operator"}),
        ("/api/v1/utilization", {"viewer", "user", "operator"}),
        ("/api/v1/job", {"viewer", "user", "operator"}),
        ("/api/v1/workload", {"viewer", "operator"}),
        ("/api/v1/blame", {"viewer", "operator"}),
        ("/api/v1/drives.csv", {"viewer", "operator"}),
        ("/api/v1/hub/segments/x", {"agent"}),
        ("/secret", set()),
        ("/api/v2/jobs", set()),
        ("/jobs/", set()),
        ("/api/v1/agents", {"viewer", "operator"}),
        ("/docs", set()),
        ("/openapi.json", set()),
    ],
)
def test_who_may_read_what(path: str, roles: set[str]) -> None:
    """The brief of the roles, path by path, beside the table."""
    assert {role for role in ROLES if may(Principal("x", role), "GET", path)} == roles
    assert not may(None, "GET", path)


@pytest.mark.parametrize(
    ("method", "path", "roles"),
    [
        ("POST", "/api/v1/silences", {"operator"}),
        ("DELETE", "/api/v1/silences/17", {"operator"}),
        ("PUT", "/api/v1/hub/segments/x", {"agent"}),
        ("PATCH", "/api/v1/hub/segments/x", {"agent"}),
        ("DELETE", "/api/v1/jobs/17", set()),
        ("POST", "/jobs", set()),
    ],
)
def test_who_may_change_what(method: str, path: str, roles: set[str]) -> None:
    assert {role for role in ROLES if may(Principal("x", role), method, path)} == roles


def test_what_a_role_may_not_see_looks_like_what_does_not_exist(server: Running) -> None:
    answers = [server.get(path, server.tokens["user"]) for path in ("/users", "/data", "/no-such-page")]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.text for answer in answers}) == 1
    assert server.get("/no-such-page", server.tokens["viewer"]).status_code == 404
    assert server.get("/no-such-page", server.tokens["agent"]).status_code == 403


def test_the_application_knows_who_asks(server: Running) -> None:
    assert server.get("/api/v1/jobs", server.tokens["user"]).json() == {"name": "user", "role": "user", "user": "ada"}
