"""`status-ctl logs`: what the containers of a run have written, of all its Pods at once."""

import argparse
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reporter.core.launch.names import key_of, selector
from reporter.core.objects import items, section, text
from reporter.core.run.plan import GLOBAL
from reporter.core.run.view import over
from reporter.core.text import clean
from reporter.ctl import cluster
from reporter.ctl.exits import GOOD, CannotTell
from reporter.ctl.launch.standing import asked_there, named_run
from reporter.ctl.show.tell import tell
from reporter.errors import InvalidRequest, KubeError, NotFound

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

DESCRIPTION = """\
Prints the logs of a run's Pods, each line after the Pod and container that wrote it. With -f it
follows them, also those of Pods that start later, until the run is over.

Pods of plugins that are done are usually deleted; their logs are among the results, below podlogs/.

exit codes:
  0    the logs were printed
  2    usage error
  4    cannot tell: not reachable, forbidden, no such run, no Pod that fits
  130  Ctrl-C"""

_PAUSE: Final = 1.0
_LAST_WORDS: Final = 5.0  # seconds for what is still on its way when the run is over
_LONGEST: Final = 64 * 1024  # bytes of a line


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("name", metavar="RUN", help="the run's name, also as run/NAME")
    parser.add_argument("--plugin", metavar="PLUGIN", help="only the Pods of this plugin")
    parser.add_argument("--node", metavar="NODE", help="only the Pods of plugins for this node")
    parser.add_argument("-f", "--follow", action="store_true", help="follow the logs")
    cluster.cluster_arguments(
        parser, everywhere=False, default="the context's, then status-reporter-RUN"
    )


def run(options: argparse.Namespace) -> int:
    """Find the Pods, print, and return the exit code."""
    try:
        api, found, name = named_run(options)
        logs = Logs(api, found, name, options)
        logs.follow() if options.follow else logs.print_all()
    except KubeError as error:
        raise CannotTell(cluster.said(error)) from None
    return GOOD


class _Container(NamedTuple):
    """What writes one log; `made` is another one after a restart, and in a new Pod of that name."""

    pod: str
    name: str
    made: str


class Logs:
    """The logs of one run."""

    def __init__(
        self, api: "KubeApi", namespace: str, run: str, options: argparse.Namespace
    ) -> None:
        self._api, self._namespace, self._run = api, namespace, run
        self._options, self._plugin, self._node = options, options.plugin, options.node
        self._lock = threading.Lock()

    def print_all(self) -> None:
        """Print what there is, one container after the other. Raises KubeError, CannotTell."""
        containers = list(self._containers())
        if not containers:
            raise CannotTell(
                f"no Pod of run {self._run} fits; the logs of deleted ones are in the results, "
                f"below podlogs/: status-ctl retrieve {self._run}"
            )
        for each in containers:
            try:
                self._print(each, follow=False)
            except (NotFound, InvalidRequest) as error:
                # Pods of plugins go while we print; that costs no other's lines.
                tell(f"[{each.pod}/{each.name}] {cluster.words(error)}")

    def follow(self) -> None:
        """Print lines as they come, until the run is over. Raises KubeError."""
        run = asked_there(self._options, self._namespace, self._run)
        threads: dict[_Container, threading.Thread] = {}
        while True:
            look = run.look(entries=False)
            for each in self._containers():
                if each not in threads:
                    # Daemons: the aggregator's own log ends only with its Pod.
                    threads[each] = threading.Thread(target=self._follow, args=(each,), daemon=True)
                    threads[each].start()
            if look.document is not None and over(look.document):
                end = time.monotonic() + _LAST_WORDS
                for each, thread in threads.items():
                    if each.pod != f"{self._run}-0":
                        thread.join(max(end - time.monotonic(), 0.0))
                return
            time.sleep(_PAUSE)

    def _containers(self) -> Iterator[_Container]:
        """Yield all that have begun to write and were asked for."""
        for pod in self._api.list_all("Pod", self._namespace, selector(self._run)):
            if not self._wanted(pod):
                continue
            name = text(section(pod, "metadata"), "name")
            for kind in ("initContainerStatuses", "containerStatuses"):
                for container in items(section(pod, "status"), kind):
                    begun = "waiting" not in section(container, "state")
                    if begun or section(container, "lastState"):
                        yield _Container(
                            name, text(container, "name"), text(container, "containerID")
                        )

    def _wanted(self, pod: Mapping[str, Any]) -> bool:
        if self._plugin is None and self._node is None:
            return True
        key = key_of(pod)
        if key is None:
            return False
        fits = self._plugin in {None, key.plugin}
        return fits and (self._node is None or (key.node == self._node != GLOBAL))

    def _follow(self, container: _Container) -> None:
        try:
            self._print(container, follow=True)
        except KubeError as error:
            with self._lock:
                tell(f"[{container.pod}/{container.name}] {error}")

    def _print(self, container: _Container, *, follow: bool) -> None:
        rest = b""
        stream = self._api.stream_log(
            self._namespace,
            container.pod,
            container.name,
            follow=follow,
            silence=None if follow else 30.0,
        )
        for piece in stream:
            *lines, rest = (rest + piece).split(b"\n")
            self._put(container, lines)
            if len(rest) > _LONGEST:
                self._put(container, [rest])
                rest = b""
        if rest:
            self._put(container, [rest])

    def _put(self, container: _Container, lines: list[bytes]) -> None:
        with self._lock:
            for line in lines:
                written = line.decode(errors="replace")
                indent = written[: len(written) - len(written.lstrip(" "))]
                sys.stdout.write(
                    f"[{container.pod}/{container.name}] {indent}{clean(written, _LONGEST)}\n"
                )
            sys.stdout.flush()
