"""The run plan, from its file or from the run itself. What a plan may say is decided in `core`."""

import json
from pathlib import Path

from reporter.core.run.plan import Plan, PlanError, parse_plan
from reporter.errors import SettingsError
from reporter.runtime import log

_LARGEST = 64 * 2**20


def plan_of(path: Path, state: Path) -> Plan:
    """Return the plan of the file, or the one that the run below `state` began with.

    Only the first start needs the file. Raises SettingsError where there is neither.
    """
    try:
        return read_plan(path)
    except SettingsError as error:
        # Here, because hardly any start needs them.
        from reporter.aggregator.store.layout import Layout
        from reporter.aggregator.store.schema import stored_plan

        kept = stored_plan(Layout(state.absolute(), state).database)
        if kept is None:
            raise
        log.get().warning(
            "Plan cannot be read, the run continues with the one it began with",
            problem=error.problems[0],
            run=kept.run,
        )
        return kept


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
