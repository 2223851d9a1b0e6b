"""Questions against their commands: the same names of parameters, and the same values."""

from __future__ import annotations

import click
import pytest

from iolens.cli.main import iolens as root
from iolens.errors import UsageError
from iolens.question import MOST_LISTED
from iolens.web.parameters import AUTO, UrlParameter
from iolens.web.questions import QUESTIONS, ServedQuestion

# Values of all kinds; each is tried on each parameter.
TEXTS = (
    "", "0", "1", "-1", "7", "abc", "1h", "3,4", "3..4", "0.5", "8+2", "133TB", "4KiB", "2026-01-05", "2026-W02",
    "last month", "2026-01-05T19:00", "Europe/Berlin", "Mars", "raw", "60s", "1h", "10s", "job", "user", "node", "name",
    "cores", "strict", "paper", "bytes", "disk", "start", "*", "a,b", "nan", "inf", "-inf", "nan,nan", "1e400",
    "/etc/passwd", "none", "first", "112MB/s", "nanMB/s", "nans", "infB", "2026-01-05T19:00,2026-01-06", "1e9", "90",
)  # fmt: skip
WITH_COMMAND = [question for question in QUESTIONS.values() if question.command]


def command_of(question: ServedQuestion) -> click.Command:
    command: click.Command = root
    for word in question.command:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    return command


def parameter_of(question: ServedQuestion, parameter: UrlParameter) -> click.Parameter:
    """The option or argument that takes what the parameter has."""
    words = parameter.words("1")
    return next(
        known
        for known in command_of(question).params
        if (parameter.is_argument and isinstance(known, click.Argument)) or words[0] in known.opts
    )


def is_read(parameter: UrlParameter, text: str) -> bool:
    try:
        parameter.read(text)
    except UsageError:
        return False
    return True


def is_converted(command: click.Command, known: click.Parameter, text: str) -> bool:
    try:
        known.type_cast_value(click.Context(command), text)
    except click.UsageError:
        return False
    return True


@pytest.mark.parametrize("question", WITH_COMMAND, ids=lambda question: question.name)
def test_every_parameter_is_an_option_that_takes_the_same_values(question: ServedQuestion) -> None:
    command = command_of(question)
    for name, parameter in question.known.items():
        if name == "last":  # the command that is shown has --from and --to
            continue
        known = parameter_of(question, parameter)
        assert isinstance(known, click.Option) is not parameter.is_argument
        assert bool(getattr(known, "is_flag", False)) is parameter.is_switch
        if not parameter.is_switch:
            read = [text for text in TEXTS if is_read(parameter, text)]
            assert read == [text for text in TEXTS if is_converted(command, known, text)], name


def test_what_only_a_url_has_is_no_option() -> None:
    """`auto` becomes a resolution, `last` a window, and lists have an end."""
    utilization, jobs = QUESTIONS["utilization"], QUESTIONS["jobs"]
    resolution = parameter_of(utilization, utilization.known["resolution"])
    assert is_read(utilization.known["resolution"], AUTO)
    assert not is_converted(command_of(utilization), resolution, AUTO)
    assert not any("--last" in known.opts for known in command_of(utilization).params)
    assert is_read(jobs.known["top"], str(MOST_LISTED))
    assert not is_read(jobs.known["top"], str(MOST_LISTED + 1))


def test_names_of_questions_are_addresses() -> None:
    for name in QUESTIONS:
        assert name == name.lower()
        assert name.replace("/", "").isalpha()
        assert QUESTIONS[name].summary[0].isupper()


@pytest.mark.parametrize("text", ["1" * 501, "²", "٣", "１", "1_0", " 1", "1e1", "99999999999999999999"])
def test_a_number_of_lines_is_plain(text: str) -> None:
    with pytest.raises(UsageError, match=r"^top: "):
        QUESTIONS["jobs"].known["top"].read(text)


def test_a_switch_is_one_or_nothing() -> None:
    metadata = QUESTIONS["blame"].known["metadata"]
    assert (metadata.words("1"), metadata.words("0")) == (["--metadata"], [])
    with pytest.raises(UsageError, match="metadata: 'yes' is not known; there are: 0, 1"):
        metadata.words("yes")
