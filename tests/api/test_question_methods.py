"""Questions as methods of an open store: what a notebook sees of them, the same answers as the command, refusals."""

from __future__ import annotations

import inspect
import json
import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import iolens
from iolens.analyses.runs.asked import RunConditions
from iolens.api import OpenStore
from iolens.errors import UsageError
from iolens.question import Question
from iolens.questions import all_questions
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.units import from_epoch_us, iso
from iolens.views.render.json_text import to_json
from tests.analyses.client_rows import T0_S
from tests.analyses.like_jobs import REGRESSION, like_job, stored_like_jobs
from tests.analyses.run_rows import fill_runs
from tests.analyses.runs.test_run_analyses import made_up_runs
from tests.cli.command import iolens as command_line

QUESTIONS = all_questions()
MANY = "filesystem", "since", "until", "during", "targets", "source", "resolution", "timezone"
each_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.words)


def at(job: int) -> datetime:
    return from_epoch_us(round((T0_S + 7200 * job) * 1e6))


BERLIN = (at(4) + timedelta(hours=1)).replace(tzinfo=None).isoformat()  # in winter


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight jobs whose reads become smaller after the fourth, and runs of others."""
    folder, random = tmp_path_factory.mktemp("store"), np.random.default_rng(1)
    jobs = [like_job(number, random, *([REGRESSION] if number >= 4 else [])) for number in range(8)]
    stored_like_jobs(Store(folder), jobs)
    fill_runs(Store(folder), *made_up_runs(2, 40))
    return folder


@pytest.fixture(scope="module")
def store(place: Path) -> Iterator[OpenStore]:
    with iolens.open(str(place), workers=1) as opened:
        yield opened


def given_to(question: Question) -> list[str]:
    """What narrows it, as its command has it."""
    return {"times": ["since", "until", "during", "timezone"], "store": []}.get(question.about, list(MANY))


def test_every_question_is_a_method(store: OpenStore) -> None:
    assert {question.name for question in QUESTIONS} <= set(dir(store))
    assert dir(store) == sorted(set(dir(store)))
    assert {"analyse", "ingest", "plan", "growth"} <= set(dir(store))


@each_question
def test_a_notebook_shows_what_a_method_does_and_takes(store: OpenStore, question: Question) -> None:
    method = getattr(store, question.name)
    assert method.__name__ == question.name
    text = inspect.getdoc(method) or ""
    assert text.startswith(inspect.cleandoc(question.text))
    parameters = inspect.signature(method).parameters
    own = [option.name for option in question.options]
    assert set(parameters) == {*own, *given_to(question), "listener"}
    for option in question.options:
        assert f"`{option.name}`: {option.meaning}" in text
        default = parameters[option.name].default
        assert default == (inspect.Parameter.empty if option.is_needed else option.usual)
    by_place = [name for name, item in parameters.items() if item.kind is item.POSITIONAL_OR_KEYWORD]
    needed = [option.name for option in question.options if option.is_argument and option.is_needed]
    assert by_place == [*needed, *(name for name in ("filesystem",) if name in parameters and name not in own)]
    assert "ForwardRef" not in str(inspect.signature(method))


@pytest.mark.parametrize(
    ("method", "options", "command"),
    [
        ("runs_projects", {}, "runs projects"),
        ("runs_projects", {"min_processes": 1, "min_bytes": "1MiB", "projects": ["*"], "method": "paper"},
         "runs projects --min-processes 1 --min-bytes 1MiB --project '*' --method paper"),
        ("runs_coverage", {"projects": "*"}, "runs coverage --project '*'"),
        ("runs_coverage", {"like": RunConditions(projects=("*",))}, "runs coverage --project '*'"),
        ("runs_scaling", {"projects": ["*"], "top": 2}, "runs scaling --project '*' --top 2"),
        ("job_list", {"sort": "opens", "names": ["enz*"], "top": 3}, "job list --sort opens --name 'enz*' --top 3"),
        ("job_list", {"filesystem": "scratch", "until": iso(at(3))}, f"job list -f scratch --to {iso(at(3))}"),
        ("job_search", {"text": "enz", "reverse": True, "skip": 1}, "job search enz --reverse --skip 1"),
        ("job_compare", {"after": iso(at(4))}, f"job compare --after {iso(at(4))}"),
        ("job_compare", {"after": at(4), "names": ["*"]}, f"job compare --after {iso(at(4))} --name '*'"),
        ("job_compare", {"after": BERLIN, "timezone": "Europe/Berlin"}, f"job compare --after {iso(at(4))}"),
        ("job_compare", {"jobs": ["1004", "1005"], "against": "1000,1001", "significance": 0.05},
         "job compare --jobs 1004,1005 --against 1000,1001 --significance 0.05"),
        ("store_log", {"top": 1}, "store log --top 1"),
        ("store_sources", {"since": iso(at(0))}, f"store sources --from {iso(at(0))}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_method_answers_what_its_command_answers(
    store: OpenStore, place: Path, method: str, options: dict[str, Any], command: str
) -> None:
    workers = () if command.startswith("store") else ("--workers", 1)
    done = command_line(*shlex.split(command), "--store", place, *workers, "--format", "json")
    assert done.code == 0, done.err
    assert json.loads(to_json(getattr(store, method)(**options))) == json.loads(done.out)


def test_a_file_system_may_stand_first(store: OpenStore) -> None:
    whole = store.job_list(top=2)
    assert store.job_list("scratch", top=2) == store.job_list(Scope("scratch"), top=2) == whole
    assert store.job_list(filesystem="scratch", since=None, targets=None, top=2) == whole


@each_question
def test_an_unknown_option_is_refused_with_the_nearest(store: OpenStore, question: Question) -> None:
    for name in (*(option.name for option in question.options), "listener"):
        with pytest.raises(UsageError, match=rf"^{question.name} has no option '{name}x'; did you mean .*\b{name}\b"):
            getattr(store, question.name)(**{f"{name}x": 1})


@each_question
def test_what_would_have_no_effect_is_refused(store: OpenStore, question: Question) -> None:
    own = {option.name for option in question.options}
    for name in set(MANY) - own - set(given_to(question)):
        with pytest.raises(UsageError, match=rf"^{question.name} has no option '{name}'"):
            getattr(store, question.name)(**{name: "scratch"})


@pytest.mark.parametrize("method", ["store_log", "store_sources", "store_filesystems"])
def test_a_question_about_the_whole_store_takes_no_file_system(store: OpenStore, method: str) -> None:
    with pytest.raises(UsageError, match=f"{method} has no option 'filesystem', being about the whole store; there"):
        getattr(store, method)("scratch")


@pytest.mark.parametrize(
    ("method", "arguments", "options", "says"),
    [
        ("explain", (), {}, "explain needs run: Id of a job or run"),
        ("plan_metadata", ("scratch",), {}, "plan_metadata needs capacity: Capacity of the new file system"),
        ("runs_projects", (), {"top": 0}, "runs_projects has no option 'top'"),
        ("runs_scaling", (), {"top": 0}, "top: '0' is not a whole number from 1 to 100,000,000"),
        ("job_list", (), {"sort": "size"}, "sort: 'size' is not known"),
        ("job_list", (), {"timezone": "Mars"}, "timezone: no time zone is called 'Mars'"),
        ("runs_files", (), {"like": RunConditions(), "users": ["ada"]}, "runs_files: like says users already"),
    ],
)
def test_what_is_refused(
    store: OpenStore, method: str, arguments: tuple[str, ...], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError) as error:
        getattr(store, method)(*arguments, **options)
    assert str(error.value).startswith(says)


def test_a_call_that_says_too_much_is_one_of_python(store: OpenStore) -> None:
    with pytest.raises(TypeError, match=r"job_list\(\) takes at most 1 arguments: filesystem"):
        store.job_list("scratch", "scratch2")
    with pytest.raises(TypeError, match=r"job_list\(\) got several values of 'filesystem'"):
        store.job_list("scratch", filesystem="scratch2")


def test_an_unknown_method_names_the_nearest(store: OpenStore) -> None:
    with pytest.raises(AttributeError, match=r"no question called 'run_projects'; did you mean runs_projects\?"):
        _ = store.run_projects
    with pytest.raises(AttributeError, match=r"no question called 'ingestt'; did you mean ingest\?"):
        _ = store.ingestt
    assert not hasattr(store, "_repr_html_")
