"""Receivers on real sockets and processes: what arrives, what is refused, and that hostile names stay names."""

from __future__ import annotations

import contextlib
import email
import email.policy
import json
import os
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

from iolens.alerts.receivers import DeliveryError, Receiver, receiver_of
from tests.alerts.centres import minute
from tests.alerts.hook import Hook
from tests.alerts.samples import alert, sample_notification
from tests.certificates import self_signed, server_context
from tests.hostile_names import SOURCES_OF_TROUBLE

PASSWORD = "correct horse"


def receiver(**section: Any) -> Receiver:
    return receiver_of(Path("iolens.toml"), {"name": "r", **section})


# Webhook


def test_a_webhook_gets_the_documented_body() -> None:
    with Hook() as hook:
        receiver(kind="webhook", url=f"{hook.url}/alerts?team=storage").deliver(sample_notification())
    (post,), (headers,) = hook.posts, hook.headers
    assert list(post) == ["version", "id", "event", "created_at", "title", "alert"]
    assert post["title"] == "[FIRING] warning: busy: scratch"
    assert post["alert"]["who"] == [{"name": "4711", "user": "ana", "share_pct": 61.0}]
    assert (post["alert"]["since"], post["alert"]["value"]) == ("2026-03-02T00:00:00Z", 91.25)
    assert headers["Idempotency-Key"] == post["id"] == "0123456789abcdef0123456789abcdef-firing"
    assert headers["Content-Type"] == "application/json"


def test_a_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("HOOK_TOKEN", "from-environment")
    with Hook() as hook:
        receiver(kind="webhook", url=hook.url, token_file=str(tmp_path / "token")).deliver(sample_notification())
        receiver(kind="webhook", url=hook.url, token_env="HOOK_TOKEN").deliver(sample_notification())
    assert [headers["Authorization"] for headers in hook.headers] == ["Bearer from-file", "Bearer from-environment"]
    with pytest.raises(DeliveryError, match="the environment variable NO_SUCH is not set"):
        receiver(kind="webhook", url="http://localhost:1", token_env="NO_SUCH").deliver(sample_notification())


def test_certificates_are_verified(tmp_path: Path) -> None:
    path, key = self_signed(tmp_path, "localhost")
    context = server_context(path, key)
    with Hook(context) as hook:
        receiver(kind="webhook", url=hook.url, ca=str(path)).deliver(sample_notification())
        with pytest.raises(DeliveryError, match="CERTIFICATE_VERIFY_FAILED") as refused:
            receiver(kind="webhook", url=hook.url).deliver(sample_notification())
        assert refused.value.is_down
    assert len(hook.posts) == 1


@pytest.mark.parametrize(
    ("status", "is_down"), [(400, False), (401, False), (404, False), (429, True), (500, True), (503, True)]
)
def test_an_answer_that_is_no_success_is_a_failure(status: int, is_down: bool) -> None:
    with Hook() as hook:
        hook.status = status
        with pytest.raises(DeliveryError, match=f"HTTP {status} ok") as refused:
            receiver(kind="webhook", url=hook.url).deliver(sample_notification())
    assert refused.value.is_down == is_down


def test_no_redirection_is_followed() -> None:
    with Hook() as elsewhere, Hook() as hook:
        hook.status, hook.location = 307, elsewhere.url
        with pytest.raises(DeliveryError, match="redirects to http://localhost:"):
            receiver(kind="webhook", url=hook.url).deliver(sample_notification())
    assert elsewhere.headers == []


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Hook() as proxy, Hook() as hook:
        monkeypatch.setenv("http_proxy", proxy.url)
        receiver(kind="webhook", url=hook.url).deliver(sample_notification())
    assert (len(proxy.headers), len(hook.posts)) == (0, 1)


@contextlib.contextmanager
def dripping(beginning: bytes) -> Iterator[int]:
    """The port of a server that begins well, and goes on byte by byte without an end."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(beginning)
                while not done.wait(0.02):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            done.set()
            thread.join()


def test_a_server_that_answers_byte_by_byte_is_left() -> None:
    with dripping(b"HTTP/1.1 200 OK\r\n") as port:
        slow = receiver(kind="webhook", url=f"http://127.0.0.1:{port}", timeout="0.5s")
        with pytest.raises(DeliveryError, match=r"no answer within 0.5 s") as refused:
            slow.deliver(sample_notification())
    assert refused.value.is_down


# Mail


class Mailbox:
    """Keeps the mails that a server takes, and who logged in."""

    def __init__(self) -> None:
        self.mails: list[email.message.EmailMessage] = []
        self.raw: list[bytes] = []
        self.recipients: list[list[str]] = []
        self.users: list[bytes] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        self.raw.append(content)
        self.mails.append(email.message_from_bytes(content, policy=email.policy.default))  # type: ignore[arg-type]
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 taken"

    async def handle_RCPT(self, server: Any, session: Any, envelope: Envelope, address: str, options: Any) -> str:
        if address.startswith("nobody@"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    def authenticate(self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        is_right = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
        if is_right:
            self.users.append(data.login)
        return AuthResult(success=is_right, handled=False)


@contextlib.contextmanager
def mail_server(tls: ssl.SSLContext | None = None) -> Iterator[tuple[Mailbox, int]]:
    """A real SMTP server; with TLS it takes mail only over STARTTLS and after AUTH."""
    box = Mailbox()
    secured: dict[str, Any] = {"tls_context": tls, "require_starttls": True, "auth_required": True} if tls else {}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    controller = Controller(box, "127.0.0.1", port, authenticator=box.authenticate, **secured)
    controller.start()
    try:
        yield box, port
    finally:
        controller.stop()


def mail(port: int, **more: Any) -> Receiver:
    section = {"kind": "smtp", "host": "localhost", "port": port, "from": "iolens@example.org", "to": ["a@example.org"]}
    return receiver(**{**section, **more})


def test_a_mail_over_starttls_with_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, key = self_signed(tmp_path, "localhost")
    context = server_context(path, key)
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    with mail_server(context) as (box, port):
        secured = {"user": "iolens", "password_env": "MAIL_PASSWORD", "ca": str(path)}
        mail(port, to=["a@example.org", "b@example.org"], **secured).deliver(sample_notification())
        monkeypatch.setenv("MAIL_PASSWORD", "wrong")
        with pytest.raises(DeliveryError, match="535") as refused:
            mail(port, **secured).deliver(sample_notification())
        assert "wrong" not in str(refused.value)
        with pytest.raises(DeliveryError, match="CERTIFICATE_VERIFY_FAILED"):
            mail(port, **{**secured, "ca": ssl.get_default_verify_paths().cafile or "/dev/null"}).deliver(
                sample_notification()
            )
    (message,) = box.mails
    assert (box.users, box.recipients) == ([b"iolens"], [["a@example.org", "b@example.org"]])
    assert message["Subject"] == "[FIRING] warning: busy: scratch"
    assert message["Message-ID"] == "<0123456789abcdef0123456789abcdef-firing@example.org>"
    assert message["Auto-Submitted"] == "auto-generated"
    text = message.get_content()
    assert "Why: The mean FSU of scratch is 91.2 %." in text
    assert "Value: 91.2 %, threshold 80.0 %" in text
    assert "Who: 4711 of ana 61.0 %" in text
    assert "Command: iolens blame -f scratch" in text


def test_a_server_without_starttls_gets_no_mail_that_needs_it() -> None:
    with mail_server() as (box, port), pytest.raises(DeliveryError, match="STARTTLS") as refused:
        mail(port).deliver(sample_notification())
    assert refused.value.is_down
    assert box.mails == []


def test_a_mail_server_that_answers_byte_by_byte_is_left() -> None:
    with dripping(b"220 localhost\r\n") as port, pytest.raises(DeliveryError, match=r"no answer within 1.5 s"):
        mail(port, tls="none", timeout="0.5s").deliver(sample_notification())


def test_a_recipient_who_is_refused_is_a_failure_of_this_mail_alone() -> None:
    with mail_server() as (box, port), pytest.raises(DeliveryError, match=r"nobody@example\.org") as refused:
        mail(port, tls="none", to=["nobody@example.org"]).deliver(sample_notification())
    assert not refused.value.is_down
    assert box.mails == []


def test_names_cannot_write_headers() -> None:
    injection = "x\r\nBcc: victim@example.org\r\n\r\nbody"
    names = [injection, *SOURCES_OF_TROUBLE]
    with mail_server() as (box, port):
        for name in names:
            mail(port, tls="none").deliver(
                sample_notification(subject=name, filesystem=name, rule=name, why=name, command=name)
            )
    assert len(box.mails) == len(names)
    for message in box.mails:
        headers = ["Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted", "X-Iolens-Notification"]
        assert [key for key in message if key not in ("X-Peer", "X-MailFrom", "X-RcptTo")] == [
            *headers, *[key for key in message if key.startswith(("Content-", "MIME-"))],
        ]  # fmt: skip
        assert len(message["Subject"]) <= 200
    assert all(recipients == ["a@example.org"] for recipients in box.recipients)
    assert "\\r\\nBcc: victim" in box.mails[0].get_content()


# Command


def script(folder: Path, text: str) -> list[str]:
    (folder / "run.py").write_text(text)
    return [sys.executable, str(folder / "run.py"), str(folder / "out")]


COPY = "import sys; open(sys.argv[1], 'ab').write(sys.stdin.buffer.read() + b'\\n')"


def test_a_command_gets_json_and_hostile_names_run_nothing(tmp_path: Path) -> None:
    hostile = ["; touch owned", "$(touch owned)", "`touch owned`", "| touch owned", *SOURCES_OF_TROUBLE]
    command = receiver(kind="command", argv=[*script(tmp_path, COPY), "$(touch owned)"])
    for name in hostile:
        command.deliver(sample_notification(subject=name))
    lines = (tmp_path / "out").read_text().splitlines()
    assert [json.loads(line)["alert"]["subject"] for line in lines] == hostile
    assert not (tmp_path / "owned").exists()
    assert not Path("owned").exists()


def test_a_command_that_fails_says_why_in_a_few_words(tmp_path: Path) -> None:
    text = "import sys; sys.stderr.write('pager \\x1b[2J is out\\n' + 'x' * 10_000_000); sys.exit(7)"
    with pytest.raises(DeliveryError, match=r"ended with code 7: pager \\x1b\[2J is out") as refused:
        receiver(kind="command", argv=script(tmp_path, text)).deliver(sample_notification())
    assert len(str(refused.value)) < 500
    with pytest.raises(DeliveryError, match="No such file or directory"):
        receiver(kind="command", argv=["/no/such/program"]).deliver(sample_notification())


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    text = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open(sys.argv[1], 'w').write(str(child.pid))\n"
        "time.sleep(600)"
    )
    with pytest.raises(DeliveryError, match="took longer than 2 s and was ended"):
        receiver(kind="command", argv=script(tmp_path, text), timeout="2s").deliver(sample_notification())
    child = int((tmp_path / "out").read_text())
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(child).wait(60)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_command_may_leave_something_running(tmp_path: Path) -> None:
    text = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open(sys.argv[1], 'w').write(str(child.pid))"
    )
    receiver(kind="command", argv=script(tmp_path, text), timeout="30s").deliver(sample_notification())
    child = int((tmp_path / "out").read_text())
    os.kill(child, 9)


# Alertmanager


def test_alertmanager_gets_its_own_form() -> None:
    with Hook() as hook:
        manager = receiver(kind="alertmanager", url=hook.url, labels={"team": "storage"}, valid="2h")
        manager.deliver(sample_notification())
        manager.deliver(sample_notification("resolved", state="resolved", resolved_at=minute(30)))
    (fired,), (resolved,) = hook.posts
    assert fired["labels"] == {
        "team": "storage", "alertname": "busy", "kind": "fsu", "filesystem": "scratch", "subject": "scratch",
        "severity": "warning",
    }  # fmt: skip
    assert fired["labels"] == resolved["labels"]
    assert (fired["startsAt"], fired["endsAt"]) == ("2026-03-02T00:00:00Z", "2026-03-02T02:10:00Z")
    assert resolved["endsAt"] == "2026-03-02T00:30:00Z"
    assert fired["annotations"]["description"] == alert().why
    assert fired["generatorURL"] == alert().link
    assert [headers["Content-Type"] for headers in hook.headers] == ["application/json"] * 2
