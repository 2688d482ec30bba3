"""What the launcher knows when it decides, and what it decides.

All times are by the run's clock, but those of the API server, which `World.skew` brings there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reporter.launch.seen import Refusal, SeenJob, SeenPod
from reporter.launch.situation import Track
from reporter.run.entry import Entry
from reporter.run.launch_file import Launch
from reporter.run.names import entry_name
from reporter.run.plan import Key, Plan
from reporter.run.record import Failure
from reporter.run.state import PodState


@dataclass(frozen=True, slots=True)
class LaunchedRun:
    """What is launched. `owner` is the UID of the run's ConfigMap, which owns what is made."""

    plan: Plan
    launch: Launch
    owner: str

    @property
    def name(self) -> str:
        """Its name."""
        return self.plan.run


class Denial(NamedTuple):
    """Why an entry cannot have a Job, for good."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class World:
    """What was seen of the cluster: Jobs by name, refusals by the UID of their Job.

    Pods are by name and UID of their Job, of several the newest.

    `taken_logs` are the entries whose logs were taken or given up, `secrets` the names of Secrets
    that may exist, `denied` why there will be no Job of that name. `unseen_since` says since when
    the API has not shown the present. `uploading` are the entries whose results are on their way,
    `heard` those whose workers have been heard; of others `obstacles` may say why not.
    The run's clock is `skew` seconds ahead of the wall clock.
    """

    jobs: Mapping[str, SeenJob]
    pods: Mapping[tuple[str, str], SeenPod]
    refusals: Mapping[str, Refusal]
    taken_logs: frozenset[Key] = frozenset()
    secrets: frozenset[str] = frozenset()
    denied: Mapping[str, Denial] = field(default_factory=dict)
    unseen_since: float | None = None
    uploading: frozenset[Key] = frozenset()
    heard: frozenset[Key] = frozenset()
    obstacles: Mapping[Key, str] = field(default_factory=dict)
    skew: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """What one decision must know of the ones before; a restarted launcher begins with `Memory()`.

    `uids` are those of the Jobs that this run has made, as they were last seen.
    `first_look` and `last_look` are this process's, `next_look` when it has to look again.
    `away_since` is when the API went away, `outages` the times in which nothing was seen,
    `ending_since` when all entries were decided, and `removing_since` when after that nothing was
    left for which a Job had to stay.
    """

    tracks: Mapping[Key, Track] = field(default_factory=dict)
    uids: Mapping[Key, str] = field(default_factory=dict)
    first_look: float | None = None
    last_look: float | None = None
    next_look: float | None = None
    away_since: float | None = None
    outages: tuple[tuple[float, float], ...] = ()
    ending_since: float | None = None
    removing_since: float | None = None


@dataclass(frozen=True, slots=True)
class Present:
    """What a decision is made from; `entries` has every key of the plan, `jobs` this run's."""

    run: LaunchedRun
    entries: Mapping[Key, Entry]
    jobs: Mapping[Key, SeenJob]
    world: World
    memory: Memory
    now: float

    def pod(self, key: Key) -> SeenPod | None:
        """Return an entry's Pod of that very Job that this run has made, once that was seen."""
        uid = self.memory.uids.get(key)
        return self.world.pods.get((entry_name(self.run.name, key), uid)) if uid else None


@dataclass(slots=True)
class Findings:
    """What was found: `left` says of what is to go why it is still there, by kind and name.

    `grace` is the longest grace period among that, in seconds. `held` says that some of it has to
    stay for now, `logs_missing` that it is for logs.
    `dues` are the moments at which time alone changes something. The rest is as in `Decision`.
    """

    start: dict[Key, float] = field(default_factory=dict)
    fail: dict[Key, Failure] = field(default_factory=dict)
    tracks: dict[Key, Track] = field(default_factory=dict)
    pods: dict[Key, PodState] = field(default_factory=dict)
    unheard: dict[Key, SeenPod] = field(default_factory=dict)
    take_logs: list[Key] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    delete_secrets: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    grace: int = 0
    held: bool = False
    logs_missing: bool = False
    dues: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, in this order: fail, start, adopt, take logs, delete, begin, create.

    `create` are the entries whose Jobs (and before them Secrets) are to be made, in order. Each is
    stored as launched by `adopt` alone, once its Job is seen, whichever process has made that.
    `begin` takes three looks: the first marks the run's ConfigMap, the next stores that launching
    has begun, the third creates. `start` tells when a plugin's container began. `delete` are names
    of Jobs, `delete_secrets` of Secrets. `pods` is what each Pod does, `unheard` are those Pods of
    which a heartbeat was due and none came. `next_look`: when time alone changes something.
    `logs_taken`: all entries are decided, and no more logs of theirs will come. `through`: nothing
    of the plugins is left but `stays`, with the reasons by kind and name.
    """

    memory: Memory
    begin: bool = False
    create: tuple[Key, ...] = ()
    adopt: tuple[Key, ...] = ()
    start: Mapping[Key, float] = field(default_factory=dict)
    fail: Mapping[Key, Failure] = field(default_factory=dict)
    take_logs: tuple[Key, ...] = ()
    delete: tuple[str, ...] = ()
    delete_secrets: tuple[str, ...] = ()
    pods: Mapping[Key, PodState] = field(default_factory=dict)
    unheard: Mapping[Key, SeenPod] = field(default_factory=dict)
    next_look: float | None = None
    logs_taken: bool = False
    through: bool = False
    stays: Mapping[str, str] = field(default_factory=dict)
