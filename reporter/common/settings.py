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
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationError
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

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from `environ`.

        Raises SettingsError with every problem, one line each: variable, value and rule.
        """
        complaints = cls.complaints(environ)
        if refused := [each.text for each in complaints if each.refused]:
            raise SettingsError(refused)
        good, wrong = cls.sorted_out(cls.given(environ))
        off = {name: None for name in wrong if cls._known(name)["bad"] == "off"}
        settings = cls.model_validate({**good, **off})
        in_use = dict(settings.in_force())
        settings._warnings = tuple(f"{text}; using {in_use[name]}" for name, text, _ in complaints)
        settings._ignored = tuple(
            f"{service_link_ignored(name, environ[name])}; using {in_use[name]}"
            for name in in_use
            if is_service_link(name, environ.get(name, ""))
        )
        return settings

    @classmethod
    def complaints(cls, environ: Mapping[str, str]) -> list[Complaint]:
        """Say what `read` would say of variables, without their being in anybody's environment."""
        given = cls.given(environ)
        found = []
        for name in cls.sorted_out(given)[1]:
            _, default, rule, _ = cls._described(name)
            value = f"={_show(given[name])}" if name in given else f" is unset ({default})"
            refused = cls._known(name)["bad"] == "refused"
            found.append(Complaint(name, f"{name}{value}: must be {rule}", refused))
        return found

    @classmethod
    def given(cls, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of the program that somebody has set and that are not blank."""
        names = (name.upper() for name in cls.model_fields)
        found = {name: environ[name] for name in names if environ.get(name, "").strip()}
        return {name: text for name, text in found.items() if not is_service_link(name, text)}

    @classmethod
    def sorted_out(cls, given: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
        """Return the variables that keep their rules, and the names of those that do not."""
        try:
            cls.model_validate(given)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)
            # Follows from a problem that has its own line.
            named = [each for each in found if each["type"] != "default_factory_not_called"]
            wrong = [str(each["loc"][0]).upper() for each in named]
            return {name: text for name, text in given.items() if name not in wrong}, wrong
        return dict(given), []

    @classmethod
    def described(cls) -> list[Variable]:
        """List every variable, in words."""
        return [cls._described(name.upper()) for name in cls.model_fields]

    def in_force(self) -> list[tuple[str, str]]:
        """List every variable with the value in force."""
        return [
            (found.name, _words(getattr(self, found.name.lower())) or found.default)
            for found in self.described()
        ]

    @classmethod
    def _known(cls, variable: str) -> dict[str, Any]:
        """Return what `setting` was told."""
        extra = cls.model_fields[variable.lower()].json_schema_extra
        return extra if isinstance(extra, dict) else {}

    @classmethod
    def _described(cls, variable: str) -> Variable:
        field, known = cls.model_fields[variable.lower()], cls._known(variable)
        default = "required" if field.is_required() else known["shown"] or _words(field.default)
        return Variable(variable, default, known["rule"], field.description or "")


def _show(text: str) -> str:
    """Quote a value for one line of a log or a condition: escaped and cut."""
    return json.dumps(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def _words(value: object) -> str:
    if value is None:
        return "off"
    return str(value).lower() if isinstance(value, bool) else str(value)
