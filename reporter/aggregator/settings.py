"""The aggregator's settings: every environment variable, its default and its rule.

Each is a flag of `status-aggregator run` too, by the same name: `RETRY_WINDOW_SECONDS` and
`--retry-window-seconds`. They are declared in `aggregator_run` and `aggregator_limits`.
"""

from __future__ import annotations

from collections.abc import Mapping

from reporter.aggregator.limit_settings import Limits
from reporter.aggregator.run_settings import Run
from reporter.common import settings as rules
from reporter.common.settings import Variable


class Settings(Limits, Run):
    """Validated settings. Fields are the variables in lower case; all times are in seconds.

    Those of the last class come first, wherever they are listed.
    """


def load(environ: Mapping[str, str]) -> Settings:
    """Read the settings from `environ`.

    Raises SettingsError with every problem, one line each: variable, value and rule.
    """
    return rules.read(Settings, environ)


def describe() -> list[Variable]:
    """List every variable, in words."""
    return rules.variables(Settings)


def effective(settings: Settings) -> list[tuple[str, str]]:
    """List every variable with the value in force."""
    return rules.in_force(settings)
