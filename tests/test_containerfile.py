"""The Containerfile, as far as it can be checked without building an image."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import generate_docs

from iolens.web.serve_config import DEFAULT_LISTEN

REPOSITORY = Path(__file__).parent.parent
FILE = REPOSITORY / "contrib" / "Containerfile"
KNOWN = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "RUN", "STOPSIGNAL", "USER", "VOLUME",
    "WORKDIR",
}  # fmt: skip


def _instructions() -> list[tuple[str, str]]:
    """Instructions with their arguments; lines that end in a backslash go on."""
    lines = [line for line in FILE.read_text("utf-8").splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def _only(name: str, stage: int = -1) -> str:
    """The arguments of an instruction that a stage has once."""
    stages: list[list[str]] = []
    for word, rest in _instructions():
        if word == "FROM":
            stages.append([])
        if stages and word == name:
            stages[-1].append(rest)
    (rest,) = stages[stage]
    return rest


def test_every_instruction_is_known() -> None:
    assert {name for name, _ in _instructions()} <= KNOWN


def test_every_variable_is_declared() -> None:
    declared = {rest.partition("=")[0] for name, rest in _instructions() if name == "ARG"}
    assert set(re.findall(r"\$\{?(\w+)", FILE.read_text("utf-8"))) <= declared


def test_what_is_copied_is_there_and_is_what_the_build_reads() -> None:
    copied = [rest.split() for name, rest in _instructions() if name == "COPY" and not rest.startswith("--from=")]
    sources = {source for *sources, _ in copied for source in sources}
    assert [source for source in sources if not (REPOSITORY / source).exists()] == []
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    assert sources == {"pyproject.toml", project["readme"], *project["license-files"], "src", "requirements/serve.txt"}


def test_everything_it_installs_is_pinned_by_hash() -> None:
    commands = " && ".join(rest for name, rest in _instructions() if name == "RUN").split("&&")
    installed = [command for command in commands if " install " in command and "pip" in command]
    assert [command for command in installed if not {"--require-hashes", "--no-deps"} & set(command.split())] == []


def test_build_tools_stay_in_the_first_stage() -> None:
    bases = [rest for name, rest in _instructions() if name == "FROM"]
    assert [" AS build" in base for base in bases] == [True, False]
    assert all(base.split()[0].endswith("-slim") for base in bases)
    assert _only("COPY") == "--from=build /opt/iolens /opt/iolens"
    assert "pip uninstall" in _only("RUN")
    assert "apt-get" not in FILE.read_text("utf-8")


def test_it_does_not_run_as_root_and_writes_two_volumes() -> None:
    assert _only("USER") == "iolens"
    volumes = json.loads(_only("VOLUME"))
    assert volumes == re.findall(r"IOLENS_(?:STORE|STATE)=(\S+)", _only("ENV"))
    assert all(f" {volume}" in _only("RUN") for volume in volumes)


def test_it_serves_by_default_and_checks_its_health() -> None:
    assert json.loads(_only("ENTRYPOINT")) == ["iolens"]
    command, *options = json.loads(_only("CMD"))
    text = generate_docs.help_text((command,))
    assert all(option in text for option in options if option.startswith("--"))
    assert options[options.index("--listen") + 1] == f"0.0.0.0:{DEFAULT_LISTEN.port}"
    assert _only("EXPOSE") == str(DEFAULT_LISTEN.port)
    program = json.loads(_only("HEALTHCHECK").partition("CMD ")[2])[2]
    assert f"http://127.0.0.1:{DEFAULT_LISTEN.port}/healthz" in program
    compile(program, "HEALTHCHECK", "exec")
