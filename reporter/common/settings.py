"""How variables are declared, read and described; what each program has of them is not here.

Each rule is written once, in the class of a program: the error text, `--help` and `--check` are
generated from there. The environment is an argument; nothing else is read, no file and no secrets
directory.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from reporter.common.defaults import is_service_link, service_link_ignored
from reporter.errors import SettingsError

_LEVELS = ("debug", "info", "warning", "error")
LONGEST = 2**31 - 1
"""Seconds: 68 years. Beyond it clocks and waits overflow."""
_SHOWN = 64

_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_INTEGER = re.compile(r"[+-]?[0-9]+")


# How values are read: each takes the variable's text and returns the value or raises ValueError.


def object_name(text: str) -> str:
    """Read the name of a Kubernetes object."""
    if not _OBJECT_NAME.fullmatch(text):
        raise ValueError
    return text


def integer(text: object) -> int:
    """Read a whole number of ASCII digits."""
    if isinstance(text, int):
        return text
    if not _INTEGER.fullmatch(str(text)):
        raise ValueError
    return int(str(text))


def boolean(text: object) -> bool:
    """Read a truth value in the spellings that Go knows."""
    if isinstance(text, bool):
        return text
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise ValueError


def _file(text: str) -> str:
    if not text.startswith("/") or posixpath.basename(text) in ("", ".", ".."):
        raise ValueError
    return text


def _level(text: str) -> str:
    text = "warning" if text == "warn" else text
    if text not in _LEVELS:
        raise ValueError
    return text


ObjectName = Annotated[str, AfterValidator(object_name)]
File = Annotated[str, AfterValidator(_file)]
Integer = Annotated[int, BeforeValidator(integer)]
Boolean = Annotated[bool, BeforeValidator(boolean)]
LogLevel = Annotated[str, AfterValidator(_level)]
LogFormat = Literal["json", "console"]

NAME_RULE = "a Kubernetes object name (lower-case letters, digits, '-' and '.')"
FILE_RULE = "the absolute path of a file (no trailing slash)"


# How variables are declared.


def setting(
    means: str,
    default: Any,
    rule: str,
    *,
    shown: str | None = None,
    bad: Literal["refused", "default", "off"] = "refused",
    **limits: Any,
) -> Any:
    """Declare a variable; `shown` says an empty or computed default in words.

    `bad` is what becomes of a value that breaks the rule: it is `refused`, or, with a warning, the
    `default` is used or what it is about is `off` (None). A setting that cannot change the verdict
    must not cost one.
    """
    extra = {"rule": rule, "shown": shown, "bad": bad}
    options: dict[str, Any] = {"json_schema_extra": extra, **limits}
    options["default_factory" if callable(default) else "default"] = default
    return Field(description=means, **options)


def log_level() -> Any:
    """Declare LOG_LEVEL."""
    return setting(
        "minimum severity of log events",
        "info",
        "debug, info, warning, warn or error",
        bad="default",
    )


def log_format() -> Any:
    """Declare LOG_FORMAT."""
    return setting(
        "`json`, or `console` for reading in a terminal", "json", "json or console", bad="default"
    )


class Variables(BaseSettings):
    """One program's settings. Fields are the variables in lower case; all times are in seconds.

    Why its sources are ours: docs/decisions/0006-dependencies.md.
    """

    model_config = SettingsConfigDict(
        frozen=True, alias_generator=str.upper, extra="ignore", validate_default=True
    )

    _warnings: tuple[str, ...] = PrivateAttr(default=())
    _ignored: tuple[str, ...] = PrivateAttr(default=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong but did not stop us, one line each."""
        return self._warnings

    @property
    def ignored(self) -> tuple[str, ...]:
        """What was no setting although it has the name of one, one line each."""
        return self._ignored

    @classmethod
    def settings_customise_sources(
        cls, *_: Any, **sources: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `read` was given counts, never the process's own environment or a file."""
        return (sources["init_settings"],)


class Variable(NamedTuple):
    """One environment variable in words."""

    name: str
    default: str
    rule: str
    meaning: str


class Complaint(NamedTuple):
    """What is wrong with a variable, in a line; `refused` says that the program does not start."""

    variable: str
    text: str
    refused: bool


V = TypeVar("V", bound=Variables)


def read(kind: type[V], environ: Mapping[str, str]) -> V:
    """Read the settings of a program from `environ`.

    Raises SettingsError with every problem, one line each: variable, value and rule.
    """
    good, wrong = _judged(kind, environ)
    if refused := [each.text for each in wrong if each.refused]:
        raise SettingsError(refused)
    off = {each.variable: None for each in wrong if _bad(kind, each.variable) == "off"}
    settings = kind.model_validate({**good, **off})
    in_use = dict(in_force(settings))
    settings._warnings = tuple(f"{each.text}; using {in_use[each.variable]}" for each in wrong)
    settings._ignored = tuple(
        f"{service_link_ignored(variable, environ[variable])}; using {in_use[variable]}"
        for variable in in_use
        if is_service_link(variable, environ.get(variable, ""))
    )
    return settings


def complaints(kind: type[Variables], environ: Mapping[str, str]) -> list[Complaint]:
    """Say what `read` would say of variables, without their being in anybody's environment."""
    return _judged(kind, environ)[1]


def _judged(
    kind: type[Variables], environ: Mapping[str, str]
) -> tuple[dict[str, str], list[Complaint]]:
    known = given(kind, environ)
    good, wrong = sorted_out(kind, known)
    return good, [
        Complaint(name, _problem(kind, name, known), _bad(kind, name) == "refused")
        for name in wrong
    ]


def given(kind: type[Variables], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a program that somebody has set and that are not blank."""
    names = (name.upper() for name in kind.model_fields)
    found = {name: environ[name] for name in names if environ.get(name, "").strip()}
    return {name: text for name, text in found.items() if not is_service_link(name, text)}


def sorted_out(kind: type[Variables], known: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables that keep their rules, and the names of those that do not."""
    try:
        kind.model_validate(known)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        # Follows from a problem that has its own line.
        named = [each for each in found if each["type"] != "default_factory_not_called"]
        wrong = [str(each["loc"][0]).upper() for each in named]
        return {name: text for name, text in known.items() if name not in wrong}, wrong
    return dict(known), []


def variables(kind: type[Variables]) -> list[Variable]:
    """List every variable of a program, in words."""
    return [_describe(name, field) for name, field in kind.model_fields.items()]


def in_force(settings: Variables) -> list[tuple[str, str]]:
    """List every variable with the value in force."""
    return [
        (found.name, _words(getattr(settings, found.name.lower())) or found.default)
        for found in variables(type(settings))
    ]


def _extra(field: FieldInfo) -> dict[str, Any]:
    extra = field.json_schema_extra
    return extra if isinstance(extra, dict) else {}


def _bad(kind: type[Variables], variable: str) -> str:
    return str(_extra(kind.model_fields[variable.lower()])["bad"])


def _describe(name: str, field: FieldInfo) -> Variable:
    known = _extra(field)
    default = "required" if field.is_required() else known["shown"] or _words(field.default)
    return Variable(name.upper(), default, known["rule"], field.description or "")


def _problem(kind: type[Variables], variable: str, known: Mapping[str, str]) -> str:
    _, default, rule, _ = _describe(variable, kind.model_fields[variable.lower()])
    value = f"={_show(known[variable])}" if variable in known else f" is unset ({default})"
    return f"{variable}{value}: must be {rule}"


def _show(text: str) -> str:
    """Quote a value for one line of a log or a condition: escaped and cut."""
    return json.dumps(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def _words(value: object) -> str:
    if value is None:
        return "off"
    return str(value).lower() if isinstance(value, bool) else str(value)
