"""The link's settings: those of a worker, and AGGREGATOR_SCOPE."""

from collections.abc import Mapping
from typing import Literal

from reporter.link import ConfigError, WorkerConfig


def link_config(environ: Mapping[str, str]) -> WorkerConfig:
    """Read the link's settings. Raises ConfigError with every problem."""
    scope = environ.get("AGGREGATOR_SCOPE", "").strip() or "global"
    problems = []
    if scope not in {"global", "node"}:
        problems = [f"AGGREGATOR_SCOPE: {scope[:40]!r} is not global or node"]
    known: Literal["global", "node"] = "node" if scope == "node" else "global"
    try:
        config = WorkerConfig.from_env(environ, scope=known)
    except ConfigError as error:
        raise ConfigError(problems + error.problems) from None
    if problems:
        raise ConfigError(problems)
    return config
