"""Mail by SMTP, over STARTTLS or TLS unless the configuration says otherwise."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Final

from iolens.alerts.notifications import Notification
from iolens.alerts.receivers import DeliveryError
from iolens.alerts.receivers.exchange import deadline, needed_text, secret, timeout_of
from iolens.config import POSITIVE, TEXT, TEXTS, checked_section
from iolens.errors import InputError
from iolens.visible_text import shortened, visible

KEYS: Final = {
    **dict.fromkeys(("name", "kind", "host", "tls", "from", "user", "password_env", "password_file"), TEXT),
    **dict.fromkeys(("ca", "timeout"), TEXT),
    "to": TEXTS,
    "port": POSITIVE,
}
STARTTLS, TLS, PLAIN = "starttls", "tls", "none"
EXCHANGES: Final = 3.0  # times the timeout: servers may pause on purpose before each answer
PORTS: Final = {STARTTLS: 587, TLS: 465, PLAIN: 25}


@dataclass(frozen=True, slots=True)
class Mail:
    """One server and those who get the mails."""

    name: str
    host: str
    port: int
    tls: str
    sender: Address
    to: tuple[Address, ...]
    timeout_s: float
    values: dict[str, Any]
    kind: str = "smtp"
    renew_s: float | None = None

    def deliver(self, notification: Notification) -> None:
        """One mail to all of them; success is that the server took it for each."""
        password = secret(self.values, "password")
        connected: list[smtplib.SMTP] = []
        try:
            with deadline(EXCHANGES * self.timeout_s, lambda: connected[0].sock if connected else None):
                connected.append(self._connected())
                refused = self._sent(connected[0], password, notification)
        except (OSError, smtplib.SMTPException) as error:  # ssl.SSLError is an OSError
            raise DeliveryError(f"{self.host}: {_problem(error)}", not _is_refusal(error)) from None
        if refused:
            raise DeliveryError(f"{self.host} refused {shortened(visible(', '.join(refused)))}", is_down=False)

    def _connected(self) -> smtplib.SMTP:
        if self.tls == TLS:
            return smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout_s, context=self._context())
        return smtplib.SMTP(self.host, self.port, timeout=self.timeout_s)

    def _sent(self, server: smtplib.SMTP, password: str | None, notification: Notification) -> Collection[str]:
        """Recipients that the server did not take."""
        with server:
            if self.tls == STARTTLS:
                server.starttls(context=self._context())
            if password is not None:
                server.login(self.values["user"], password)
            return server.send_message(self.message(notification))

    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.values.get("ca"))

    def message(self, notification: Notification) -> EmailMessage:
        """The mail. Names are made visible before they stand in a header, which refuses line ends besides."""
        message = EmailMessage(policy=SMTP)
        message["Subject"] = notification.title
        message["From"] = self.sender
        message["To"] = self.to
        message["Date"] = format_datetime(notification.created_at)
        message["Message-ID"] = f"<{notification.id.replace('/', '.')}@{self.sender.domain}>"
        message["Auto-Submitted"] = "auto-generated"
        message["X-Iolens-Notification"] = notification.id
        message.set_content(notification.text())
        return message


def _is_refusal(error: Exception) -> bool:
    """Whether the server took a look at this very mail and does not want it."""
    return isinstance(error, smtplib.SMTPRecipientsRefused | smtplib.SMTPSenderRefused | smtplib.SMTPDataError)


def _problem(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        return shortened(visible(f"{error.smtp_code} {said}"), 200)
    return shortened(visible(f"{type(error).__name__}: {error}"), 200)


def mail(path: Path, where: str, section: Mapping[str, Any]) -> Mail:
    """From its section."""
    values = checked_section(path, where, section, KEYS)
    host, sender = (needed_text(path, where, values, key) for key in ("host", "from"))
    tls = values.get("tls", STARTTLS)
    if tls not in PORTS:
        raise InputError(str(path), f"{where}.tls = {tls!r}", f"one of {', '.join(PORTS)}")
    has_secret = "password_env" in values or "password_file" in values
    if ("user" in values) != has_secret:
        raise InputError(
            str(path), f"{where}: user and password do not go alone", "user, and password_env or password_file"
        )
    if has_secret and tls == PLAIN:
        raise InputError(str(path), f"{where}: a password would be sent in the clear", 'tls = "starttls" or "tls"')
    if not values.get("to"):
        raise InputError(str(path), f"{where} lacks to", 'a list of addresses, such as ["storage@example.org"]')
    return Mail(
        name=values["name"],
        host=host,
        port=int(values.get("port", PORTS[tls])),
        tls=tls,
        sender=_address(path, f"{where}.from", sender),
        to=tuple(_address(path, f"{where}.to", text) for text in values["to"]),
        timeout_s=timeout_of(path, where, values),
        values=values,
    )


def _address(path: Path, where: str, text: str) -> Address:
    try:
        address = Address(addr_spec=text)
    except (HeaderParseError, ValueError, IndexError):
        address = None
    if address is None or not address.domain or not text.isascii():
        raise InputError(str(path), f"{where}: {text!r} is no mail address", "such as storage@example.org")
    return address


RECEIVER = mail
