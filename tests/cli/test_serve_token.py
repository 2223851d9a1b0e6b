"""`iolens serve token add|list|revoke`."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from iolens.cli.serve import serve_token
from iolens.errors import IolensError
from iolens.web.access.access_database import AccessDatabase
from iolens.web.access.tokens import TOKEN, TokenBook


def token(*words: object) -> Result:
    return CliRunner().invoke(serve_token, [str(word) for word in words])


def test_a_token_is_printed_once_and_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    added = token("add", "ada", "--role", "user", "--user", "ada", "--expires", "90d", "--state", state)
    assert added.exit_code == 0
    assert TOKEN.fullmatch(added.stdout.strip())
    holder = TokenBook(AccessDatabase(state)).holder(added.stdout.strip())
    assert holder is not None
    assert (holder.name, holder.role, holder.user) == ("ada", "user", "ada")
    assert holder.expires_s == holder.created_s + 90 * 86400
    for form in ("table", "json"):
        listed = token("list", "--format", form, "--state", state).stdout
        assert "ada" in listed
        assert added.stdout.strip() not in listed
        assert "hash" not in listed


def test_a_list_says_what_is_in_force(tmp_path: Path) -> None:
    for name in ("wall", "oss1"):
        token("add", name, "--role", "viewer", "--state", tmp_path / "state")
    assert token("revoke", "wall", "--state", tmp_path / "state").exit_code == 0
    listed = json.loads(token("list", "--format", "json", "--state", tmp_path / "state").stdout)
    assert [(row["name"], row["status"], row["last_used"]) for row in listed] == [
        ("wall", "revoked", None),
        ("oss1", "valid", None),
    ]
    table = token("list", "--state", tmp_path / "state").stdout.splitlines()
    assert table[0].split() == ["name", "role", "user", "status", "created", "expires", "last_used"]
    assert table[1].split()[:4] == ["wall", "viewer", "–", "revoked"]


def test_the_audit_log_says_who_changed_tokens(tmp_path: Path) -> None:
    added = token("add", "wall", "--role", "viewer", "--state", tmp_path / "state")
    token("revoke", "wall", "--state", tmp_path / "state")
    text = (tmp_path / "state" / "audit.log").read_text()
    assert [json.loads(line)["event"] for line in text.splitlines()] == ["token added", "token revoked"]
    assert added.stdout.strip() not in text


def test_the_directory_is_found_as_the_server_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOLENS_STATE", str(tmp_path / "from-environment"))
    assert token("add", "wall", "--role", "viewer").exit_code == 0
    assert (tmp_path / "from-environment" / "access.sqlite").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["add", "wall"], "Missing option '--role'"),
        (["add", "wall", "--role", "root"], "'root' is not one of"),
        (["add", "wall", "--role", "user"], "--user"),
        (["add", "wall", "--role", "viewer", "--expires", "soon"], "--expires"),
        (["revoke", "wall"], "no token was made here"),
        (["list"], "no token was made here"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, words: list[str], message: str) -> None:
    result = token(*words, "--state", tmp_path / "state")
    assert result.exit_code != 0
    said = str(result.exception) if isinstance(result.exception, IolensError) else result.output
    assert message in said


@pytest.mark.parametrize("verb", ["add", "list", "revoke"])
def test_help_has_an_example(verb: str) -> None:
    assert f"iolens serve token {verb}" in token(verb, "--help").stdout
    assert isinstance(serve_token, click.Group)
