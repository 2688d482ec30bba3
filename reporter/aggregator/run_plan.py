"""Reading the run plan from its file. What a plan may say is decided in `core`."""

import json
from pathlib import Path

from reporter.core.run.plan import Plan, PlanError, parse_plan
from reporter.errors import SettingsError

_LARGEST = 64 * 2**20


def read_plan(path: Path) -> Plan:
    """Read the plan at `path`. Raises SettingsError with every problem, one line each."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise SettingsError([f"{path}: larger than {_LARGEST} bytes"])
        return parse_plan(json.loads(text))
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror}"]) from None
    except (ValueError, RecursionError) as error:
        raise SettingsError([f"{path}: not JSON: {error}"]) from None
    except PlanError as error:
        raise SettingsError([f"{path}: {problem}" for problem in error.problems]) from None
