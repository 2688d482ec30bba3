"""Why the adapter does not start: the kubelet's waiting reasons, as rows of the contract."""

import re
from dataclasses import dataclass, field, replace

from reporter.common.text import clean
from reporter.verdict.facts import Pod, Terminated, Waiting
from reporter.verdict.rows import Row

IMAGE = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "RegistryUnavailable",
        "ImageInspectError",
        "SignatureValidationFailed",
    }
)
CONFIG = frozenset({"CreateContainerConfigError"})
START = frozenset(
    {
        "CreateContainerError",
        "RunContainerError",
        "PreStartHookError",
        "PreCreateHookError",
        "PostStartHookError",
    }
)
AT_ONCE = frozenset({"InvalidImageName", "ErrImageNeverPull"})
"""Reasons that waiting does not resolve.

The others get time, because registries and ConfigMaps come late.
"""

OWN_WORDS = 160
"""Bytes of another container's own words: its termination message may be its whole log."""

_BACK_OFF = re.compile(r'Back-off pulling image "[^"]*"(?:: (?P<reason>[A-Za-z]+): )?')


@dataclass(frozen=True, slots=True)
class Trouble:
    """Trouble with starting a container, for one row.

    `reason` and `message` are those in the text; no reason where an init container has failed.
    """

    row: Row  # W1, W2 or W3
    text: str
    at_once: bool = False
    back_off: bool = False  # the kubelet only repeats that it waits, the cause was shown before
    reason: str = field(default="", compare=False)
    message: str = field(default="", compare=False)


def trouble_of(pod: Pod) -> Trouble | None:
    """Return what keeps the adapter from starting, if anything does.

    The adapter's own waiting reason comes first, then the init container that blocks it. A
    container that the runtime could not start counts by its state (`StartError`), never by an exit
    code alone; while it waits for its next start it still counts as not started.
    """
    adapter = pod.adapter
    if adapter is None:
        return None
    match adapter.state:
        case Terminated():
            return not_started(adapter.name, adapter.state)
        case Waiting("CrashLoopBackOff") if adapter.last is not None:
            trouble = not_started(adapter.name, adapter.last)
            return replace(trouble, back_off=True) if trouble else None
        case Waiting():
            return _waiting(adapter.state, f"container {adapter.name!r}: ") or _blocked(pod)
        case _:
            return None


def not_started(name: str, run: Terminated) -> Trouble | None:
    """Return W3 if the runtime could not start the adapter's process."""
    return _ended(f"container {name!r}: ", run) if run.never_started else None


def _blocked(pod: Pod) -> Trouble | None:
    if pod.blocker is None:
        return None
    container = pod.blocker.container
    prefix = f"init container {container.name!r}: "
    if isinstance(container.state, Waiting):
        trouble = _waiting(_brief(container.state), prefix)
        if trouble or container.state.reason != "CrashLoopBackOff":
            return trouble
    ended = container.state if isinstance(container.state, Terminated) else container.last
    if ended is None or ended.exit_code == 0:
        return None
    return _ended(prefix, ended)


def _brief(state: Waiting) -> Waiting:
    """Return the state with most of a hook's output removed; the rest is the kubelet's text."""
    if not state.reason.endswith("HookError"):
        return state
    return replace(state, message=clean(state.message, OWN_WORDS))


def waiting_row(state: Waiting) -> Row | None:
    """Return the row of what keeps a container from starting, if that is known."""
    rows = ((Row.IMAGE, IMAGE), (Row.CONFIG, CONFIG), (Row.START, START))
    return next((row for row, known in rows if state.reason in known), None)


def _waiting(state: Waiting, prefix: str) -> Trouble | None:
    row = waiting_row(state)
    if row is None:
        return None
    reason, message = state.reason, state.message
    back_off = False
    if reason == "ImagePullBackOff" and (found := _BACK_OFF.match(message)):
        back_off = found["reason"] is None
        reason, message = found["reason"] or reason, message[found.end() :] or message
    text = f"{prefix}{reason}: {message}" if message else f"{prefix}{reason}"
    return Trouble(row, text, state.reason in AT_ONCE, back_off, reason, message)


def _ended(prefix: str, run: Terminated) -> Trouble:
    """Return what is known of a run that ended: the runtime's message if it never started."""
    if run.never_started:
        said = f"{run.reason}: {run.message}" if run.message else run.reason
        return Trouble(Row.START, f"{prefix}{said}", reason=run.reason, message=run.message)
    message = clean(run.message, OWN_WORDS)
    said = f"exited with code {run.exit_code}: {run.reason}"
    said = f"{said}: {message}" if message else said
    return Trouble(Row.START, f"{prefix}{said}", message=said)
