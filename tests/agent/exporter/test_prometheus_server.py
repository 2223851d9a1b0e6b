"""The HTTP side: what hangs, what floods and what is hostile must not keep a scrape from its page."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from iolens.agent.exporter import server as prometheus_server
from iolens.agent.exporter.access import ExporterAccess
from iolens.agent.exporter.metrics import OPENMETRICS, TEXT
from iolens.agent.exporter.reading import MetricCollector, MetricReading
from iolens.agent.exporter.readings import Exporter, MetricsPage
from iolens.agent.exporter.server import MOST_ANSWERS, Address, MetricsServer
from iolens.sources.lustre import lustre_proc
from iolens.sources.reading.bounded_input import parameter_bytes
from tests.agent.exporter.running_server import running_server
from tests.agent.exposition import Samples, matching, only, parsed
from tests.agent.server import Server


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Server(tmp_path / "root").work()
    return tmp_path / "root"


@pytest.fixture
def server(root: Path) -> Iterator[MetricsServer]:
    with serving(root, timeout_s=60.0) as running:
        yield running


@contextmanager
def serving(root: Path, **settings: object) -> Iterator[MetricsServer]:
    """Without passwords and TLS, and without a word of trouble."""
    said: list[str] = []
    with running_server(root, ExporterAccess(), said, **settings) as running:
        yield running
    assert said == []


def get(server: MetricsServer, path: str, method: str = "GET", **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(server.address.host, server.address.port, timeout=60)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def raw(server: MetricsServer, request: bytes) -> bytes:
    with socket.create_connection(server.address, timeout=60) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        return answer


def test_the_page_in_the_format_asked_for(server: MetricsServer) -> None:
    answer = get(server, "/metrics")
    assert (answer.status, answer.headers["Content-Type"]) == (200, TEXT)
    assert only(parsed(answer.read()), "iolens_scrape_success", collector="lustre") == 1
    answer = get(server, "/metrics?x=../../etc/passwd", Accept="application/openmetrics-text")
    assert answer.headers["Content-Type"] == OPENMETRICS
    assert parsed(answer.read(), OPENMETRICS)
    answer = get(server, "/metrics", **{"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"


def test_the_other_paths(server: MetricsServer) -> None:
    assert b"/metrics" in get(server, "/").read()
    assert get(server, "/-/healthy").status == 200
    answer = get(server, "/metrics", "HEAD")
    assert (answer.status, answer.read()) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 1000
    assert "Python" not in answer.headers["Server"]


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/../../etc/passwd", "/metrics/../../etc/passwd", "//etc/passwd", "/%2e%2e/x", "/metrics/", "*"],
)
def test_no_path_leads_to_a_file(server: MetricsServer, path: str) -> None:
    answer = raw(server, f"GET {path} HTTP/1.0\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.0 404 ")
    assert b"root:" not in answer
    assert b"etc/passwd" not in answer


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", b"501"),
        (b"DELETE / HTTP/1.0\r\n\r\n", b"501"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.0\r\n\r\n", b"414"),
        (b"GET / HTTP/1.0\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"431"),
        (b"GET / HTTP/1.0\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", b"431"),
        (b"GET / HTTP/9.9\r\n\r\n", b"505"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
    ],
)
def test_odd_requests_get_a_short_refusal(server: MetricsServer, request_: bytes, status: bytes) -> None:
    try:
        answer = raw(server, request_)
    except ConnectionResetError:
        answer = b""  # it hung up before all of it was sent
    assert not answer or status in answer.split(b"\r\n")[0] or status in answer[:400]
    assert get(server, "/-/healthy").status == 200


@contextmanager
def clients(server: MetricsServer, count: int, begin: bytes) -> Iterator[list[socket.socket]]:
    """Connections that send some bytes and then dawdle."""
    result = [socket.create_connection(server.address, timeout=60) for _ in range(count)]
    try:
        for connection in result:
            connection.sendall(begin)
        yield result
    finally:
        for connection in result:
            connection.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No client is cut off because it is slow: whoever is answered did not wait for that."""
    for name in ("REQUEST_S", "SILENCE_S", "LONGEST_S"):
        monkeypatch.setattr(prometheus_server, name, 3600.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("begin", [b"", b"G", b"GET /metrics HTTP/1.1\r\nAccept: "])
def test_a_scrape_is_served_while_a_hundred_slow_clients_hang(server: MetricsServer, begin: bytes) -> None:
    """Twenty-four were enough to keep every scrape out for half a minute."""
    with clients(server, 100, begin) as slow:
        for number in range(5):
            slow[number].sendall(b"E")  # a byte now and then
            answer = get(server, "/metrics")
            assert answer.status == 200
            assert only(parsed(answer.read()), "iolens_scrape_success", collector="lustre") == 1


@pytest.mark.usefixtures("patient")
def test_a_scrape_is_served_while_others_do_not_read_their_pages(
    server: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would take 8 MB and reads none; so many pages are not kept in memory for them."""
    large = MetricsPage(b"x" * 8_000_000, True, True)
    monkeypatch.setattr(Exporter, "page", lambda *_, **__: large)
    with clients(server, 40, b"GET /metrics HTTP/1.0\r\n\r\n"):
        assert len(get(server, "/metrics").read()) == 8_000_000
        assert get(server, "/-/healthy").status == 200
        assert sum(item.answer is not None for item in list(server._open)) <= MOST_ANSWERS


def test_slow_clients_give_way_to_new_ones_and_are_cut_off(
    server: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_server, "MOST_OPEN", 10)
    with clients(server, 30, b"GET /metr") as slow:
        assert get(server, "/-/healthy").status == 200
        assert is_cut_off(slow[0])  # the first that came was the first to go
        assert len(server._open) <= 10
        monkeypatch.setattr(prometheus_server, "REQUEST_S", 0.0)
        assert is_cut_off(slow[-1])


def is_cut_off(client: socket.socket) -> bool:
    """Closed by the server: in order, or with a reset where it had not read all that was sent."""
    try:
        return client.recv(100) == b""
    except ConnectionResetError:
        return True


def test_a_client_that_says_nothing_is_not_waited_for(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus_server, "REQUEST_S", 0.1)
    with socket.create_connection(server.address, timeout=60) as silent:
        assert silent.recv(100) == b""


def test_a_client_that_stops_reading_is_cut_off(server: MetricsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Exporter, "page", lambda *_, **__: MetricsPage(b"x" * 8_000_000, True, True))
    monkeypatch.setattr(prometheus_server, "SILENCE_S", 0.2)
    with socket.create_connection(server.address, timeout=60) as lazy:
        lazy.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        until(lambda: any(item.answer is not None for item in list(server._open)))
        until(lambda: not server._open)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_more_requests_than_can_wait_are_reported_to_come_back(
    server: MetricsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = threading.Event()
    monkeypatch.setattr(prometheus_server, "MOST_WAITING", 3)
    monkeypatch.setattr(Exporter, "page", lambda *_, **__: free.wait(600) and MetricsPage(b"x", True, True))
    with clients(server, 3, b"GET /metrics HTTP/1.0\r\n\r\n") as waiting:
        deadline = time.monotonic() + 60
        while b" 503 " not in (answer := raw_quietly(server)):
            assert time.monotonic() < deadline
        assert b"Retry-After: 1" in answer
        free.set()
        assert all(b" 200 " in connection.recv(1000) for connection in waiting)


def raw_quietly(server: MetricsServer) -> bytes:
    try:
        return raw(server, b"GET /-/healthy HTTP/1.0\r\n\r\n")
    except OSError:
        return b" "


def test_many_at_once_share_one_reading(root: Path) -> None:
    with serving(root, interval_s=1000.0) as server:
        answers: list[int] = []
        threads = [threading.Thread(target=lambda: answers.append(get(server, "/metrics").status)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [200] * 6


@dataclass
class HangingFile:
    """A file of which a read does not return until the event is set."""

    path: Path
    reads: int = 0
    returns: threading.Event = field(default_factory=threading.Event)

    def read(self, path: Path) -> bytes:
        if path == self.path:
            self.reads += 1
            self.returns.wait()
        return parameter_bytes(path)


@contextmanager
def hanging(monkeypatch: pytest.MonkeyPatch, hung: Path) -> Iterator[HangingFile]:
    """As in the kernel. (A pipe would be refused, not read.)"""
    file = HangingFile(hung)
    monkeypatch.setattr(lustre_proc, "parameter_bytes", file.read)
    try:
        yield file
    finally:
        file.returns.set()


def test_a_file_that_hangs_costs_its_collector_and_not_the_scrape(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read of the jobs before is served again, so that nothing but the hanging file is late."""
    hung = root / "proc/fs/lustre/obdfilter/scratch-OST0001/stats"
    monkeypatch.setattr(
        lustre_proc, "READ_LIMIT_S", 3600.0
    )  # so that the reading hangs for as long as the scrapes last

    def scraped() -> Samples:
        return parsed(get(server, "/metrics").read())

    with serving(root, timeout_s=0.3, jobs_interval_s=1000.0) as server, hanging(monkeypatch, hung) as file:
        until(lambda: only(scraped(), "iolens_scrape_success", collector="jobs") == 1)
        for _ in range(5):
            samples = scraped()
            assert only(samples, "iolens_scrape_success", collector="lustre") == 0
            assert only(samples, "iolens_scrape_success", collector="jobs") == 1
            assert only(samples, "iolens_scrape_duration_seconds", collector="lustre") >= 0.25
            assert list(matching(samples, "lustre_write_bytes_total")) == []  # no old values: they would look idle
        until(lambda: file.reads > 0)
        assert file.reads == 1  # the reading that hangs was not started again

        file.returns.set()
        until(lambda: only(scraped(), "iolens_scrape_success", collector="lustre") == 1)
        until(lambda: sum(matching(scraped(), "lustre_write_bytes_total", target="scratch-OST0000")) > 0)


def test_prometheus_own_time_out_is_respected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hung = root / "proc/fs/lustre/obdfilter/scratch-OST0001/stats"
    with hanging(monkeypatch, hung), serving(root, timeout_s=3600.0) as server:
        samples = parsed(get(server, "/metrics", **{"X-Prometheus-Scrape-Timeout-Seconds": "0.8"}).read())
        assert only(samples, "iolens_scrape_success", collector="lustre") == 0


def test_a_reading_that_fails_says_why_once() -> None:
    said: list[str] = []
    collector = MetricCollector("x", lambda: MetricReading({}, 1, "no such disk"), 0.0, said.append)
    for _ in range(3):
        collector.begin()
        assert not collector.result(time.monotonic() + 60).success
    assert said == ["x: no such disk"]


def test_a_bug_in_a_reading_is_a_failed_reading() -> None:
    def explode() -> MetricReading[list[str]]:
        raise ZeroDivisionError("never thought of")

    said: list[str] = []
    collector = MetricCollector("x", explode, 0.0, said.append)
    collector.begin()
    assert not collector.result(time.monotonic() + 60).success
    assert said == ["x: ZeroDivisionError: never thought of"]


def test_a_scrape_a_little_early_is_on_time() -> None:
    readings = []
    collector = MetricCollector("x", lambda: readings.append(1) or MetricReading({}), 0.2)  # type: ignore[func-returns-value]
    for _ in range(2):
        collector.begin()
        collector.result(time.monotonic() + 60)
        time.sleep(0.19)
    collector.begin()
    collector.result(time.monotonic() + 60)
    assert len(readings) == 3


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9169", Address("127.0.0.1", 9169)),
        ("[::1]:0", Address("::1", 0)),
        ("localhost:80", Address("localhost", 80)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize(
    "text", ["", "9169", ":9169", "host:", "host:x", "host:65536", "::1:9169", "host:٣", "host:-1"]
)
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match="write HOST:PORT"):
        Address.parse(text)


def test_the_url_of_an_address() -> None:
    assert Address("::1", 9169).url() == "http://[::1]:9169"
    assert Address("127.0.0.1", 1).url() == "http://127.0.0.1:1"
