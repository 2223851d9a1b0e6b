"""Job ids of job_stats: every form of `jobid_var` and `jobid_name`, cut ones, ones that lack fields, blank ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.analyses.attribution.whose import (
    NOT_WHOLE,
    UNKNOWN,
    JobIdForm,
    JobIdParts,
    guessed_parts,
    shown_job_id,
    size_of_id,
)


def cut(job_id: str | None = None, host: str | None = None) -> JobIdParts:
    return JobIdParts(job_id, host=host, is_whole=False)


def lustre_id(pattern: str, values: dict[str, str]) -> str:
    """The id that a client makes, as `jobid_interpret_string` of Lustre does it: at most 31 bytes."""
    made = re.sub(r"%(.)", lambda code: values.get(code[1], ""), re.sub(r"\s", "", pattern))
    return made.encode()[:31].decode("utf-8", "backslashreplace")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1234", JobIdParts("1234")),
        ("1234_5", JobIdParts("1234_5")),
        ("1234+0", JobIdParts("1234+0")),
        ("1234.0", JobIdParts("1234")),
        ("1234_5.0", JobIdParts("1234_5")),
        ("1234.batch", JobIdParts("1234")),
        ("1234.pbs01.example.org", JobIdParts("1234")),
        ("1234[5].pbs01", JobIdParts("1234[5]")),
        ("1234[].pbs01", JobIdParts("1234[]")),
        ("dd.1000", JobIdParts(executable="dd", uid=1000)),
        ("a.out.0", JobIdParts(executable="a.out", uid=0)),
        ("kworker/162:1.0", JobIdParts(executable="kworker/162:1", uid=0)),
        ("tmux: server.1000", JobIdParts(executable="tmux: server", uid=1000)),
        ("caf\\xe9.1001", JobIdParts(executable="caf\\xe9", uid=1001)),
        ("dd.4294967295", JobIdParts(executable="dd", uid=4294967295)),
        ("dd.4294967296", JobIdParts(executable="dd")),
        ("a_name_of_sixteen.1000", UNKNOWN),  # a process has at most 15 bytes
        ("dd", UNKNOWN),
        ("dd.", UNKNOWN),
        (".1000", UNKNOWN),
        ("job@cluster:12", UNKNOWN),
        ("", NOT_WHOLE),
        ("  ", NOT_WHOLE),
    ],
)
def test_an_id_is_read_by_its_looks_where_nobody_stated_the_pattern(text: str, parts: JobIdParts) -> None:
    assert guessed_parts(text) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1234567.pbs-server.example.org"[:30], JobIdParts("1234567")),
        ("1234567.pbs-server.example.organisation"[:31], JobIdParts("1234567", is_whole=False)),
        ("1" * 31, NOT_WHOLE),
        ("1" * 30, JobIdParts("1" * 30)),
        ("x" * 31, NOT_WHOLE),
        ("x" * 30, UNKNOWN),
        ("é" * 15 + "x", NOT_WHOLE),  # 31 bytes in 16 characters
        ("\\xe9" * 31, NOT_WHOLE),
    ],
)
def test_an_id_of_31_bytes_may_be_cut(text: str, parts: JobIdParts) -> None:
    assert guessed_parts(text) == parts


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        ("%j", "1234", JobIdParts("1234")),
        ("%j", "1234[5].pbs01", JobIdParts("1234[5]")),
        ("%j", "my-session", JobIdParts("my-session")),
        ("%e.%u", "my.prog.1000", JobIdParts(executable="my.prog", uid=1000)),
        ("procname_uid", "dd.0", JobIdParts(executable="dd", uid=0)),
        ("%j:%u:%e", "1234:1000:tmux: server", JobIdParts("1234", "tmux: server", 1000)),
        ("%u.%g@%h", "1000.100@n1.example.org", JobIdParts(None, None, 1000, 100, "n1.example.org")),
        ("%H-%j", "nid-001-77", JobIdParts("77", host="nid-001")),
        ("job%j", "job1234", JobIdParts("1234")),
        ("%j %e", "1234dd", JobIdParts()),  # Lustre leaves out blanks: 1234 and dd, 123 and 4dd, …
        ("%e%%%u", "dd1000", JobIdParts()),
        ("%e:%p", "dd:4711", JobIdParts(executable="dd")),
        ("%j.%e.%u", "1234.a.out.1000", JobIdParts("1234", "a.out", 1000)),
        ("%j.%e.%u", "1234_5.python3.11.1000", JobIdParts("1234_5", "python3.11", 1000)),
        ("%e.%j", "dd.1234.server", JobIdParts("1234", "dd")),
        ("%e.%j", "a.out.1234", JobIdParts("1234", "a.out")),
        ("%j:%e", "1234:kworker/1:2", JobIdParts("1234", "kworker/1:2")),
        ("%j.%e.%u", "my.job.dd.1000", JobIdParts(uid=1000)),  # my.job and dd, or my and job.dd
        ("%e.%h", "a.out.node1", JobIdParts()),
        ("%u:%u:%e", "7:7:dd", JobIdParts(executable="dd", uid=7)),
    ],
)
def test_an_id_is_read_by_the_pattern(pattern: str, text: str, parts: JobIdParts) -> None:
    assert JobIdForm(pattern).parts(text) == parts


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        ("%j:%e:%u", ":dd:1000", JobIdParts(None, "dd", 1000, is_whole=False)),
        ("%j:%e", ":kworker/1:2", JobIdParts(executable="kworker/1:2", is_whole=False)),
        ("%j:%e:%u", "1234::1000", JobIdParts("1234", None, 1000, is_whole=False)),
        ("%j:%e:%u", "1234:dd:", JobIdParts("1234", "dd", is_whole=False)),
        ("%j:%e:%u", "dd:1000", NOT_WHOLE),  # which one is missing nobody knows
        ("%j:%e:%u", "1234", NOT_WHOLE),
        ("%j:%e:%u", "", NOT_WHOLE),
        ("%e.%u", ".1000", JobIdParts(uid=1000, is_whole=False)),
        ("%e.%u", "dd", NOT_WHOLE),
    ],
)
def test_a_field_that_is_missing_is_not_made_up(pattern: str, text: str, parts: JobIdParts) -> None:
    assert JobIdForm(pattern).parts(text) == parts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1234", JobIdParts("1234")),
        ("1234_5", JobIdParts("1234_5")),
        ("1234.server", JobIdParts("1234")),
        ("1234.0", JobIdParts(executable="1234", uid=0)),
    ],
)
def test_a_pattern_without_job_is_for_processes_that_have_none(text: str, parts: JobIdParts) -> None:
    """`jobid_var=SLURM_JOB_ID` and `jobid_name=%e.%u`, Lustre's default: jobs have numbers, others the pattern."""
    assert JobIdForm("%e.%u").parts(text) == parts


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        ("%h:%j", "node1.cluster.example.o:1234567", cut(host="node1.cluster.example.o")),  # 1234567 may be 12345678
        ("%h:%j:%u", "node1.cluster.example.orga:1234", cut(host="node1.cluster.example.orga")),
        ("%h:%j:%u", "node1.cluster.example.org:1234:", cut("1234", host="node1.cluster.example.org")),
        ("%h:%j:%u", "node1.cluster.example.o:1234:10", cut("1234", host="node1.cluster.example.o")),
        ("%j:%h:%e", "12:node1.cluster.organi:kworker", cut("12", host="node1.cluster.organi")),
        ("%e:%u:%H", "twelve_chars:989:node1-long-nam", JobIdParts(None, "twelve_chars", 989, is_whole=False)),
        ("%h:%u", "node1.cluster.exampl:4294967290", JobIdParts(uid=4294967290, host="node1.cluster.exampl")),
        ("%j:%e", "123456789_12345:fifteen_letters", JobIdParts("123456789_12345", "fifteen_letters")),
        ("%j:%h/", "1234567:node123.cluster.organi/", JobIdParts("1234567", host="node123.cluster.organi")),
        ("%h:%j", "node1.a-very-long.name.of.a.org", cut()),
        ("%j-%h", "my-own-session-from-node1.x.org", cut()),
    ],
)
def test_the_last_field_of_31_bytes_is_not_used_if_it_may_be_cut(pattern: str, text: str, parts: JobIdParts) -> None:
    assert size_of_id(text) == 31
    assert JobIdForm(pattern).parts(text) == parts


FIELDS = {"e": r"(?s:.{0,15})", "j": "(?s:.*)", "h": r"[\w.-]*", "H": r"[\w-]*", **dict.fromkeys("gpu", "[0-9]{0,10}")}
PATTERNS = ["%j", "%e.%u", "%j.%e.%u", "%e.%h", "%e.%u.%h", "%j:%u:%H", "%H-%j-%e", "%e%u", "x%jx", "%g.%e.%p.%h"]


def divisions(pattern: str, text: str) -> Iterator[dict[str, str]]:
    """All ways to divide a text, by trying every place."""
    codes = re.findall("%(.)", pattern)
    literals = re.split("%.", pattern)
    begin, end = len(literals[0]), len(text) - len(literals[-1])
    if not text.startswith(literals[0]) or not text.endswith(literals[-1]) or begin > end:
        return
    for ends in combinations_with_replacement(range(begin, end + 1), len(codes) - 1):
        place, values = begin, []
        for literal, stop in zip(["", *literals[1:-1]], [*ends, end], strict=True):
            if not text.startswith(literal, place) or place + len(literal) > stop:
                break
            values.append(text[place + len(literal) : stop])
            place = stop
        else:
            if all(re.fullmatch(FIELDS[code], value) for code, value in zip(codes, values, strict=True)):
                yield dict(zip(codes, values, strict=True))


def doubt(values: dict[str, str]) -> tuple[int, int]:
    job = values.get("j", "0")
    kinds = [
        r"\d+(_\d+|\+\d+|\[\d*\])?",
        r"\d+(_\d+|\+\d+)?\.(\d+|batch|extern|interactive)|\d+(\[\d*\])?\.[A-Za-z][\w.-]*",
        "",
        "(?s:.*)",
    ]
    return next(place for place, kind in enumerate(kinds) if re.fullmatch(kind, job)), list(values.values()).count("")


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PATTERNS), st.text("1a.:_-[x", max_size=14))
def test_what_all_divisions_with_the_least_doubt_agree_on_is_known(pattern: str, text: str) -> None:
    tried = list(divisions(pattern, text)) if text.strip() else []
    least = min(map(doubt, tried), default=None)
    best = [values for values in tried if doubt(values) == least]
    parts = JobIdForm(pattern).parts(text)
    if not best:
        assert parts == (guessed_parts(text) if "%j" not in pattern and guessed_parts(text).job_id else NOT_WHOLE)
        return
    agreed = {code: {values[code] for values in best} for code in best[0]}
    known = {code: values.pop() for code, values in agreed.items() if len(values) == 1 and values != {""}}
    assert parts.executable == known.get("e")
    assert parts.host == known.get("h", known.get("H"))
    assert parts.uid == (int(known["u"]) if "u" in known and int(known["u"]) < 2**32 else None)
    assert (parts.job_id is None) == ("j" not in known)
    assert parts.job_id is None or known["j"].startswith(parts.job_id)
    assert parts.is_whole == all(all(values.values()) for values in best)


VALUES = st.fixed_dictionaries(
    {
        "j": st.from_regex(r"[0-9]{1,12}(_[0-9]{1,4})?", fullmatch=True) | st.just(""),
        "e": st.text("abcé /.", min_size=1, max_size=7).filter(lambda name: len(name.strip()) > 0),
        "u": st.integers(0, 2**32 - 1).map(str),
        "H": st.from_regex(r"[a-z0-9-]{1,14}", fullmatch=True),
    }
)


@settings(max_examples=400, deadline=None)
@given(st.permutations("jeuH").map(lambda codes: ":".join(f"%{code}" for code in codes)), VALUES)
def test_what_a_client_wrote_is_read_back_and_what_was_cut_is_never_wrong(pattern: str, values: dict[str, str]) -> None:
    made = lustre_id(pattern, values)
    parts = JobIdForm(pattern).parts(made)
    true = JobIdParts(values["j"] or None, values["e"], int(values["u"]), None, values["H"], bool(values["j"]))
    if size_of_id(made) < 31:
        assert parts == true
    for own, wanted in zip(parts[:5], true[:5], strict=True):
        assert own is None or own == wanted


def test_an_id_that_is_blank_is_shown_by_a_name() -> None:
    assert (shown_job_id(""), shown_job_id(" "), shown_job_id("dd.0")) == ("(blank id)", "(blank id)", "dd.0")
