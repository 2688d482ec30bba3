"""One pass over all Jobs: look, decide, act, for those that wait for a reporter.

A pass starts from what is, never from what an earlier one has seen: two reapers, or one that was
killed at any point, do no harm. In memory is what the open Jobs are called, one page of a list and
one Pod.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reporter.cli.cluster import TIMEOUT
from reporter.common.objects import Object, section, text
from reporter.errors import Conflict, Forbidden, Gone, KubeError, NotFound, Unavailable
from reporter.jobs.job import newest_pod, pods_selector
from reporter.kube.api import PAGE
from reporter.reap.decide import (
    NewestPod,
    NodeLook,
    Owed,
    Reap,
    Scene,
    Why,
    conditions_owed,
    ended_at,
    job_keeps,
    node_look,
    pod_keeps,
    reap,
)
from reporter.sidecar.job import JobCondition
from reporter.verdict.condition import (
    Statement,
    annotation_key,
    decode_note,
    read_standing,
    worth_writing,
)

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

TRIES = 5  # against others who write on the same Job at the same time
EVENT_PATIENCE = 2.0  # seconds for the one try to announce a verdict
MOST_FAILURES = 5  # in a row, before a look whether the API server is away
_CLOSED = frozenset({Why.FINAL, Why.FOREIGN, Why.DELETED, Why.NEEDLESS, Why.MANAGED})


@dataclass(frozen=True, slots=True)
class Waiting:
    """A condition without a last word; `over` says that its Job has ended."""

    namespace: str
    name: str
    uid: str
    selector: str
    owed: Owed
    over: bool


@dataclass(slots=True)
class Pass:
    """What one pass has found: why Jobs were left alone, and what failed with which error."""

    left: Counter[Why] = field(default_factory=Counter)
    failed: list[tuple[str, KubeError]] = field(default_factory=list)
    reaped: int = 0

    @property
    def open(self) -> int:
        """How many conditions are still to come."""
        return sum(count for why, count in self.left.items() if why not in _CLOSED)


@dataclass
class Reaper:
    """Passes over the Jobs of a namespace, or of all (None), with a label selector.

    `settle` is how long in seconds a reporter may still write after its Job's end. `pause` is
    called before each request, and may end the pass by raising. With `dry_run` nothing is written.
    `on_reaped` gets what was written, or would have been.
    """

    api: "KubeApi"
    namespace: str | None
    selector: str
    settle: float
    pause: Callable[[], None]
    on_reaped: Callable[[Waiting, Reap], None]
    dry_run: bool

    def run(self) -> Pass:
        """Make one pass. Raises KubeError where the Jobs cannot be listed (any more)."""
        found, nodes, away = Pass(), dict[str, NodeLook](), 0
        # Read to the end first: the pages of a list expire after some minutes.
        for waiting in list(self._waiting(found)):
            try:
                why = self._look(waiting, nodes)
                away = 0
            except (NotFound, Gone):
                why = Why.DELETED
            except KubeError as error:
                found.failed.append((f"{waiting.namespace}/{waiting.name}", error))
                away = away + 1 if isinstance(error, Unavailable) else 0
                if away >= MOST_FAILURES:
                    # A webhook may refuse one Job after the other while all else goes well.
                    self.pause()
                    self.api.list_page("Job", self.namespace, limit=1, timeout=TIMEOUT)
                    away = 0
                continue
            if why:
                found.left[why] += 1
            else:
                found.reaped += 1
        return found

    def _waiting(self, found: Pass) -> Iterator[Waiting]:
        for page in self._pages("Job", self.namespace, self.selector):
            for job in page:
                metadata, selector = section(job, "metadata"), pods_selector(job)
                named = (text(metadata, key) for key in ("namespace", "name", "uid"))
                namespace, name, uid = named
                for owed in conditions_owed(job):
                    annotations = section(metadata, "annotations")
                    note = decode_note(text(annotations, annotation_key(owed.type)))
                    standing = read_standing(job, owed.type, note)
                    why = job_keeps(job, standing, self._now(), self.settle)
                    if why or not selector:
                        found.left[why or Why.UNSELECTED] += 1
                    else:
                        over = ended_at(job) is not None
                        yield Waiting(namespace, name, uid, selector, owed, over)

    def _look(self, waiting: Waiting, nodes: dict[str, NodeLook]) -> Why | None:
        """Write what is to be written, or return why nothing is; `nodes` were looked at before."""
        # The newest Pod is enough for most Jobs: one request instead of four.
        pod = self._newest_pod(waiting)
        name = pod.doubtful_node if pod else ""
        if name not in nodes:
            nodes[name] = self._node(name)
        if why := pod_keeps(pod, nodes[name], self._now(), self.settle, over=waiting.over):
            return why
        for _ in range(TRIES - 1):
            with contextlib.suppress(Conflict):
                return self._reap(waiting)
        return self._reap(waiting)

    def _reap(self, waiting: Waiting) -> Why | None:
        """Look at everything again, decide, and write. Raises Conflict where somebody else did."""
        watched, kind = _Watched(self.api, self.pause), waiting.owed.type
        sink = JobCondition(watched, waiting.namespace, waiting.name, kind, events=self.api)
        sink.expect(waiting.uid)
        standing = sink.read(timeout=TIMEOUT)
        # The Job first: a Pod that it creates later is newer than what is written here, and the
        # word of that Pod's reporter replaces it.
        pod = self._newest_pod(waiting)
        node = self._node(pod.doubtful_node if pod else "")
        now = self._now()
        scene = Scene(watched.job, waiting.owed, standing, pod, node, now, self.settle)
        done = reap(scene)
        if isinstance(done, Why):
            return done
        if not worth_writing(standing, done.attempt, done.report, final=done.final):
            return Why.SAID
        statement = Statement(done.report, done.final, done.attempt, done.evidence, now)
        if not self.dry_run:
            sink.write(statement, timeout=TIMEOUT)
        self.on_reaped(waiting, done)
        if done.final and not self.dry_run:
            self.pause()
            # The condition is there: an Event is a courtesy.
            with contextlib.suppress(KubeError):
                sink.announce(statement, timeout=EVENT_PATIENCE)
        return None

    def _newest_pod(self, waiting: Waiting) -> NewestPod | None:
        newest: Object | None = None
        for page in self._pages("Pod", waiting.namespace, waiting.selector):
            newest = newest_pod([*page, *([newest] if newest else [])])
        return None if newest is None else NewestPod(newest, waiting.owed)

    def _pages(
        self, kind: str, namespace: str | None, selector: str
    ) -> Iterator[list[dict[str, Any]]]:
        more, limit = "", PAGE
        while True:
            self.pause()
            page = self.api.list_page(
                kind, namespace, selector, limit=limit, more=more, timeout=TIMEOUT
            )
            yield page.items
            more, limit = page.more, page.limit
            if not more:
                return

    def _node(self, name: str) -> NodeLook:
        """Look at a node that is in doubt. Unread it counts as alive, and so does none."""
        if not name:
            return NodeLook.ALIVE
        self.pause()
        try:
            node = self.api.get("Node", None, name, timeout=TIMEOUT)
        except NotFound:
            return NodeLook.GONE
        except Forbidden:
            return NodeLook.ALIVE
        return node_look(node, self._now(), self.settle)

    def _now(self) -> float:
        return self.api.server_time or time.time()


@dataclass
class _Watched:
    """The calls of the sink at our pace; `job` is what the last one has answered."""

    api: "KubeApi"
    pause: Callable[[], None]
    job: dict[str, Any] = field(default_factory=dict)

    def get(
        self, kind: str, namespace: str, name: str, *, part: str, timeout: float
    ) -> dict[str, Any]:
        self.pause()
        self.job = self.api.get(kind, namespace, name, part=part, timeout=timeout)
        return self.job

    def patch(
        self,
        kind: str,
        namespace: str,
        name: str,
        body: dict[str, Any],
        *,
        part: str,
        timeout: float,
    ) -> dict[str, Any]:
        self.pause()
        return self.api.patch(kind, namespace, name, body, part=part, timeout=timeout)
