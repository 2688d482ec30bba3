"""The run plan, from its file or from the run itself, and what is launched with it.

Their rules are in `run`.
"""

import json
from pathlib import Path

from reporter.aggregator.settings import Settings
from reporter.common import log
from reporter.common.private_file import write_private
from reporter.errors import MissingFile, SettingsError
from reporter.run.launch_file import Launch, encode_launch, read_launch
from reporter.run.plan import Plan, PlanError, parse_plan

_LARGEST = 64 * 2**20


def plan_of(path: Path, state: Path) -> Plan:
    """Return the plan of the file; without a file, the one that the run below `state` began with.

    A file that is there has to be right: it may be meant for another run, and a wrong guess would
    show the results of an old one as those of the new. Raises SettingsError.
    """
    try:
        return read_plan(path)
    except SettingsError as error:
        # Here, because hardly any start needs them.
        from reporter.ledger.database import stored_plan
        from reporter.ledger.layout import Layout

        kept = stored_plan(Layout(state.absolute(), state).database)
        if kept is None:
            raise
        if not isinstance(error, MissingFile):
            hint = f"{path}: remove the file to continue run {kept.run} with its stored plan"
            raise SettingsError([*error.problems, hint]) from None
        log.get().warning(
            "Plan file is missing, the run continues with its stored plan",
            problem=error.problems[0],
            run=kept.run,
        )
        return kept


def read_plan(path: Path) -> Plan:
    """Read the plan at `path`. Raises SettingsError with every problem, one line each.

    It is a MissingFile where there is no such file.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise SettingsError([f"{path}: larger than {_LARGEST} bytes"])
        return parse_plan(json.loads(text))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFile([f"{path}: {error.strerror}"]) from None
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror}"]) from None
    except (ValueError, RecursionError) as error:
        raise SettingsError([f"{path}: not JSON: {error}"]) from None
    except PlanError as error:
        raise SettingsError([f"{path}: {problem}" for problem in error.problems]) from None


def launch_of(chosen: Settings, plan: Plan) -> Launch | None:
    """Return what is to be launched, if anything is; without its file, what the run has kept.

    Raises SettingsError with every problem.
    """
    if not chosen.launch:
        return None
    if not chosen.pod_namespace:
        raise SettingsError(["LAUNCH: requires POD_NAMESPACE"])
    path = Path(chosen.launch)
    try:
        launch = read_launch(_read_launch(path, Path(chosen.state)))
    except OSError as error:
        raise SettingsError([f"{path}: {error.strerror}"]) from None
    except SettingsError as error:
        raise SettingsError([f"{path}: {problem}" for problem in error.problems]) from None
    known = {definition.name for definition in launch.definitions}
    missing = [plugin.name for plugin in plan.plugins if plugin.name not in known]
    if missing:
        raise SettingsError([f"{path}: plugin {name} of the plan is missing" for name in missing])
    return launch


def keep_launch(launch: Launch, path: Path) -> None:
    """Keep what is launched beside the run's plan, for a start without its file.

    Blocks, for a thread. Raises OSError.
    """
    document = encode_launch(launch).encode()
    # A full disk must not keep a run from going on.
    if not path.exists() or path.read_bytes() != document:
        write_private(path, document)


def _read_launch(path: Path, state: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        from reporter.ledger.layout import Layout

        try:
            kept = Layout(state, state).launch.read_bytes()
        except OSError:
            raise error from None
        log.get().warning(
            "Launch file is missing, the run continues with its stored one",
            problem=f"{path}: {error.strerror}",
        )
        return kept
