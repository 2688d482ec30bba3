"""The settings of one worker: validated as a whole before the network is used.

They come as keywords or from an environment (`environment.py`).
"""

import math
import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from reporter.common.text import is_host
from reporter.errors import ReporterError
from reporter.link import pem
from reporter.link.environment import GLOBAL, VARIABLES, read

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


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
    progress_port: int = 8099
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
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        checked, problems = _check(given)
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
        values, problems = read(environ, scope)
        if drop_key and isinstance(environ, MutableMapping):
            environ.pop("CLIENT_KEY", None)
        checked, more = _check(values)
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


def _check(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Check the fields that are given; return them as they are to be used, and all problems."""
    values, problems = dict(given), []
    warnings = list(values.get("warnings", ()))

    def wrong(name: str, text: str) -> None:
        problems.append(f"{VARIABLES[name]}: {text}")

    if "aggregator_url" in values:
        try:
            values["aggregator_url"] = _address(values["aggregator_url"])
        except ValueError as error:
            wrong("aggregator_url", str(error))
    if "plugin" in values and not _NAME.fullmatch(values["plugin"]):
        wrong("plugin", f"{values['plugin'][:80]!r} is not a valid plugin name ({_NAME.pattern})")
    if "node" in values and not _is_segment(values["node"]):
        wrong("node", f"{values['node'][:80]!r} is not a valid node name")
    for name, low, high in _BOUNDS:
        value = values.get(name)
        if value is not None and not low <= value <= high:  # not a number is not either
            wrong(name, f"{str(value)[:40]} is not between {low:g} and {high:g}")
    if "results_dir" in values:
        values["results_dir"] = Path(values["results_dir"])
    if "ca_cert" in values:
        try:
            first, *more = pem.certificates(values["ca_cert"])
            pem.check_certificate(first)
        except pem.PemError as error:
            wrong("ca_cert", str(error))
        else:
            if more:
                warnings.append(f"CA_CERT: the first of {1 + len(more)} certificates is used")
            values["ca_cert"] = first
    _check_identity(values, wrong)
    values["warnings"] = tuple(warnings)
    return values, problems


_BOUNDS = (
    ("progress_port", 1, 65535),
    ("done_file_delay", 0, math.inf),
    ("heartbeat_seconds", 0, 3600),
    ("upload_window_seconds", 0, 3600),
    ("grace_seconds", 1, 86400),
)


def _check_identity(values: dict[str, Any], wrong: Callable[[str, str], None]) -> None:
    sound = True
    for name, find in (("client_cert", _chain), ("client_key", pem.private_key)):
        if name not in values:
            sound = False
            continue
        try:
            values[name] = find(values[name])
        except pem.PemError as error:
            wrong(name, str(error))
            sound = False
    if sound:
        try:
            pem.load_identity(pem.bare_context(), [values["client_cert"]], values["client_key"])
        except pem.PemError as error:
            wrong("client_key", str(error))


def _chain(text: str) -> str:
    found = pem.certificates(text)
    for certificate in found:
        pem.check_certificate(certificate)
    return "".join(found)


def _address(url: str) -> str:
    """Reduce an address to `https://host:port`. Raises ValueError."""
    wrong = ValueError(f"{url[:200]!r} is not https://host:port")
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", 443 if parts.port is None else parts.port
    except ValueError:
        raise wrong from None
    if (
        parts.scheme != "https"
        or not is_host(host)
        or not port
        or re.search(r"[\x00-\x20\x7f%\\]", host)
    ):
        raise wrong
    if parts.username is not None:
        raise ValueError("must not contain a user name")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _is_segment(text: str) -> bool:
    return bool(text) and text not in {".", ".."} and not re.search(r"[/\x00]", text)
