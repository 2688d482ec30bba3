"""Settings: every environment variable of the sidecar, its default and its rule.

The only place of pydantic. Each rule is written once, in the class: the error text, `--help` and
`--check` are generated from there. The environment is an argument; nothing else is read, no file
and no secrets directory. What needs the Pod to be judged (container names) is not judged here.
"""

from __future__ import annotations

import ipaddress
import json
import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from reporter.errors import SettingsError

DEFAULT_CONDITION_TYPE = "Available"
_RESERVED_TYPES = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended")
_LEVELS = ("debug", "info", "warning", "error")
_LONGEST = 2**31 - 1
"""Seconds: 68 years. Beyond it clocks and waits overflow."""
_SHOWN = 64

_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_ANNOTATION_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_INTEGER = re.compile(r"[+-]?[0-9]+")


# How values are read: each takes the variable's text and returns the value or raises ValueError.


def _object_name(text: str) -> str:
    if not _OBJECT_NAME.fullmatch(text):
        raise ValueError
    return text


def _file(text: str) -> str:
    if not text.startswith("/") or posixpath.basename(text) in ("", ".", ".."):
        raise ValueError
    return text


def _condition_type(text: str) -> str:
    if text in _RESERVED_TYPES or not _ANNOTATION_NAME.fullmatch(text.replace("/", ".")):
        raise ValueError
    return text


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text)) if text else ""


def _integer(text: object) -> int:
    if isinstance(text, int):
        return text
    if not _INTEGER.fullmatch(str(text)):
        raise ValueError
    return int(str(text))


def _boolean(text: object) -> bool:
    if isinstance(text, bool):
        return text
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise ValueError


def _level(text: str) -> str:
    text = "warning" if text == "warn" else text
    return text if text in _LEVELS else "info"


T = TypeVar("T")
ObjectName = Annotated[str, AfterValidator(_object_name)]
File = Annotated[str, AfterValidator(_file)]
Seconds = Annotated[int, BeforeValidator(_integer)]
Boolean = Annotated[bool, BeforeValidator(_boolean)]


def _setting(
    means: str, default: Any, rule: str, *, shown: str | None = None, **limits: int
) -> Any:
    """Declare a variable; `shown` says an empty or computed default in words."""
    extra = {"rule": rule, "shown": shown}
    options: dict[str, Any] = {"json_schema_extra": extra, **limits}
    options["default_factory" if callable(default) else "default"] = default
    return Field(description=means, **options)


def _beside_the_result(read: dict[str, Any]) -> str:
    return posixpath.join(posixpath.dirname(read["results_path"]), "progress.json")


_NAME_RULE = "a Kubernetes object name (lower-case letters, digits, '-' and '.')"
_FILE_RULE = "the absolute path of a file (no trailing slash)"


class Settings(BaseSettings):
    """Validated settings. Fields are the variables in lower case; all times are in seconds."""

    model_config = SettingsConfigDict(
        frozen=True, alias_generator=str.upper, extra="ignore", validate_default=True
    )

    job_name: ObjectName = _setting("the Job to report on", ..., _NAME_RULE)
    job_namespace: ObjectName = _setting("its namespace", ..., _NAME_RULE)
    pod_name: ObjectName = _setting("our own Pod", ..., _NAME_RULE)
    results_path: File = _setting(
        "the adapter's result file", "/results/adapter-result.json", _FILE_RULE
    )
    # Before the interval: its rule looks at this one.
    max_wait_time_seconds: Seconds = _setting(
        "how long to wait for a result, from the adapter's first start",
        300,
        f"an integer from 1 to {_LONGEST}",
        ge=1,
        le=_LONGEST,
    )
    poll_interval_seconds: Seconds = _setting(
        "longest time between two looks at the file; events come earlier",
        2,
        "a positive integer, less than MAX_WAIT_TIME_SECONDS",
        ge=1,
    )
    condition_type: Annotated[str, AfterValidator(_condition_type)] = _setting(
        "type of the condition that is written",
        DEFAULT_CONDITION_TYPE,
        f"none of {', '.join(_RESERVED_TYPES)}; after '/' -> '.' at most 63 of A-Za-z0-9-_., "
        "alphanumeric at both ends",
    )
    log_level: Annotated[str, AfterValidator(_level)] = _setting(
        "least severe events that are logged",
        "info",
        "debug, info, warning, warn or error; another value is info with a warning",
    )
    log_format: Literal["json", "console"] = _setting(
        "`json` for machines, `console` for people", "json", "json or console"
    )
    adapter_container_name: str = _setting(
        "the container that does the work",
        "",
        "a regular container of the Pod",
        shown="found by itself",
    )
    reporter_container_name: str = _setting(
        "our own container", "status-reporter", "our own name in the Pod"
    )
    reporter_form: Literal["auto", "native", "classic"] = _setting(
        "`native` sidecar or `classic` second container; `auto` reads the Pod",
        "auto",
        "auto, native or classic",
    )
    result_required: Boolean = _setting(
        "whether exit code 0 without a result file is a failure", True, "true or false"
    )
    report_running: Boolean = _setting(
        "whether `AdapterRunning` is written at the start", True, "true or false"
    )
    exit_policy: Literal["infrastructure", "failure", "never"] = _setting(
        "which verdicts make the classic form exit with 1",
        "infrastructure",
        "infrastructure, failure or never",
    )
    progress_path: File = _setting(
        "the adapter's progress file",
        _beside_the_result,
        _FILE_RULE,
        shown="progress.json beside RESULTS_PATH",
    )
    metrics_port: Seconds = _setting(
        "port of metrics and health",
        9464,
        "an integer from 0 to 65535; 0 turns the endpoint off",
        ge=0,
        le=65535,
    )
    metrics_address: Annotated[str, AfterValidator(_address)] = _setting(
        "address of metrics and health", "", "an IP address", shown="all interfaces"
    )
    metrics_linger_seconds: Seconds = _setting(
        "classic form: wait at most so long for one more scrape",
        0,
        f"an integer from 0 to {_LONGEST}",
        ge=0,
        le=_LONGEST,
    )
    kubernetes_relax_x509_strict: Boolean = _setting(
        "accept a cluster CA that Python 3.13's strict check refuses", False, "true or false"
    )

    _warnings: tuple[str, ...] = PrivateAttr(default=())

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was wrong but did not stop us, one line each."""
        return self._warnings

    @field_validator("poll_interval_seconds")
    @classmethod
    def _shorter_than_the_wait(cls, value: int, info: ValidationInfo) -> int:
        if value >= info.data.get("max_wait_time_seconds", value + 1):
            raise ValueError
        return value

    @classmethod
    def settings_customise_sources(
        cls, *_: Any, **sources: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load` was given counts, never the process's own environment or a file."""
        return (sources["init_settings"],)


class Variable(NamedTuple):
    """One environment variable in words."""

    name: str
    default: str
    rule: str
    meaning: str


class NamedJob(NamedTuple):
    """The Job as far as it can be named from settings that may be bad."""

    namespace: str
    job: str
    pod: str | None
    condition_type: str
    relax_x509_strict: bool


def load(environ: Mapping[str, str]) -> Settings:
    """Read the settings from `environ`.

    Raises SettingsError with every problem, one line each: variable, value and rule.
    """
    given = _given(environ)
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        problems = [
            _problem(str(found["loc"][0]).upper(), given)
            for found in error.errors(include_url=False, include_context=False)
            # Follows from a problem that has its own line.
            if found["type"] != "default_factory_not_called"
        ]
        raise SettingsError(problems) from None
    level = given.get("LOG_LEVEL", "info")
    if level not in (*_LEVELS, "warn"):
        settings._warnings = (_problem("LOG_LEVEL", given),)
    return settings


def named_job(environ: Mapping[str, str]) -> NamedJob | None:
    """Say which Job bad settings belong to, so that they can be shown there; None if unknown."""
    given = _given(environ)

    def usable(variable: str, read: Callable[[str], T]) -> T | None:
        try:
            return read(given[variable])
        except (KeyError, ValueError):
            return None

    namespace, job = usable("JOB_NAMESPACE", _object_name), usable("JOB_NAME", _object_name)
    if namespace is None or job is None:
        return None
    condition_type = usable("CONDITION_TYPE", _condition_type) or DEFAULT_CONDITION_TYPE
    relaxed = usable("KUBERNETES_RELAX_X509_STRICT", _boolean) or False
    return NamedJob(namespace, job, usable("POD_NAME", _object_name), condition_type, relaxed)


def describe() -> list[Variable]:
    """List every variable, in words."""
    return [_describe(name, field) for name, field in Settings.model_fields.items()]


def effective(settings: Settings) -> list[tuple[str, str]]:
    """List every variable with the value in force."""
    return [
        (found.name, _words(getattr(settings, found.name.lower())) or found.default)
        for found in describe()
    ]


def _describe(name: str, field: FieldInfo) -> Variable:
    extra = field.json_schema_extra
    known: dict[str, Any] = extra if isinstance(extra, dict) else {}
    default = "required" if field.is_required() else known["shown"] or _words(field.default)
    return Variable(name.upper(), default, known["rule"], field.description or "")


def _given(environ: Mapping[str, str]) -> dict[str, str]:
    variables = [name.upper() for name in Settings.model_fields]
    return {name: environ[name] for name in variables if environ.get(name, "").strip()}


def _problem(variable: str, given: Mapping[str, str]) -> str:
    _, default, rule, _ = _describe(variable, Settings.model_fields[variable.lower()])
    value = f"={_show(given[variable])}" if variable in given else f" is unset ({default})"
    return f"{variable}{value}: must be {rule}"


def _show(text: str) -> str:
    """Quote a value for one line of a log or a condition: escaped and cut."""
    return json.dumps(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def _words(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
