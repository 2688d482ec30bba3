"""What can be known about a Job's run, in the values that sources return and decisions read.

Only frozen values are defined here. All times are in seconds. In this folder `..._at` is a moment
since the epoch, mostly as the API shows it, and `..._since`, `..._until`, `..._by`, `..._end` and
`now` are readings of one monotonic clock; the others, as `grace` and `deadline`, are durations.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Form(StrEnum):
    """How the reporter stands in its Pod."""

    NATIVE = "native"  # an init container with restartPolicy Always
    CLASSIC = "classic"  # a second regular container


@dataclass(frozen=True, slots=True)
class Waiting:
    """A container that does not run; `reason` is empty while the kubelet has given none."""

    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A container that runs."""

    started_at: float | None = None


@dataclass(frozen=True, slots=True)
class Terminated:
    """One ended run of a container."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: float | None = None
    finished_at: float | None = None
    signal: int = 0

    @property
    def out_of_memory(self) -> bool:
        """Whether the kubelet called it an OOM kill; exit code 137 alone does not count."""
        return self.reason == "OOMKilled"

    @property
    def never_started(self) -> bool:
        """Whether the runtime could not start the process, so that it has written nothing."""
        return self.reason in {"StartError", "ContainerCannotRun"}

    @property
    def lost(self) -> bool:
        """Whether the kubelet lost the container and made this state up."""
        return self.reason == "ContainerStatusUnknown"


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class Container:
    """One container of the Pod as the API shows it."""

    name: str
    state: State = field(default_factory=Waiting)
    last: Terminated | None = None
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class RestartRule:
    """A `restartPolicyRules` entry: restart on these exit codes, or on all others."""

    exit_codes: frozenset[int]
    among: bool


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """What the kubelet does when a container ends.

    The container's own rules come first, then the policy.
    """

    policy: str = "Never"
    rules: tuple[RestartRule, ...] = ()

    def restarts_after(self, exit_code: int) -> bool:
        """Return whether the kubelet starts the container again after this exit code."""
        if any((exit_code in rule.exit_codes) is rule.among for rule in self.rules):
            return True
        return self.policy == "Always" or (self.policy == "OnFailure" and exit_code != 0)

    @property
    def can_restart(self) -> bool:
        """Whether any exit code leads to another run."""
        return self.policy != "Never" or bool(self.rules)


@dataclass(frozen=True, slots=True)
class Blocker:
    """Another init container that has to succeed before the adapter can start, and has not yet."""

    container: Container
    for_good: bool  # it failed and is not run again: the adapter can never start


@dataclass(frozen=True, slots=True)
class Disruption:
    """Why the platform removes the Pod, or intends to.

    It comes from the Pod's `DisruptionTarget` condition or its reason. `under_way` says that the
    kubelet has begun: its own evictions and the shutdown of a node set no deletion time.
    """

    reason: str
    message: str
    under_way: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """The reporter's own Pod, as far as it concerns the adapter."""

    name: str
    uid: str = ""
    created_at: float | None = None
    started_at: float | None = None
    phase: str = ""
    reason: str = ""
    message: str = ""
    job_name: str = ""
    job_uid: str = ""
    index: int | None = None  # the completion index, of an Indexed Job
    form: Form | None = None
    adapter: Container | None = None
    misfit: str = ""  # why there is no adapter, naming the containers that exist
    remarks: tuple[str, ...] = ()  # worth a warning: how the adapter was guessed
    restart: RestartPolicy = field(default_factory=RestartPolicy)
    own_restart: RestartPolicy = field(default_factory=RestartPolicy)  # the reporter's
    restarts_all: bool = False  # RestartAllContainers of any container but the reporter can apply
    own_restarts: int | None = None  # the reporter's; nothing where the API shows none
    # Of the volume of RESULTS_PATH: an emptyDir that no init container mounts writable, so that it
    # holds only what regular containers of this Pod wrote; and no emptyDir of this Pod at all.
    only_adapters_write: bool = False
    not_empty_dir: bool = False
    blocker: Blocker | None = None
    disruption: Disruption | None = None
    deletion_requested_at: float | None = None
    deletion_grace: float | None = None
    grace: float = 30.0
    deadline: float | None = None  # the Pod's activeDeadlineSeconds
    failing_at: float | None = None  # ContainersReady turned False/PodFailed

    @property
    def deleting(self) -> bool:
        """Whether deletion of the Pod was asked for."""
        return self.deletion_requested_at is not None

    @property
    def finished(self) -> bool:
        """Whether the Pod has reached a final phase."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def stopping(self) -> bool:
        """Whether no container of the Pod is started again, though some may still run.

        `ContainersReady` becomes False with the reason PodFailed as soon as the kubelet has given
        up the Pod.
        """
        return self.finished or self.deleting or self.failing_at is not None

    @property
    def blocked(self) -> bool:
        """Whether another init container failed for good, so that the adapter can never start."""
        return self.blocker is not None and self.blocker.for_good

    @property
    def stopped_by_kubelet(self) -> bool:
        """Whether the kubelet ends the Pod for another reason than a failed init container."""
        return self.failing_at is not None and not self.blocked

    @property
    def disrupted(self) -> bool:
        """Whether the platform removes the Pod already."""
        if self.disruption is None:
            return False
        return self.disruption.under_way or self.deleting or self.failing_at is not None

    @property
    def taken_away(self) -> bool:
        """Whether the platform has begun to end the Pod, whatever its containers do."""
        return self.deleting or self.stopped_by_kubelet or self.disrupted

    @property
    def adapter_state(self) -> State | None:
        """The state of the adapter; None if no adapter could be found."""
        return self.adapter.state if self.adapter else None

    @property
    def ended_for_good(self) -> bool:
        """Whether the adapter has ended and no further run can follow, or can never start."""
        match self.adapter_state:
            case None:
                return False
            case Terminated(exit_code):
                again = self.restarts_all or self.restart.restarts_after(exit_code)
                return self.stopping or not again
            case Waiting() if self.blocked:
                return True
            case _:
                return self.finished

    @property
    def may_run_again(self) -> bool:
        """Whether a later run of the adapter can still replace what this one wrote."""
        again = self.restarts_all or self.restart.can_restart
        return again and not self.stopping and not self.ended_for_good


@dataclass(frozen=True, slots=True)
class PodUnknown:
    """No answer about the Pod has come yet."""


@dataclass(frozen=True, slots=True)
class PodRefused:
    """The API refuses to show the Pod (403)."""


@dataclass(frozen=True, slots=True)
class PodNeverSeen:
    """The API knows no Pod of that name and never showed one: the settings are wrong."""


@dataclass(frozen=True, slots=True)
class PodSeen:
    """The Pod as last shown; `current` is false while the API does not answer."""

    pod: Pod
    current: bool = True


@dataclass(frozen=True, slots=True)
class PodGone:
    """The Pod existed and no longer does; `pod` is its last state."""

    pod: Pod


PodLook = PodUnknown | PodRefused | PodNeverSeen | PodSeen | PodGone


@dataclass(frozen=True, slots=True)
class Job:
    """What the Job says about itself, as far as a verdict depends on it."""

    uid: str = ""
    started_at: float | None = None
    deadline: float | None = None  # the Job's activeDeadlineSeconds
    suspended: bool = False
    deleting: bool = False
    failure: str = ""  # reason of a true FailureTarget or Failed condition
    parallel: bool = False  # runs several Pods at once: outside the contract
    completions: int = 1


def pod_of(look: PodLook) -> Pod | None:
    """Return the newest known Pod of a look, whether or not it is still there."""
    return look.pod if isinstance(look, PodSeen | PodGone) else None


@dataclass(frozen=True, slots=True)
class ResultPayload:
    """A valid result: cleaned text, defaults filled in; `notes` are remarks for the log only.

    `details` are compact JSON, or None where there are none or they were not asked for.
    """

    success: bool
    reason: str
    message: str
    notes: tuple[str, ...] = ()
    details: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest progress: cleaned text, 64-bit integers; what was left out is empty or None."""

    msg: str = ""
    total: int | None = None
    completed: int | None = None
    failures: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Which file was seen, in which state. Times are nanoseconds since the epoch."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class FileAbsent:
    """There is no such file, or no such directory."""


@dataclass(frozen=True, slots=True)
class FileInvalid:
    """There is something that is not a result: `cause` is safe to show.

    The identity is that of the name itself, also for a link or a FIFO; None if it is not known.
    """

    cause: str
    identity: FileIdentity | None


@dataclass(frozen=True, slots=True)
class FileValid:
    """A result, and the state of the file it was read from."""

    result: ResultPayload
    identity: FileIdentity


@dataclass(frozen=True, slots=True)
class FileReadFailed(FileInvalid):
    """Reading failed in a way that may pass; it counts as an invalid file if it does not.

    `before` is the result that the last read found.
    """

    before: FileValid | None = None


@dataclass(frozen=True, slots=True)
class Searched:
    """Where a result file was looked for in vain, and a few names found there: cleaned and cut."""

    path: str
    found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileBeforeStart:
    """What was at RESULTS_PATH when the reporter began, and the wall clock just after that look."""

    identity: FileIdentity | None
    seen_at: float


ResultLook = FileAbsent | FileInvalid | FileReadFailed | FileValid
