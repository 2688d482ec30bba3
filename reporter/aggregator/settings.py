"""The aggregator's settings: every environment variable, its default and its rule.

Each is a flag of `status-aggregator run` too, by the same name: `RETRY_WINDOW_SECONDS` and
`--retry-window-seconds`. They are declared in `run_settings` and `limit_settings`.
"""

from __future__ import annotations

from reporter.aggregator.limit_settings import Limits
from reporter.aggregator.run_settings import Run


class Settings(Limits, Run):
    """Validated settings. Fields are the variables in lower case; all times are in seconds.

    Those of the last class come first, wherever they are listed.
    """
