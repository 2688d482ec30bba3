"""The variables that set up a worker, with the names Sonobuoy gives its workers.

Only the environment that is passed, `*_FILE` paths and `WORKER_CONFIG_FILE` are read. Values are
validated in `config.py`.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from reporter.common.defaults import is_service_link, service_link_ignored

GLOBAL = "global"
"""The node of a plugin that runs once for the whole cluster."""

DELAY_SECONDS = 5.0

_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_LONGEST = 2**63 * 1e-9  # Go counts nanoseconds in 64 bits


def duration(text: str) -> float | None:
    """Read a Go duration (`5s`, `1m30s`, `250ms`, `0`) as seconds; None if it is not one."""
    text = text.strip()
    if not _DURATION.fullmatch(text):
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if seconds >= _LONGEST:
        return None
    return -seconds if text.startswith("-") else seconds


# Field, variable, name in WORKER_CONFIG_FILE.
_TEXTS = (
    ("aggregator_url", "AGGREGATOR_URL", "aggregatorurl"),
    ("plugin", "RESULT_TYPE", "resulttype"),
    ("node", "NODE_NAME", "nodename"),
    ("results_dir", "SONOBUOY_RESULTS_DIR", "resultsdir"),
    ("progress_port", "SONOBUOY_PROGRESS_PORT", "progressport"),
    ("done_file_delay", "SONOBUOY_DONE_FILE_DELAY", ""),
    ("namespace", "SONOBUOY_NS", ""),
    ("plugin_pod", "SONOBUOY_PLUGIN_POD", ""),
    ("worker_container", "SONOBUOY_WORKER_CONTAINER", ""),
    ("heartbeat_seconds", "WORKER_HEARTBEAT_SECONDS", ""),
    ("upload_window_seconds", "WORKER_UPLOAD_WINDOW_SECONDS", ""),
    ("grace_seconds", "WORKER_GRACE_SECONDS", ""),
)
_PEMS = (
    ("ca_cert", "CA_CERT", "cacert"),
    ("client_cert", "CLIENT_CERT", "clientcert"),
    ("client_key", "CLIENT_KEY", "clientkey"),
)
VARIABLES = {name: variable for name, variable, _ in (*_TEXTS, *_PEMS)}


def read(environ: Mapping[str, str], scope: str) -> tuple[dict[str, Any], list[str]]:
    """Return the fields that are set, `warnings` and `ignored` among them, and all problems.

    Whether a value is valid is not checked here. `scope` is `global` or `node`.
    """
    problems: list[str] = []
    warnings: list[str] = []
    ignored: list[str] = []
    facts = _config_file(environ.get("WORKER_CONFIG_FILE", ""), problems)
    values: dict[str, Any] = {}
    for name, variable, fact in _TEXTS:
        value = environ.get(variable, "")
        if is_service_link(variable, value):
            ignored.append(service_link_ignored(variable, value))
            value = ""
        if value := value or facts.get(fact, ""):
            values[name] = value
    for name, variable, fact in _PEMS:
        if value := _text_or_file(environ, variable, problems) or facts.get(fact, ""):
            values[name] = value
        elif not any(problem.startswith(f"{variable}_FILE") for problem in problems):
            problems.append(f"{variable}: is required (PEM text), or {variable}_FILE")
    problems += [
        f"{variable}: is required"
        for name, variable in (("aggregator_url", "AGGREGATOR_URL"), ("plugin", "RESULT_TYPE"))
        if name not in values
    ]
    if scope == GLOBAL:
        values["node"] = GLOBAL
    elif "node" not in values:
        problems.append("NODE_NAME: is required for the worker of a node")
    elif values["node"] == GLOBAL:
        problems.append(f"NODE_NAME: {GLOBAL!r} is reserved")
        del values["node"]
    if "done_file_delay" in values:
        values["done_file_delay"] = _delay(values["done_file_delay"], warnings)
    _numbers(values, problems)
    return {**values, "warnings": tuple(warnings), "ignored": tuple(ignored)}, problems


def _config_file(path: str, problems: list[str]) -> dict[str, str]:
    if not path:
        return {}
    try:
        document = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"WORKER_CONFIG_FILE: cannot be read: {_plain(error)}")
        return {}
    if not isinstance(document, dict):
        problems.append("WORKER_CONFIG_FILE: is not a JSON object")
        return {}
    known = {fact for _, _, fact in (*_TEXTS, *_PEMS) if fact}
    found = {str(key).lower(): value for key, value in document.items() if value is not None}
    for fact in sorted(known & found.keys()):
        if isinstance(found[fact], bool) or not isinstance(found[fact], str | int):
            problems.append(f"WORKER_CONFIG_FILE: {fact} is not a string")
    return {k: str(v) for k, v in found.items() if k in known and isinstance(v, str | int)}


def _text_or_file(environ: Mapping[str, str], variable: str, problems: list[str]) -> str:
    text, path = environ.get(variable, ""), environ.get(f"{variable}_FILE", "")
    if text and path:
        problems.append(f"{variable}_FILE: must not be set together with {variable}")
    elif path:
        try:
            return Path(path).read_text()
        except (OSError, ValueError) as error:
            problems.append(f"{variable}_FILE: cannot be read: {_plain(error)}")
    return text


def _plain(error: Exception) -> str:
    # The bytes of a file that could not be decoded may be the key's.
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "invalid content"


def _delay(text: str, warnings: list[str]) -> float:
    seconds = duration(text)
    if seconds is not None and seconds >= 0:
        return seconds
    warnings.append(
        f"SONOBUOY_DONE_FILE_DELAY: {text[:40]!r} is not a duration; using {DELAY_SECONDS:g}s"
    )
    return DELAY_SECONDS


def _numbers(values: dict[str, Any], problems: list[str]) -> None:
    kinds: dict[str, Callable[[str], float]] = {
        "progress_port": int,
        "heartbeat_seconds": float,
        "upload_window_seconds": float,
        "grace_seconds": float,
    }
    for name, kind in kinds.items():
        if name in values:
            try:
                values[name] = kind(values[name])
            except ValueError:
                problems.append(f"{VARIABLES[name]}: {values.pop(name)[:40]!r} is not a number")
