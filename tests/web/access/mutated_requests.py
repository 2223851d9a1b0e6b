"""Raw requests, seeded damage to them, and what a sane server may answer."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.fuzz.mutations import Mutation, mutated

AT_ONCE = 48
LONGEST_ANSWER = 1 << 16
SANE = {200, 303, 400, 401, 403, 404, 405, 408, 411, 413, 414, 415, 421, 422, 429, 431, 503}
LEAKS = re.compile(
    rb"Traceback|\.py\b|sqlite|/srv/|SELECT |iolens_[A-Za-z0-9_-]{43}|starlette|uvicorn|fastapi", re.IGNORECASE
)
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n")
TARGETS = (
    "/", "/jobs", "/jobs/17", "/jobs/caf%C3%A9?sort=bytes&from=now-1d", "/filesystems/scratch", "/users", "/healthz",
    "/login", "/static/dashboard.css", "/api/v1/jobs", "/api/v1/filesystems/scratch", "/api/v1/changes", "/alerts",
)  # fmt: skip
PIECES = (
    b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n",
    b"Content-Length: 9999999999\r\n", b"Transfer-Encoding: identity, chunked\r\n", b"Expect: 100-continue\r\n",
    b"Upgrade: h2c\r\nConnection: Upgrade\r\n",
    b"Host: evil.example.org\r\n", b"X-Forwarded-For: 1.2.3.4\r\n", b"X-Remote-User: root\r\n", b"Cookie: iolens=\r\n",
    b"Origin: null\r\n", b"Content-Encoding: gzip\r\n", b"Range: bytes=0-\r\n", b"X-HTTP-Method-Override: DELETE\r\n",
    b"X-A: " + b"a" * 70_000 + b"\r\n", b"X-B: y\r\n" * 120, b" folded: value\r\n", b"\r\n\r\n", b"\n", b"\0",
    b"%2e%2e/", b"/../", b"%00", b"%c0%af", b"\xff\xfe", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"HTTP/0.9", b"HTTP/9.9", b"ffffffffffffffff\r\n", b"0\r\n\r\n",
)  # fmt: skip


def requests(tokens: dict[str, str]) -> list[bytes]:
    """Good requests, with and without tokens."""
    origin = "Origin: http://x\r\n"
    credentials = ["", f"Cookie: a=b; iolens={tokens['cookie']}\r\n"]
    credentials += [f"Authorization: Bearer {tokens[role]}\r\n" for role in ("viewer", "operator", "agent")]
    heads = [f"GET {target} HTTP/1.1\r\nHost: x\r\n{held}Accept: */*\r\n" for target in TARGETS for held in credentials]
    form = f"token={tokens['viewer']}&next=/jobs"
    kind = "Content-Type: application/x-www-form-urlencoded\r\n"
    bodies = [
        f"POST /login HTTP/1.1\r\nHost: x\r\n{origin}{kind}Content-Length: {len(form)}\r\n|{form}",
        f"POST /login HTTP/1.1\r\nHost: x\r\n{origin}{kind}Content-Length: 7\r\n|token=x",
        f"POST /api/v1/silences HTTP/1.1\r\nHost: x\r\n{credentials[3]}Content-Length: 2\r\n|{{}}",
        f"POST /api/v1/silences HTTP/1.1\r\nHost: x\r\n{credentials[1]}{origin}Content-Length: 2\r\n|{{}}",
        f"DELETE /api/v1/silences/5 HTTP/1.1\r\nHost: x\r\n{credentials[3]}|",
        f"PUT /api/v1/hub/segments/a HTTP/1.1\r\nHost: x\r\n{credentials[4]}Transfer-Encoding: chunked\r\n"
        "|5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n",
    ]
    heads = [f"{head}|" for head in heads] + bodies
    return [head.replace("|", "Connection: close\r\n\r\n", 1).encode() for head in heads]


def mutated_request(good: list[bytes], seed: int) -> Mutation:
    """The request of a number: damaged bytes, or pieces of other requests put in."""
    chance = random.Random(seed)
    request = chance.choice(good)
    if chance.random() < 0.5:
        return mutated(request, chance)
    for _ in range(chance.choice((1, 1, 2, 3))):
        breaks = [0, *(match.end() for match in re.finditer(rb"\r\n| |/", request))]
        place = chance.choice(breaks)
        request = request[:place] + chance.choice(PIECES) + request[place:]
    return Mutation("pieces", request)


@dataclass
class Outcome:
    """What a run has seen."""

    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)  # of the server, as the run goes on
    descriptors: list[int] = field(default_factory=list)
    log: str = ""


@contextmanager
def served(folder: Path) -> Iterator[tuple[psutil.Process, int, dict[str, str], Path]]:
    """The server's process, its port, its tokens and its log."""
    log = folder / "server.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.web.access.served_process", folder / "state"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            started = json.loads(process.stdout.readline())
            yield psutil.Process(process.pid), started["port"], started["tokens"], log
        finally:
            process.stdin.close()
            process.stdout.close()
            process.wait(60)


def run(count: int, folder: Path, first: int = 0) -> Outcome:
    """Send so many mutated requests to a server in a process of its own."""
    outcome = Outcome()
    with served(folder) as (process, port, tokens, log):
        good = requests(tokens)
        for begin in range(first, first + count, count // 10 or 1):
            seeds = range(begin, min(begin + (count // 10 or 1), first + count))
            asyncio.run(
                _send_all(port, [mutated_request(good, seed) for seed in seeds], seeds, list(tokens.values()), outcome)
            )
            outcome.memory_bytes.append(process.memory_info().rss)
            outcome.descriptors.append(process.num_fds())
        healthy = asyncio.run(_answer(port, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
        if b'{"status":"ok"}' not in healthy:
            outcome.faults.append(f"the server does not serve afterwards: {healthy[:200]!r}")
    outcome.log = log.read_text("utf-8", "replace")
    return outcome


async def _send_all(port: int, mutations: list[Mutation], seeds: range, secrets: list[str], outcome: Outcome) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def send(seed: int, mutation: Mutation) -> None:
        async with gate:
            answer = await _answer(port, mutation.content)
        outcome.statuses.update(int(status) for status in STATUS.findall(answer))
        if problem := _problem(mutation.content, answer, secrets):
            outcome.faults.append(f"{seed} ({mutation.kind}): {problem}: {mutation.content[:300]!r} → {answer[:300]!r}")

    await asyncio.gather(*(send(seed, mutation) for seed, mutation in zip(seeds, mutations, strict=True)))


async def _answer(port: int, sent: bytes) -> bytes:
    """What comes until the server closes; an answer that streams is read for a while."""
    parts = bytearray()
    with suppress(ConnectionError, BrokenPipeError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(60):
                writer.write(sent)
                while (
                    len(parts) < LONGEST_ANSWER and b"data: tick" not in parts and (part := await reader.read(1 << 16))
                ):
                    parts += part
        except TimeoutError:
            parts += b"(neither answered nor closed)"
        finally:
            writer.close()
    return bytes(parts)


def _problem(sent: bytes, answer: bytes, secrets: list[str]) -> str | None:
    """What is wrong with an answer, if anything."""
    if b"(neither answered nor closed)" in answer:
        return "neither answered nor closed"
    statuses = [int(status) for status in STATUS.findall(answer)]
    if answer and not answer.startswith(b"HTTP/1.1 "):
        return "no HTTP"
    if wrong := set(statuses) - SANE - {100}:
        return f"status {wrong}"
    if LEAKS.search(answer) or any(secret.encode() in answer for secret in secrets):
        return "leaks"
    if answer.count(b"\r\nx-content-type-options: nosniff") < sum(status != 100 for status in statuses):
        return "an answer without secure headers"
    is_opened = b"page for" in answer or b'"role":' in answer
    return "opened without a token" if is_opened and not any(secret.encode() in sent for secret in secrets) else None
