"""The reporter's settings as far as they matter without a cluster."""

from collections.abc import Mapping
from typing import NamedTuple

from reporter.common.defaults import WAIT_SECONDS

NAMESPACE, JOB, POD = "default", "try", "try-pod"


class Chosen(NamedTuple):
    """The reporter's settings that matter without a cluster, and its defaults for them."""

    max_wait_time_seconds: int = WAIT_SECONDS
    poll_interval_seconds: int = 2
    condition_type: str = "Available"
    result_required: bool = True
    result_trust: str = "at-once"
    report_running: bool = True
    report_details: bool = False
    warnings: tuple[str, ...] = ()

    @property
    def poll_interval(self) -> float:
        """Seconds between two looks: a command may be over in less than the reporter's interval."""
        return min(float(self.poll_interval_seconds), self.max_wait_time_seconds / 2)


SETTINGS = [name.upper() for name in Chosen._fields[:-1]]


def choose(environ: Mapping[str, str], timeout: int | None) -> Chosen:
    """Return what the reporter would be told, with --timeout above it. Raises SettingsError."""
    given = {name: environ[name] for name in SETTINGS if environ.get(name, "").strip()}
    if not given:
        # Reading settings takes longer than the rest of the command: only for who has set one.
        chosen = Chosen()
        return chosen if timeout is None else chosen._replace(max_wait_time_seconds=timeout)
    from reporter.sidecar.settings import load

    if timeout is not None:
        given["MAX_WAIT_TIME_SECONDS"] = str(timeout)
    loaded = load({**given, "JOB_NAMESPACE": NAMESPACE, "JOB_NAME": JOB, "POD_NAME": POD})
    return Chosen(*(getattr(loaded, name) for name in Chosen._fields))
