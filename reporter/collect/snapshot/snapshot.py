"""The whole of a snapshot: what there is, then all of it four at a time, then the index.

The index is written however it ends. The files that are there then are delivered, and the index
says what is missing.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any, BinaryIO

from reporter.collect.snapshot.choice import Choice, choose
from reporter.collect.snapshot.collecting import Collecting, objects_of
from reporter.collect.snapshot.index import Collected, Told, index_document
from reporter.collect.snapshot.kubelets import collect_host
from reporter.collect.snapshot.limits import Course, Room, SnapshotEnded
from reporter.collect.snapshot.namespaces import Chosen
from reporter.collect.snapshot.options import MIB, SnapshotOptions
from reporter.collect.snapshot.paths import INDEX, SERVER_VERSION
from reporter.collect.snapshot.pod_logs import LoggedPod, collect_logs, logged_pod
from reporter.collect.snapshot.tree import Site, encoded, write
from reporter.collect.task import TaskFailure, Work
from reporter.common.objects import section, text
from reporter.errors import Forbidden, KubeError, NotFound
from reporter.kube.reading import Ask, Reading, in_memory_first
from reporter.kube.resources import Discovered, Resource

AT_ONCE = 4
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
_PODS = Resource("", "v1", "pods", "Pod", namespaced=True)


class Snapshot:
    """One snapshot. `log` takes lines with facts, as structlog's."""

    def __init__(
        self,
        options: SnapshotOptions,
        work: Work,
        api: Reading,
        log: Any,
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._options, self._work, self._api, self._log = options, work, api, log
        self._wall, self._began = wall, wall()
        self._course = Course(work.stop.is_set, time.monotonic() + options.seconds)
        room = Room(options.total_mib * MIB, options.max_files)
        self._site = Site(work.out, room, self._course)
        self._version = self._error = self._stopped = ""
        self._discovered, self._choice = Discovered((), ()), Choice((), ())
        self._namespaces: Sequence[str] | None = None
        self._named = Chosen(self._document, options.namespaces)
        self._found: dict[Resource, Collected] = {}
        self._parts: dict[str, Collected] = {}

    def run(self) -> TaskFailure | None:
        """Take it; nothing where some of it is there."""
        try:
            self._look()
            self._collect()
            self._named.look()
        except SnapshotEnded as why:
            self._stopped = str(why)
        except KubeError as error:
            self._error = str(error)
        self._stopped = self._stopped or self._course.why_ended()
        write(self._work.out, INDEX, encoded(self._index()) + b"\n")
        return self._failure()

    def _look(self) -> None:
        """Find out what there is to collect."""
        version = self._course.tried(partial(self._api.document, "/version"))
        self._version = text(version, "gitVersion")
        write(self._work.out, SERVER_VERSION, encoded(version) + b"\n")
        self._discovered = self._course.tried(self._api.discover)
        self._choice = choose(self._discovered.resources, self._options)
        self._namespaces = self._chosen_namespaces()

    def _document(self, *arguments: Any, **rest: Any) -> dict[str, Any]:
        return self._course.tried(partial(self._api.document, *arguments, **rest))

    def _chosen_namespaces(self) -> Sequence[str] | None:
        if self._options.all_namespaces:
            return None
        if self._options.namespaces:
            return self._options.namespaces
        ask = Ask(_NAMESPACES, metadata_only=True, label_selector=self._options.namespace_selector)
        return sorted(self._names(ask))

    def _names(self, ask: Ask) -> Iterable[str]:
        for each in objects_of(self._api, self._course, ask, self._spool):
            yield text(section(each, "metadata"), "name")

    def _collect(self) -> None:
        collecting = Collecting(
            self._api,
            self._site,
            most=self._options.resource_mib * MIB,
            namespaces=self._namespaces,
            gone=self._named.is_gone,
            spool=self._spool,
        )
        chosen = self._choice.chosen
        with ThreadPoolExecutor(AT_ONCE, "snapshot") as pool:
            asked: dict[Future[Collected], Resource] = {
                pool.submit(collecting.collect, each): each for each in chosen
            }
            for done in as_completed(asked):
                resource, found = asked[done], done.result()
                self._found[resource] = found
                self._told(resource, found)
            if self._options.kubelet:
                self._part("hosts", pool, self._hosts)
            if self._options.pod_logs:
                self._part("podlogs", pool, self._logs)

    def _told(self, resource: Resource, found: Collected) -> None:
        self._work.tell(resource.name, len(self._found), len(self._choice.chosen))
        if not found.complete:
            self._log.warning(
                "Not all of a resource is collected",
                resource=resource.name,
                truncated=found.truncated,
                error=found.error,
            )

    def _part(
        self,
        name: str,
        pool: ThreadPoolExecutor,
        each: Callable[[ThreadPoolExecutor], Iterable[Future[Collected]]],
    ) -> None:
        """Collect what is not a list, and sum it up."""
        whole = self._parts[name] = Collected()
        began = time.monotonic()
        self._work.tell(name, len(self._found), len(self._choice.chosen))
        asked: list[Future[Collected]] = []
        try:
            asked.extend(each(pool))  # keeps those from before it breaks off: they are written
        except SnapshotEnded as why:
            whole.truncated = str(why)
        except KubeError as error:
            whole.error = str(error)
        for done in as_completed(asked):
            found = done.result()
            whole.count += found.count
            whole.size += found.size
            whole.redacted += found.redacted
            whole.truncated = whole.truncated or found.truncated
            whole.error = whole.error or found.error
        whole.seconds = time.monotonic() - began

    def _hosts(self, pool: ThreadPoolExecutor) -> Iterable[Future[Collected]]:
        ask = Ask(_NODES, metadata_only=True)
        collect = partial(collect_host, self._api, self._site)
        return (pool.submit(collect, node) for node in self._names(ask))

    def _logs(self, pool: ThreadPoolExecutor) -> Iterable[Future[Collected]]:
        collect = partial(collect_logs, self._api, self._site, self._options.log_kib * 1024)
        return (pool.submit(collect, pod) for pod in self._pods())

    def _pods(self) -> Iterable[LoggedPod]:
        for namespace in (None,) if self._namespaces is None else self._namespaces:
            ask = Ask(_PODS, namespace)
            try:
                yield from map(logged_pod, objects_of(self._api, self._course, ask, self._spool))
            except (Forbidden, NotFound) as error:
                if namespace is None:
                    raise
                if not self._named.is_gone(namespace):
                    self._parts["podlogs"].error = str(error)

    def _spool(self) -> BinaryIO:
        # The container has no other directory to write to, and nameless files are not packed.
        return in_memory_first(str(self._work.out))

    def _index(self) -> dict[str, Any]:
        missing = Collected(truncated=self._stopped or "not tried")
        return index_document(
            Told(
                began=self._began,
                ended=self._wall(),
                server_version=self._version,
                resources=[(each, self._found.get(each, missing)) for each in self._choice.chosen],
                left_out=self._choice.left_out,
                troubles=self._discovered.troubles,
                namespaces=self._namespaces,
                gone=self._named.gone,
                parts=self._parts,
                stopped=self._stopped,
                error=self._error,
            )
        )

    def _failure(self) -> TaskFailure | None:
        """Say that nothing is there, and why; part of a snapshot is a result."""
        if any(found.count for found in self._found.values()):
            return None
        troubles = [found.error for found in self._found.values() if found.error]
        troubles += [f"namespace {name}: {why}" for name, why in self._named.gone.items()]
        why = self._error or self._stopped or next(iter(troubles), "")
        return TaskFailure(f"nothing was collected: {why}", "snapshot_failed") if why else None
