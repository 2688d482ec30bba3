"""How variables are declared, read and described; what each program has of them is not here.

Each rule is written once, in the class of a program: the error text, `--help` and `--check` are
generated from there. The environment is an argument; nothing else is read, no file and no secrets
directory.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

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
    return text if text in _LEVELS else "info"


ObjectName = Annotated[str, AfterValidator(object_name)]
File = Annotated[str, AfterValidator(_file)]
Integer = Annotated[int, BeforeValidator(integer)]
Boolean = Annotated[bool, BeforeValidator(boolean)]
LogLevel = Annotated[str, AfterValidator(_level)]
LogFormat = Literal["json", "console"]

NAME_RULE = "a Kubernetes object name (lower-case letters, digits, '-' and '.')"
FILE_RULE = "the absolute path of a file (no trailing slash)"


# How variables are declared.


def setting(means: str, default: Any, rule: str, *, shown: str | None = None, **limits: int) -> Any:
    """Declare a variable; `shown` says an empty or computed default in words."""
    extra = {"rule": rule, "shown": shown}
    options: dict[str, Any] = {"json_schema_extra": extra, **limits}
    options["default_factory" if callable(default) else "default"] = default
    return Field(description=means, **options)


def log_level() -> Any:
    """Declare LOG_LEVEL."""
    return setting(
        "least severe events that are logged",
        "info",
        "debug, info, warning, warn or error; another value is info with a warning",
    )


def log_format() -> Any:
    """Declare LOG_FORMAT."""
    return setting("`json` for machines, `console` for people", "json", "json or console")


class Variables(BaseSettings):
    """One program's settings. Fields are the variables in lower case; all times are in seconds."""

    model_config = SettingsConfigDict(
        frozen=True, alias_generator=str.upper, extra="ignore", validate_default=True
    )

    _warnings: tuple[str, ...] = PrivateAttr(default=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong but did not stop us, one line each."""
        return self._warnings

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


V = TypeVar("V", bound=Variables)


def read(kind: type[V], environ: Mapping[str, str]) -> V:
    """Read the settings of a program from `environ`.

    Raises SettingsError with every problem, one line each: variable, value and rule.
    """
    known = given(kind, environ)
    try:
        settings = kind.model_validate(known)
    except ValidationError as error:
        problems = [
            _problem(kind, str(found["loc"][0]).upper(), known)
            for found in error.errors(include_url=False, include_context=False)
            # Follows from a problem that has its own line.
            if found["type"] != "default_factory_not_called"
        ]
        raise SettingsError(problems) from None
    if known.get("LOG_LEVEL", "info") not in (*_LEVELS, "warn"):
        settings._warnings = (_problem(kind, "LOG_LEVEL", known),)
    return settings


def given(kind: type[Variables], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a program that are there and not blank."""
    variables: Iterable[str] = (name.upper() for name in kind.model_fields)
    return {name: environ[name] for name in variables if environ.get(name, "").strip()}


def variables(kind: type[Variables]) -> list[Variable]:
    """List every variable of a program, in words."""
    return [_describe(name, field) for name, field in kind.model_fields.items()]


def in_force(settings: Variables) -> list[tuple[str, str]]:
    """List every variable with the value in force."""
    return [
        (found.name, _words(getattr(settings, found.name.lower())) or found.default)
        for found in variables(type(settings))
    ]


def _describe(name: str, field: FieldInfo) -> Variable:
    extra = field.json_schema_extra
    known: dict[str, Any] = extra if isinstance(extra, dict) else {}
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
    return str(value).lower() if isinstance(value, bool) else str(value)
