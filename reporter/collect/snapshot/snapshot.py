"""The whole of a snapshot: what there is, then all of it four at a time, then the index.

The index is written however it ends. The files that are there then are delivered, and the index
says what is missing.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from reporter.collect.delivery import TaskFailure
from reporter.collect.snapshot.collecting import Namespaces, Server, collect
from reporter.collect.snapshot.files import INDEX, SERVER_VERSION, Folder, encoded
from reporter.collect.snapshot.index import Collected, Index, Truncated
from reporter.collect.snapshot.kubelets import collect_host, collect_logs, logged_pod
from reporter.collect.snapshot.options import MIB, SnapshotOptions, choose
from reporter.common import log
from reporter.common.lifecycle import Stop
from reporter.common.objects import View, text
from reporter.errors import KubeError
from reporter.kube.api import KubeApi
from reporter.kube.resources import KINDS

T = TypeVar("T")

_AT_ONCE: Final = 4


def take_snapshot(
    options: SnapshotOptions,
    api: KubeApi,
    out: Path,
    tell: Callable[[str, int, int], None],
    stop: Stop,
) -> TaskFailure | None:
    """Collect from this API server into `out`; nothing where some of it is there.

    The end of the time, or `stop`, keeps the files so far. `tell` takes a message, how many steps
    are done and how many there are.
    """
    api.hurry_after(lambda: stop.requested_at)
    return _Snapshot(options, Server(api, stop, options.seconds), out, tell).run()


class _Snapshot:
    def __init__(
        self,
        options: SnapshotOptions,
        server: Server,
        out: Path,
        tell: Callable[[str, int, int], None],
    ) -> None:
        self._options, self._server, self._tell = options, server, tell
        self._folder = Folder(out, options.total_mib * MIB, options.max_files)
        self._index = Index(began=time.time())

    def run(self) -> TaskFailure | None:
        index = self._index
        try:
            namespaces = self._look()
            with ThreadPoolExecutor(_AT_ONCE, "snapshot") as pool:
                self._collect(namespaces, pool)
            namespaces.look()
        except Truncated as why:
            index.stopped = str(why)
        except KubeError as error:
            index.error = str(error)
        index.stopped = index.stopped or self._server.why_ended()
        self._folder.write(INDEX, encoded(index.document(time.time())) + b"\n")
        return self._failure()

    def _look(self) -> Namespaces:
        """Find out what there is to collect."""
        server, options, index = self._server, self._options, self._index
        version = server.tried(server.api.document, "/version")
        index.server_version = text(version, "gitVersion")
        self._folder.write(SERVER_VERSION, encoded(version) + b"\n")
        discovered = server.tried(server.api.discover)
        index.troubles = discovered.troubles
        index.choice = choose(discovered.resources, options)
        if options.namespaces:
            index.namespaces = options.namespaces
        elif options.namespace_selector:
            # The index has no place to say whether they are of one moment.
            names = self._names(Collected(), "Namespace", options.namespace_selector)
            index.namespaces = sorted(names)
        namespaces = Namespaces(server, index.namespaces, options.namespaces)
        index.gone = namespaces.gone
        return namespaces

    def _names(self, found: Collected, kind: str, label_selector: str = "") -> Iterator[str]:
        for each in self._server.objects(
            found, KINDS[kind], label_selector=label_selector, metadata_only=True
        ):
            yield View(each).name

    def _collect(self, namespaces: Namespaces, pool: ThreadPoolExecutor) -> None:
        server, options, found = self._server, self._options, self._index.found
        most = options.resource_mib * MIB
        futures = {
            pool.submit(collect, self._folder, namespaces, most, each): each
            for each in self._index.choice.chosen
        }
        for done in as_completed(futures):
            resource = futures[done]
            became = found[resource] = done.result()
            self._tell(resource.name, len(found), len(futures))
            if not became.complete:
                log.get().warning(
                    "Not all of a resource is collected",
                    resource=resource.name,
                    truncated=became.truncated,
                    error=became.error,
                )
        if options.kubelet:
            self._part(
                "hosts",
                pool,
                partial(collect_host, server, self._folder),
                lambda whole: self._names(whole, "Node"),
            )
        if options.pod_logs:
            self._part(
                "podlogs",
                pool,
                partial(collect_logs, server, self._folder, options.log_kib * 1024),
                lambda whole: map(logged_pod, namespaces.objects(whole, KINDS["Pod"])),
            )

    def _part(
        self,
        name: str,
        pool: ThreadPoolExecutor,
        collect_one: Callable[[T], Collected],
        wanted: Callable[[Collected], Iterable[T]],
    ) -> None:
        """Collect what is not a list, and sum it up."""
        index, began = self._index, time.monotonic()
        whole = index.parts[name] = Collected()
        self._tell(name, len(index.found), len(index.choice.chosen))
        futures = []
        with whole.noting():
            for each in wanted(whole):
                futures.append(pool.submit(collect_one, each))
        for done in futures:  # those from before it broke off, too: they are written
            whole.add(done.result())
        whole.seconds = time.monotonic() - began

    def _failure(self) -> TaskFailure | None:
        """Say that nothing is there, and why; part of a snapshot is a result."""
        index, found = self._index, self._index.found.values()
        if any(each.count for each in found):
            return None
        troubles = [each.error for each in found if each.error]
        troubles += [f"namespace {name}: {why}" for name, why in index.gone.items()]
        why = index.error or index.stopped or next(iter(troubles), "")
        return TaskFailure(f"nothing was collected: {why}", "snapshot_failed") if why else None
