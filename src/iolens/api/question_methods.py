"""Every question as a method of an open store: `store.runs_interfaces(since="2026-11-01", projects=["climate"])`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Any, Final, get_type_hints

from iolens.api.listener import Listener
from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.store.scope import Narrowing, Scope
from iolens.times import time_zone

if TYPE_CHECKING:
    from iolens.api.store_analyses import StoreAnalyses
    from iolens.question import About, Gathered, Option, Question

QUESTIONS: Final = "iolens.questions"  # found by name: questions ask through an open store, not the other way
ASKING: Final = "iolens.questions.asking"
ZONE: Final = "timezone"
EVERY_NARROWING: Final[Mapping[str, Any]] = {"filesystem": str | Scope | None, **get_type_hints(Narrowing)}
NARROWED_BY: Final[Mapping[About, tuple[str, ...]]] = {"times": ("since", "until", "during", ZONE), "store": ()}
PLAN: Final = "plan "  # what the words of questions about the next system begin with


def method_words() -> Mapping[str, str]:
    """Words of all questions by the names of their methods."""
    return {words.replace(" ", "_"): words for words in import_module(QUESTIONS).declarations()}


def method_of(store: StoreAnalyses, name: str) -> Callable[..., Any]:
    """The method of a question, with the docstring and the signature that a notebook shows."""
    question = import_module(QUESTIONS).get_question(method_words()[name])

    def method(*arguments: Any, **options: Any) -> Any:
        written = {key: value for key, value in options.items() if key != "listener"}
        command = call_text(f"iolens.open({store.store.url!r}).{name}", *arguments, **written)
        return answer_call(question, arguments, options, open=lambda: store, command=command)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{cleandoc(question.text)}\n\n{_options_text(question)}".rstrip()
    method.__signature__ = _signature(question)  # type: ignore[attr-defined]
    return method


def plan_question(name: str) -> Question:
    """What declares the plan of that name."""
    questions = import_module(QUESTIONS)
    plans = [words.removeprefix(PLAN) for words in questions.declarations() if words.startswith(PLAN)]
    if name not in plans:
        raise UsageError(f"no plan is called {name!r}{not_among(name, plans)}")
    question: Question = questions.get_question(f"{PLAN}{name}")
    return question


def call_text(function: str, *arguments: Any, **options: Any) -> str:
    """How the call is written in Python."""
    given = [repr(argument) for argument in arguments if argument is not None]
    return f"{function}({', '.join([*given, *(f'{name}={value!r}' for name, value in options.items())])})"


def answer_call(question: Question, arguments: tuple[Any, ...], options: dict[str, Any], **how: Any) -> Any:
    """The answer to a call with these arguments and options; `how` are further fields of the asking."""
    options = _by_name(question, arguments, options)
    own = {name: options.pop(name) for name in _own_names(question) if name in options}
    zone, listener = _zone(options.pop("timezone", None)), options.pop("listener", None)
    narrowing = {name: value for name, value in options.items() if value is not None}
    scope = Scope.taken_from(narrowing, narrowing.pop("filesystem", None))
    given = _given(question, own, zone)
    asking = {"scope": scope, "timezone": zone, "listener": listener or Listener(), "given": frozenset(given), **how}
    with import_module(ASKING).Ask(**asking) as ask:
        result = question.answer(ask, **question.keywords(given))
    if "IPython" in sys.modules:
        from iolens.api.notebook import show_as_html

        show_as_html(type(result))
    return result


def _by_name(question: Question, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """All that a call says, by name; what the question does not know, or would leave aside, is an error."""
    places = [*(option.name for option in question.options if option.is_argument and option.is_needed), "filesystem"]
    if len(arguments) > len(places):
        raise TypeError(f"{question.name}() takes at most {len(places)} arguments: {', '.join(places)}")
    by_place = dict(zip(places, arguments, strict=False))
    if twice := [name for name in by_place if name in options]:
        raise TypeError(f"{question.name}() got several values of {twice[0]!r}")
    known = {*_own_names(question), *_shared(question)}
    for name in (given := {**by_place, **options}):
        if name not in known:
            why = ", being about the whole store" if name in EVERY_NARROWING else ""
            raise UsageError(f"{question.name} has no option {name!r}{why}{not_among(name, known)}")
    return given


def _own_names(question: Question) -> list[str]:
    """Its options, and what some of them are gathered in."""
    return list(dict.fromkeys([*(option.name for option in question.options), *(part.name for part in question.parts)]))


def _shared(question: Question) -> dict[str, Any]:
    """What the question shares with others, with its types: what narrows it, its zone, who listens."""
    names = NARROWED_BY.get(question.about, (*EVERY_NARROWING, ZONE))
    every = {**EVERY_NARROWING, ZONE: str | None}
    return {**{name: every[name] for name in names}, "listener": Listener | None}


def _zone(name: str | None) -> str | None:
    try:
        return None if name is None else time_zone(name).key
    except ValueError as error:
        raise UsageError(f"{ZONE}: {error}") from None


def _given(question: Question, own: dict[str, Any], zone: str | None) -> dict[str, Any]:
    """Values of the question's own options as it takes them; None stands for one that is not given."""
    known = {option.name: option for option in question.options}
    given = {
        name: known[name].in_python(value, zone) if name in known else value
        for name, value in own.items()
        if value is not None
    }
    for part in question.parts:
        if part.name not in known and part.name in given and (both := given.keys() & _names_in(part)):
            raise UsageError(f"{question.name}: {part.name} says {min(both)} already")
    if missing := [option.name for option in question.options if option.is_needed and option.name not in given]:
        raise UsageError(f"{question.name} needs {missing[0]}: {known[missing[0]].meaning}")
    return given


def _names_in(part: Option | Gathered) -> set[str]:
    return {option.name for option in getattr(part, "options", ())}


def _signature(question: Question) -> Signature:
    shared = _shared(question)
    own = {option.name: option for option in question.options}
    first = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=option.kind.python)
        for name, option in own.items()
        if option.is_argument and option.is_needed
    ]
    if "filesystem" in shared and "filesystem" not in own:
        annotation = shared["filesystem"]
        first.append(Parameter("filesystem", Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation))
    taken = {parameter.name for parameter in first}
    only = [_keyword(option) for name, option in own.items() if name not in taken]
    others = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in shared.items()
        if name not in taken | own.keys()
    ]
    return Signature([*first, *only, *others])


def _keyword(option: Option) -> Parameter:
    default = Parameter.empty if option.is_needed else option.usual
    annotation = option.kind.python if default is not None else option.kind.python | None
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _options_text(question: Question) -> str:
    return "\n".join(f"`{option.name}`: {option.meaning}" for option in question.options)
