"""The settings of one worker: validated as a whole before the network is used.

They come as keywords, or from the variables that Sonobuoy gives its workers. Only the environment
that is passed, `*_FILE` paths and `WORKER_CONFIG_FILE` are read.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from reporter.common.defaults import is_service_link, service_link_ignored
from reporter.common.text import is_host
from reporter.errors import ReporterError
from reporter.link import pem
from reporter.link.messages import GLOBAL

DELAY_SECONDS = 5.0
PROGRESS_PORT = 8099

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PEMS = ("ca_cert", "client_cert", "client_key")
# Field, variable, name in WORKER_CONFIG_FILE.
_SETTINGS = (
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
    ("ca_cert", "CA_CERT", "cacert"),
    ("client_cert", "CLIENT_CERT", "clientcert"),
    ("client_key", "CLIENT_KEY", "clientkey"),
)
VARIABLES = {name: variable for name, variable, _ in _SETTINGS}
NAMES = frozenset(
    {*VARIABLES.values(), *(f"{VARIABLES[each]}_FILE" for each in _PEMS), "WORKER_CONFIG_FILE"}
)
"""All variables that are read."""
_NUMBERS: dict[str, tuple[Callable[[str], float], float, float]] = {
    "progress_port": (int, 1, 65535),
    "done_file_delay": (float, 0, math.inf),
    "heartbeat_seconds": (float, 0, 3600),
    "upload_window_seconds": (float, 0, 3600),
    "grace_seconds": (float, 1, 86400),
}


class ConfigError(ReporterError):
    """Invalid settings: one line per problem in `problems`, all of them at once."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Who this worker is, where its aggregator is, and how it behaves.

    `aggregator_url` is `https://host:port`; a path in it is dropped. `plugin` is the name of the
    result, `node` the Kubernetes node, or `global`. The three PEM texts identify both sides to each
    other: the first block of `ca_cert` counts. Seconds are floats; without
    `done_file_delay` a result is read once it no longer changes; `heartbeat_seconds` 0 means no
    heartbeats. For the caller to log: `warnings` says what was corrected,
    `ignored` which variables Kubernetes has set for a Service.

    Raises `ConfigError`, which names settings by their environment variables.
    """

    aggregator_url: str
    plugin: str
    node: str = GLOBAL
    ca_cert: str = field(repr=False)
    client_cert: str = field(repr=False)
    client_key: str = field(repr=False)
    results_dir: Path = Path("/tmp/sonobuoy/results")  # noqa: S108 - the path of the contract
    progress_port: int = PROGRESS_PORT
    done_file_delay: float | None = None
    namespace: str = ""
    plugin_pod: str = ""
    worker_container: str = ""
    heartbeat_seconds: float = 15.0
    upload_window_seconds: float = 120.0
    grace_seconds: float = 60.0
    warnings: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked, problems = _checked({f.name: getattr(self, f.name) for f in fields(self)})
        if problems:
            raise ConfigError(problems)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_env(
        cls,
        environ: Mapping[str, str],
        *,
        scope: Literal["global", "node"] = "global",
        drop_key: bool = False,
    ) -> "WorkerConfig":
        """Read the settings out of an environment; an empty variable counts as absent.

        `scope` says whether the worker reports for the cluster or for `NODE_NAME`. `drop_key`
        removes `CLIENT_KEY` from `environ` once read, so that children do not inherit it.

        Raises `ConfigError` with all problems.
        """
        values, problems = _read(environ, scope)
        if drop_key and isinstance(environ, MutableMapping):
            environ.pop("CLIENT_KEY", None)
        checked, more = _checked(values)
        if problems or more:
            raise ConfigError(problems + more)
        return cls(**checked)

    @property
    def host(self) -> str:
        """The aggregator's name or address, without brackets."""
        return urlsplit(self.aggregator_url).hostname or ""

    @property
    def port(self) -> int:
        """The aggregator's port."""
        return urlsplit(self.aggregator_url).port or 443


def _read(environ: Mapping[str, str], scope: str) -> tuple[dict[str, Any], list[str]]:
    """Return the fields that are set, `warnings` and `ignored` among them, and all problems.

    Whether a value is valid is not checked here.
    """
    problems: list[str] = []
    warnings: list[str] = []
    ignored: list[str] = []
    from_file = _config_file(environ.get("WORKER_CONFIG_FILE", ""), problems)
    values: dict[str, Any] = {}
    for name, variable, key in _SETTINGS:
        text = environ.get(variable, "")
        if is_service_link(variable, text):
            ignored.append(service_link_ignored(variable, text))
            text = ""
        unread = len(problems)
        if name in _PEMS:
            text = _text_or_file(environ, variable, problems)
        if value := text or from_file.get(key, ""):
            values[name] = value
        elif name in _PEMS and len(problems) == unread:
            problems.append(f"{variable}: is required (PEM text), or {variable}_FILE")
        elif name in ("aggregator_url", "plugin"):
            problems.append(f"{variable}: is required")
    if scope == GLOBAL:
        values["node"] = GLOBAL
    elif "node" not in values:
        problems.append("NODE_NAME: is required for the worker of a node")
    elif values["node"] == GLOBAL:
        problems.append(f"NODE_NAME: {GLOBAL!r} is reserved")
        del values["node"]
    if "done_file_delay" in values:
        values["done_file_delay"] = _delay(values["done_file_delay"], warnings)
    if "progress_port" in values:
        values["progress_port"] = _port(values["progress_port"], warnings)
    for name, (number, *_) in _NUMBERS.items():
        try:
            if name in values:
                values[name] = number(values[name])
        except ValueError:
            problems.append(f"{VARIABLES[name]}: {values.pop(name)[:40]!r} is not a number")
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
    found = {str(key).lower(): value for key, value in document.items() if value is not None}
    values = {}
    for key in sorted(({key for *_, key in _SETTINGS} - {""}) & found.keys()):
        if isinstance(found[key], str | int) and not isinstance(found[key], bool):
            values[key] = str(found[key])
        else:
            problems.append(f"WORKER_CONFIG_FILE: {key} is not a string")
    return values


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


def _delay(text: str, warnings: list[str]) -> float:
    seconds = duration(text)
    if seconds is not None and seconds >= 0:
        return seconds
    warnings.append(
        f"SONOBUOY_DONE_FILE_DELAY: {text[:40]!r} is not a duration; using {DELAY_SECONDS:g}s"
    )
    return DELAY_SECONDS


def _port(text: str, warnings: list[str]) -> int:
    if re.fullmatch(r"[0-9]{1,5}", text) and 0 < int(text) <= 65535:
        return int(text)
    warnings.append(f"SONOBUOY_PROGRESS_PORT: {text[:40]!r} is not a port; using {PROGRESS_PORT}")
    return PROGRESS_PORT


def _checked(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Check the fields that are given; return them as they are to be used, and all problems."""
    values, problems = dict(given), []
    sound = set()
    for name, cleaned in _CLEANED.items():
        if name in values:
            try:
                values[name] = cleaned(values[name])
                sound.add(name)
            except ValueError as error:
                problems.append(f"{VARIABLES[name]}: {error}")
    for name, (_, low, high) in _NUMBERS.items():
        value = values.get(name)
        if value is not None and not low <= value <= high:  # not a number is not either
            problem = f"{str(value)[:40]} is not between {low:g} and {high:g}"
            problems.append(f"{VARIABLES[name]}: {problem}")
    if "ca_cert" in sound and (count := len(pem.certificates(given["ca_cert"]))) > 1:
        warning = f"CA_CERT: the first of {count} certificates is used"
        values["warnings"] = (*values.get("warnings", ()), warning)
    if {"client_cert", "client_key"} <= sound:
        try:
            pem.load_identity(pem.bare_context(), values["client_cert"], values["client_key"])
        except pem.PemError as error:
            problems.append(f"CLIENT_KEY: {error}")
    return values, problems


def _address(url: str) -> str:
    """Reduce an address to `https://host:port`."""
    wrong = ValueError(f"{url[:200]!r} is not https://host:port")
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", 443 if parts.port is None else parts.port
    except ValueError:
        raise wrong from None
    odd = re.search(r"[\x00-\x20\x7f%\\]", host)
    if parts.scheme != "https" or not is_host(host) or not port or odd:
        raise wrong
    if parts.username is not None:
        raise ValueError("must not contain a user name")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _plugin(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name[:80]!r} is not a valid plugin name ({_NAME.pattern})")
    return name


def _node(name: str) -> str:
    if name in {"", ".", ".."} or re.search(r"[/\x00]", name):
        raise ValueError(f"{name[:80]!r} is not a valid node name")
    return name


def _certificates(text: str) -> str:
    found = pem.certificates(text)
    for certificate in found:
        pem.check_certificate(certificate)
    return "".join(found)


_CLEANED: dict[str, Callable[[Any], Any]] = {
    "aggregator_url": _address,
    "plugin": _plugin,
    "node": _node,
    "results_dir": Path,
    "ca_cert": lambda text: _certificates(pem.certificates(text)[0]),
    "client_cert": _certificates,
    "client_key": pem.private_key,
}
