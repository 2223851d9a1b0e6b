"""Replies of a running server: tags, compression, HEAD, and errors that do not say where the store is."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from iolens.errors import InputError, IolensError, NotKnownError, StoreError, UsageError
from iolens.questions.asking import Ask
from iolens.web.answers import TooManyInquiriesError
from iolens.web.application import ServedStore
from iolens.web.inquiry import Inquiry
from iolens.web.permitted import NotPermittedError
from iolens.web.replies import ReplyBody, error_reply, message_of, status_of
from tests.web.served_centre import ServedCentre

CAPACITY = "/api/v1/capacity?filesystem=scratch"


def test_a_tag_spares_what_the_reader_has(centre: ServedCentre) -> None:
    for path in (CAPACITY, "/blocks/capacity?filesystem=scratch", "/api/v1/capacity.csv?filesystem=scratch"):
        first = centre.get(path)
        tag = first.headers["etag"]
        assert len(first.content) > 300
        for given in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again = centre.get(path, headers={"If-None-Match": given})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), given
        for given in ('"other"', tag[:-2] + '"', ""):
            assert centre.get(path, headers={"If-None-Match": given}).status_code == 200, given


def test_what_is_long_is_compressed_for_those_who_take_it(centre: ServedCentre) -> None:
    with centre.client() as client:
        plain = client.get(CAPACITY, headers={"Accept-Encoding": "identity"})
        with client.stream("GET", CAPACITY, headers={"Accept-Encoding": "br, gzip"}) as zipped:
            body = b"".join(zipped.iter_raw())
        refused = client.get(CAPACITY, headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in plain.headers
    assert zipped.headers["content-encoding"] == "gzip"
    assert len(body) < len(plain.content) / 2
    assert gzip.decompress(body) == plain.content == refused.content
    assert "content-encoding" not in refused.headers
    for answer in (plain, zipped):
        assert "Accept-Encoding" in answer.headers["vary"]
        assert "no-store" in answer.headers["cache-control"] or "no-cache" in answer.headers["cache-control"]


def test_what_is_short_is_sent_as_it_is() -> None:
    assert ReplyBody.of("x" * 1023, "text/plain").zipped is None
    assert ReplyBody.of("x" * 1024, "text/plain").zipped is not None
    assert ReplyBody.of("x", "text/plain").tag == ReplyBody.of(b"x", "text/html").tag


@pytest.mark.parametrize(
    "path",
    ["/", "/filesystems/scratch", "/jobs", CAPACITY, "/api/v1/capacity.csv?filesystem=scratch", "/healthz",
     "/blocks/capacity?filesystem=scratch", "/api/v1/openapi.json", "/api/v1/changes", "/api/v1/silences",
     "/nowhere", "/api/v1/nowhere", "/filesystems/nowhere", "/api/v1/capacity", "/static/x/dashboard.css"],
)  # fmt: skip
def test_head_is_get_without_the_body(centre: ServedCentre, path: str) -> None:
    asked = {"Accept-Encoding": "identity"}
    head = centre.get(path, method="HEAD", headers=asked)
    assert head.content == b""
    if path == "/api/v1/changes":
        assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        return
    got = centre.get(path, headers=asked)
    assert head.status_code == got.status_code
    for name in ("content-type", "content-length", "etag"):
        assert head.headers.get(name) == got.headers.get(name), name


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotPermittedError("x"), 403), (TooManyInquiriesError("x"), 503), (NotKnownError("x"), 404),
        (UsageError("x"), 400), (StoreError("x"), 503), (InputError("x", "y"), 404), (IolensError("x"), 500),
    ],
)  # fmt: skip
def test_errors_have_a_status(error: IolensError, status: int) -> None:
    reply, page = error_reply(error, "nowhere"), error_reply(error, "nowhere", is_page=True)
    assert status_of(error) == reply.status_code == page.status_code == status
    assert ("retry-after" in reply.headers) is (status == 503)
    assert (reply.media_type, page.media_type) == ("application/json", "text/html")


def test_messages_are_harmless_and_say_nothing_of_the_place() -> None:
    error = StoreError("/srv/hidden/store: no job '\x1b[2J<b>'; see /srv/hidden/store/runs")
    said = message_of(error, "/srv/hidden/store")
    assert said.startswith("the store: no job '")
    assert said.endswith("<b>'; see the store/runs")
    assert "\x1b" not in said
    assert "<b>" not in bytes(error_reply(error, "/srv/hidden/store", is_page=True).body).decode()


@pytest.mark.parametrize("form", ["relative", "trailing", "dotted", "file URL", "home"])
def test_the_place_is_not_said_however_it_is_given(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_store: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hidden-place").symlink_to(small_store.parent)
    given = {
        "relative": "hidden-place/store", "trailing": f"{tmp_path}/hidden-place/store/",
        "dotted": f"{tmp_path}/./hidden-place/../hidden-place/store", "file URL": f"file://{tmp_path}/hidden-place/store",
        "home": "~/hidden-place/store",
    }[form]  # fmt: skip
    monkeypatch.setenv("HOME", str(tmp_path))
    store = ServedStore(given)
    inquiry = Inquiry.of("job", {"id": "nowhere"})
    with store.opened() as opened, pytest.raises(IolensError) as error:
        inquiry.question.ask(Ask(lambda: opened, inquiry.scope(opened)), inquiry.options())
    assert "hidden" in str(error.value)
    assert "hidden" not in message_of(error.value, store.url)
