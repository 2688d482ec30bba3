"""Why a Pod does not go on: its status, its Events and its reporter's log, in order."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reporter.common.objects import Object, View, items, moment, section, text
from reporter.common.text import clean, last_lines
from reporter.jobs.finding import Finding, exit_words, joined, last_event, log_command, rows, say
from reporter.jobs.job import WrittenVerdict
from reporter.jobs.reporter_log import complaints, link_trouble, not_written, refused, words
from reporter.jobs.setting import Setup
from reporter.verdict.facts import Container, Form, Running, Terminated, Waiting
from reporter.verdict.not_starting import waiting_row
from reporter.verdict.pod import BY_KUBELET, EVICTING, find_adapter, read_container
from reporter.verdict.rows import FORBIDDEN, Row, words_left

_STUCK = 60.0  # seconds after which a Pod should be gone and is not
_UNSEEN = 10.0  # seconds in which a scheduler notices a Pod
_SAME = 128  # bytes by which two texts are taken for the same one
_SAID = 1024  # characters of a termination message
_QUIET = 30.0  # seconds that the creation of a container may well take
IDLE: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
TROUBLES: Final[Mapping[str, str]] = {
    Row.IMAGE: "image-trouble",
    Row.CONFIG: "config-trouble",
    Row.START: "start-trouble",
}
"""What keeps a container from starting, by its row of the contract."""
_HIDDEN: Final = frozenset({*TROUBLES, Row.OUT_OF_MEMORY, Row.INVALID_RESULT, Row.NO_RESULT})
"""Rows that a deadline would have hidden."""


class PodView:
    """A Pod at `now` (Unix seconds), Events, its reporter and the end of that one's log.

    `verdicts` are those on its Job.
    """

    def __init__(
        self,
        pod: Object,
        now: float,
        events: Sequence[Object] = (),
        *,
        setup: Setup | None = None,
        log: str = "",
        verdicts: Sequence[WrittenVerdict] = (),
    ) -> None:
        self.pod, self.now, self.setup, self.log = pod, now, setup, log
        self.name = name = View(pod).name
        self.namespace = View(pod).namespace
        self.node = text(section(pod, "spec"), "nodeName")
        self.status = section(pod, "status")
        self.over = text(self.status, "phase") in {"Succeeded", "Failed"}
        self.events = [
            event for event in events if text(section(event, "involvedObject"), "name") == name
        ]
        self.regular = self._containers("containerStatuses")
        self.containers = self._containers("initContainerStatuses") + self.regular
        self.told = " ".join(each.message for each in verdicts)
        # Whether its reporter has said its last word. An older one says neither of which Pod its
        # word is nor whether it is the last.
        self.judged = any(
            each.final is not False and not each.running and each.pod in {"", name}
            for each in verdicts
        )
        # Whether that word is a cause that a deadline would have hidden.
        self.hidden = any(
            each.final and each.pod == name and each.row in _HIDDEN for each in verdicts
        )
        self.disruption = View(pod).condition("DisruptionTarget", status="True")
        self.taken_away = tuple(_taken_away(self))

    def say(self, name: str, /, *evidence: str, about: str = "", **values: object) -> Finding:
        """Return a finding about it."""
        return say(name, *evidence, about=about, pod=self.name, namespace=self.namespace, **values)

    def log_of(self, container: Container) -> str:
        """Return the command that shows the log of one of its containers."""
        return log_command(self.name, self.namespace, container.name)

    def event(self, *reasons: str) -> str:
        """Return its newest Event with one of these reasons in words."""
        return last_event(self.events, *reasons)

    def _containers(self, kind: str) -> list[Container]:
        return [read_container(self.pod, text(each, "name")) for each in items(self.status, kind)]


def check_pod(it: PodView) -> Iterator[Finding]:
    """Yield what is in the Pod's way, the outermost first."""
    yield from it.taken_away
    if it.disruption and not it.taken_away:
        yield it.say("disruption-announced", why=_said(it.disruption))
    if text(it.status, "phase") == "Pending" and not it.node:
        yield _unscheduled(it)
        return
    for container in it.containers:
        if it.setup is not None and container.name == it.setup.name:
            yield from _reporter(it, container, it.setup)
        else:
            yield from _container(it, container, f"Container {container.name!r} of Pod {it.name}")
    if not it.over and not it.taken_away:
        yield from _not_created(it)
    if it.setup is not None:
        yield from _kept_running(it, it.setup)


def _taken_away(it: PodView) -> Iterator[Finding]:
    gone_at = moment(section(it.pod, "metadata"), "deletionTimestamp")
    begun = gone_at is not None or text(it.disruption, "reason") == BY_KUBELET
    if text(it.status, "reason") in EVICTING or (it.disruption and begun):
        why, said = _said(it.disruption), _said(it.status)
        yield it.say("evicted", said if why else "", why=why or said)
    elif text(it.status, "reason") == "DeadlineExceeded":
        yield it.say("deadline/named" if it.hidden else "deadline")
    if gone_at is not None and it.now > gone_at + _STUCK:
        yield it.say("stuck-terminating", late=int(it.now - gone_at), node=it.node)
    elif gone_at is not None and not it.disruption:
        yield it.say("deleted")


def _unscheduled(it: PodView) -> Finding:
    spec, conditions = section(it.pod, "spec"), items(it.status, "conditions")
    unmet = (each for each in conditions if text(each, "type") == "PodScheduled")
    condition = next((each for each in unmet if text(each, "status") != "True"), {})
    if text(condition, "reason") == "SchedulingGated":
        gates = ", ".join(text(gate, "name") for gate in items(spec, "schedulingGates"))
        return it.say("gated", gates=gates or "unnamed")
    why = text(condition, "message") or it.event("FailedScheduling")
    created = View(it.pod).created
    waited = 0.0 if created is None else it.now - created
    if not condition and not why and waited > _UNSEEN:
        scheduler = text(spec, "schedulerName") or "default-scheduler"
        return it.say("no-scheduler", waited=int(waited), scheduler=scheduler)
    return it.say("unschedulable", why=f" ({why})" if why else " yet")


def _container(it: PodView, container: Container, who: str, tail: str = "") -> Iterator[Finding]:
    """Yield what is wrong with any container; `tail` is what else follows from its not running."""
    state, log = container.state, it.log_of(container)
    ended_idle = it.hidden and it.taken_away and it.over
    match state:
        # Which of these two the kubelet shows is a race.
        case Waiting() if waiting_row(state) and ended_idle:
            yield it.say("not-running", who=who)
        case Terminated() if state.lost and it.hidden:
            yield it.say("not-running", who=who)
        case Waiting(reason, message) if row := waiting_row(state):
            cause = _pull_failure(it.events, f"{message} {it.told}") if row == Row.IMAGE else ""
            said = joined(reason, message)
            yield it.say(TROUBLES[row], cause, about=container.name, who=who, said=said, tail=tail)
        case Waiting("CrashLoopBackOff"):
            how = f"{_ended(container.last or Terminated())}, restarted {container.restarts} times"
            yield it.say("crash-loop", who=who, how=how, log=f"{log} --previous")
        case Terminated(code) if state.out_of_memory:
            yield it.say("oom-killed", who=who, code=code)
        case Terminated(_, reason, message) if state.never_started:
            about = container.name
            yield it.say(
                "start-trouble/ended", about=about, who=who, reason=reason, message=message
            )
        case Terminated() if state.lost:
            yield it.say("lost", who=who)
        case Terminated(code) if code:
            # A grace period that ends leaves 137, too.
            suspect = code == 137 and not it.taken_away
            maybe = " It may have run out of memory." if suspect else ""
            yield it.say("exited", who=who, how=_ended(state), maybe=maybe, log=log)


def _reporter(it: PodView, container: Container, setup: Setup) -> Iterator[Finding]:
    """Yield what is wrong with the reporter's container, its writes and its link."""
    who, state = f"The reporter's container {container.name!r} of Pod {it.name}", container.state
    # A native reporter that runs for a moment, and fails, may let them start.
    held = all(isinstance(each.state, Waiting) and each.last is None for each in it.regular)
    tail = " The adapter does not start before it." if held and setup.form is Form.NATIVE else ""
    match state:
        case Waiting("CrashLoopBackOff"):
            yield _reporter_failed(it, container, who, tail)
        case Terminated(code) if not (state.out_of_memory or state.never_started or state.lost):
            # In the classic form most verdicts go with exit code 1 (EXIT_POLICY).
            if code and not (code == 1 and it.judged):
                yield _reporter_failed(it, container, who, tail)
        case _:
            yield from _container(it, container, who, tail)
    well = isinstance(state, Running) or (isinstance(state, Terminated) and state.exit_code == 0)
    line, said = refused(it.log), words_left(container)
    if not it.judged and (line or FORBIDDEN in said):
        yield it.say("missing-rights", line, said if well else "")
    elif not it.judged and well and ((found := not_written(it.log)) or said):
        known = f"not-written/{text(found, 'failure')}"
        name, log = known if known in rows() else "not-written", it.log_of(container)
        yield it.say(name, words(found), said, who=who, log=log)
    if trouble := link_trouble(it.log):
        yield it.say("link", trouble, who=who)


def _reporter_failed(it: PodView, container: Container, who: str, tail: str) -> Finding:
    """Return how the reporter ends again and again, or has ended.

    A native reporter that waits for its next start may be shown as ended, too.
    """
    waits, log = isinstance(container.state, Waiting), it.log_of(container)
    run = container.state if isinstance(container.state, Terminated) else container.last
    run = run or Terminated()
    # Its message is the end of the log, which is shown elsewhere.
    how = exit_words(run.exit_code, run.reason, "")
    if waits or container.restarts:
        how += f", restarted {container.restarts} times"
    probed = f"{container.name} failed liveness"
    probes = [event for event in it.events if probed in text(event, "message")]
    if not waits and (probe := last_event(probes, "Killing")):
        return it.say("reporter-failed/probe", probe, who=who, how=how)
    code = "crash-loop/reporter" if waits else "reporter-failed"
    if run.exit_code == 2:
        # Every restart ends the same way.
        code = f"{code.partition('/')[0]}/settings"
    log += " --previous" if waits else ""
    said = complaints(run.message or it.log)
    return it.say(code, *said, who=who, how=how, tail=tail, log=log)


def _pull_failure(events: Sequence[Object], known: str) -> str:
    """Return the Event with the cause, where the status only says that the kubelet waits."""
    causes = [
        event
        for event in events
        if (parts := text(event, "message").partition(": "))[0].startswith("Failed to pull")
        and clean(parts[2], _SAME) not in clean(known, 1 << 16)
    ]
    return last_event(causes, "Failed")


def _ended(run: Terminated) -> str:
    said = last_lines(run.message, 1, _SAID)  # of what may be the end of the log
    return exit_words(run.exit_code, run.reason, "".join(said))


def _said(shown: Object) -> str:
    return joined(text(shown, "reason"), text(shown, "message"))


def _not_created(it: PodView) -> Iterator[Finding]:
    """Yield from the Events why nothing runs yet, if no container says it."""
    states = [each.state for each in it.containers]
    if not all(isinstance(state, Waiting) and state.reason in IDLE for state in states):
        return
    since = moment(it.status, "startTime")
    if why := it.event("FailedMount", "FailedAttachVolume", "FailedMapVolume"):
        yield it.say("volume", why=why)
    elif why := it.event("FailedCreatePodSandBox", "NetworkNotReady", "FailedCreatePodContainer"):
        yield it.say("sandbox", why=why)
    elif since is not None and it.now - since > _QUIET:
        yield it.say("creating", waited=int(it.now - since))


def _kept_running(it: PodView, setup: Setup) -> Iterator[Finding]:
    """Yield the regular containers that run longer than the adapter, or did so until a deadline."""
    adapter, _, _ = find_adapter(it.pod, setup.names)
    ended = read_container(it.pod, adapter).state
    if not isinstance(ended, Terminated) or View(it.pod).deleting:
        return
    if text(section(it.pod, "spec"), "restartPolicy") == "OnFailure" and ended.exit_code != 0:
        return
    deadline = text(it.status, "reason") == "DeadlineExceeded"
    # The API's times are whole seconds.
    before = (ended.finished_at or math.inf) + 1
    for other in it.regular:
        match other.state:
            case _ if other.name in {adapter, setup.name}:
                pass
            case Running():
                yield it.say("kept-alive", other=other.name, how="still runs: it keeps")
            case Terminated(finished_at=at) if deadline and (at or 0.0) > before:
                how = "ran until the deadline: it kept"
                yield it.say("kept-alive", other=other.name, how=how)
