"""Tokens and sessions: what is kept, what opens, and for how long."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolens.errors import IolensError, UsageError
from iolens.web.access.access_database import AccessDatabase
from iolens.web.access.sessions import IDLE_S, LONGEST_S, MOST_PER_TOKEN, SessionBook
from iolens.web.access.tokens import TOKEN, USED_S, TokenBook


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[AccessDatabase]:
    opened = AccessDatabase(tmp_path / "state")
    yield opened
    opened.close()


@pytest.fixture
def book(database: AccessDatabase, clock: Clock) -> TokenBook:
    return TokenBook(database, clock)


@pytest.fixture
def sessions(database: AccessDatabase, clock: Clock) -> SessionBook:
    return SessionBook(database, clock)


def test_a_token_opens_and_is_kept_nowhere(book: TokenBook, tmp_path: Path) -> None:
    token = book.add("wall", "viewer")
    assert TOKEN.fullmatch(token)
    holder = book.holder(token)
    assert holder is not None
    assert (holder.principal.name, holder.principal.role, holder.principal.user) == ("wall", "viewer", None)
    for path in (tmp_path / "state").iterdir():
        assert token.encode() not in path.read_bytes()
        assert token.removeprefix("iolens_").encode() not in path.read_bytes()


def test_files_are_private(book: TokenBook, tmp_path: Path) -> None:
    book.add("wall", "viewer")
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "state").iterdir()}
    assert modes == {"access.sqlite": 0o600, "access.sqlite-wal": 0o600, "access.sqlite-shm": 0o600}


def test_a_directory_that_others_can_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o777)
    with pytest.raises(IolensError, match="others can write there"):
        AccessDatabase(tmp_path / "state")


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "access.sqlite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IolensError, match=r"access\.sqlite"):
        AccessDatabase(tmp_path / "state")
    assert not (tmp_path / "elsewhere").exists()


def test_a_damaged_file_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "access.sqlite").write_bytes(b"not a database, but long enough to be looked at" * 50)
    with pytest.raises(IolensError, match=r"access\.sqlite: file is not a database"):
        AccessDatabase(tmp_path / "state")


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    opened = AccessDatabase(tmp_path / "state")
    opened.change("PRAGMA user_version = 99")
    opened.close()
    with pytest.raises(IolensError, match="written by a newer iolens"):
        AccessDatabase(tmp_path / "state")


@pytest.mark.parametrize(
    "wrong", ["", "iolens_", "x", "iolens_" + "A" * 43, "iolens_" + "A" * 42 + "\ud800", "A" * 9999]
)
def test_what_is_no_token_opens_nothing(book: TokenBook, wrong: str) -> None:
    book.add("wall", "viewer")
    assert book.holder(wrong) is None


def test_a_revoked_token_opens_nothing_in_another_process_at_once(book: TokenBook, tmp_path: Path) -> None:
    token = book.add("wall", "viewer")
    other = TokenBook(AccessDatabase(tmp_path / "state"), book.clock)  # as the running server has it
    assert other.holder(token) is not None
    book.revoke("wall")
    assert other.holder(token) is None
    other.database.close()


def test_an_expired_token_opens_nothing(book: TokenBook, clock: Clock) -> None:
    token = book.add("wall", "viewer", expires_in_s=100)
    clock.now += 99
    assert book.holder(token) is not None
    assert book.has_valid()
    clock.now += 1
    assert book.holder(token) is None
    assert not book.has_valid()


def test_a_name_is_used_once_until_it_is_revoked(book: TokenBook) -> None:
    first = book.add("wall", "viewer")
    with pytest.raises(UsageError, match="there is a token wall"):
        book.add("wall", "operator")
    book.revoke("wall")
    second = book.add("wall", "operator")
    assert book.holder(first) is None
    assert book.holder(second) is not None
    with pytest.raises(UsageError, match="no token 'door'"):
        book.revoke("door")


@pytest.mark.parametrize(
    ("name", "role", "user", "expires", "message"),
    [
        ("", "viewer", None, None, "a token's name"),
        ("a b", "viewer", None, None, "a token's name"),
        ("a\n", "viewer", None, None, "a token's name"),
        ("a", "root", None, None, "no role"),
        ("a", "user", None, None, "--user"),
        ("a", "viewer", "ada", None, "--user"),
        ("a", "user", "a da", None, "no login name"),
        ("a", "viewer", None, 0.5, "at least a second"),
    ],
)
def test_what_makes_no_sense_is_refused(
    book: TokenBook, name: str, role: str, user: str | None, expires: float | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        book.add(name, role, user, expires)  # type: ignore[arg-type]
    assert book.tokens() == []


def test_the_last_use_is_noted_once_an_hour(book: TokenBook, clock: Clock) -> None:
    token = book.add("wall", "viewer")
    assert book.tokens()[0].last_used_s is None
    uses = []
    for step in (0, USED_S - 1, 1):
        clock.now += step
        book.holder(token)
        uses.append(book.tokens()[0].last_used_s)
    assert uses == [1_800_000_000, 1_800_000_000, 1_800_000_000 + USED_S]


def test_a_session_ends_when_idle_and_when_old(book: TokenBook, sessions: SessionBook, clock: Clock) -> None:
    holder = book.holder(book.add("wall", "viewer"))
    assert holder is not None
    cookie, start = sessions.begin(holder), clock.now
    clock.now += IDLE_S - 1
    assert sessions.holder(cookie) is not None  # used: idle begins anew
    clock.now += IDLE_S - 1
    assert sessions.holder(cookie) is not None
    idle = sessions.begin(holder)
    clock.now += IDLE_S
    assert sessions.holder(idle) is None
    again = sessions.begin(holder)
    begun = clock.now
    while clock.now < begun + LONGEST_S - IDLE_S:
        clock.now += IDLE_S - 1
        assert sessions.holder(again) is not None
    clock.now = begun + LONGEST_S
    assert sessions.holder(again) is None
    assert start < clock.now


def test_a_session_ends_with_its_token(book: TokenBook, sessions: SessionBook, clock: Clock) -> None:
    cookies = []
    for name in ("revoked", "expired", "kept"):
        holder = book.holder(book.add(name, "viewer", expires_in_s=50 if name == "expired" else None))
        assert holder is not None
        cookies.append(sessions.begin(holder))
    book.revoke("revoked")
    assert sessions.database.row("SELECT count(*) FROM sessions") == (2,)
    clock.now += 50
    assert [sessions.holder(cookie) is not None for cookie in cookies] == [False, False, True]
    sessions.end(cookies[2])
    assert sessions.holder(cookies[2]) is None


def test_a_cookie_is_kept_as_a_hash(book: TokenBook, sessions: SessionBook, tmp_path: Path) -> None:
    holder = book.holder(book.add("wall", "viewer"))
    assert holder is not None
    cookie = sessions.begin(holder)
    assert all(cookie.encode() not in path.read_bytes() for path in (tmp_path / "state").iterdir())


def test_the_number_of_sessions_is_bounded(book: TokenBook, sessions: SessionBook, clock: Clock) -> None:
    holder = book.holder(book.add("wall", "viewer"))
    assert holder is not None
    first = sessions.begin(holder)
    clock.now += 1
    for _ in range(MOST_PER_TOKEN):
        last = sessions.begin(holder)
    assert sessions.database.row("SELECT count(*) FROM sessions") == (MOST_PER_TOKEN,)
    assert sessions.holder(first) is None
    assert sessions.holder(last) is not None
