"""`status-ctl logs`: what the containers of a run have written, of all its Pods at once."""

import argparse
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from random import random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reporter.cli import cluster
from reporter.cli.exits import GOOD, CannotTell
from reporter.cli.output import tell
from reporter.common.objects import Object, View, items, section, text
from reporter.common.retry import next_delay
from reporter.common.text import clean
from reporter.errors import InvalidRequest, KubeError, NotFound, Unavailable
from reporter.run.names import key_of, selector
from reporter.run.plan import GLOBAL
from reporter.run.view import over
from reporter.runctl import origin
from reporter.runctl.cluster_run import ByCluster, named_run
from reporter.runctl.follow import Deadline, Looks, once
from reporter.runctl.log_lines import LONGEST, LogLines
from reporter.runctl.spec import CONTAINER

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

DESCRIPTION = """\
Prints the logs of a run's Pods. Each line is prefixed with its Pod and container. With -f it
follows the logs, including those of Pods that start later, until the run is over.

Pods of finished plugins are usually deleted; their logs are in the results, below podlogs/.

exit codes:
  0    the logs were printed
  2    usage error
  4    cannot tell: not reachable, forbidden, no such run, no matching Pod, the run was deleted
  130  Ctrl-C"""

_FIRST: Final = 0.5  # seconds before a stream that was cut is opened again, at first and at most
_LATEST: Final = 30.0
_LAST_WORDS: Final = 5.0  # seconds for what is still on its way when the run is over
_RESTARTED: Final = "was restarted; the rest of its log: kubectl logs {} --previous"


def arguments(parser: argparse.ArgumentParser) -> None:
    origin.run_arguments(parser)
    parser.add_argument("--plugin", metavar="PLUGIN", help="only the Pods of this plugin")
    parser.add_argument("--node", metavar="NODE", help="only the Pods of plugins for this node")
    parser.add_argument("-f", "--follow", action="store_true", help="follow the logs")


def run(options: argparse.Namespace) -> int:
    """Find the Pods, print, and return the exit code."""
    with cluster.asking():
        api, found, name = named_run(options)
        logs = Logs(api, found, name, options.plugin, options.node)
        logs.follow() if options.follow else logs.print_all()
    return GOOD


class _Container(NamedTuple):
    """What writes one log; `made` is another one after a restart, and in a new Pod of that name."""

    pod: str
    name: str
    made: str
    aggregators: bool


class Logs:
    """The logs of one run."""

    def __init__(
        self, api: "KubeApi", namespace: str, run: str, plugin: str | None, node: str | None
    ) -> None:
        self._api, self._namespace, self._run = api, namespace, run
        self._plugin, self._node = plugin, node
        self._lock, self._over = threading.Lock(), threading.Event()

    def print_all(self) -> None:
        """Print what there is, one container after the other. Raises KubeError, CannotTell."""
        containers = list(self._containers())
        if not containers:
            raise CannotTell(
                f"no Pod of run {self._run} matches; the logs of deleted Pods are in the results, "
                f"below podlogs/: status-ctl retrieve {self._run}"
            )
        for each in containers:
            try:
                self._print(each)
            except (NotFound, InvalidRequest) as error:
                # Pods of plugins go while we print; that costs no other's lines.
                tell(f"{self._whose(each)} {cluster.words(error)}")

    def follow(self) -> None:
        """Print lines as they come, until the run is over. Raises KubeError."""
        run = ByCluster(self._api, [self._namespace], self._run)
        threads: dict[_Container, threading.Thread] = {}
        say = once()
        # What is in the way of looks is in the way of the logs, too, and said of them.
        for look in Looks(run, Deadline(None), entries=False, say=lambda _: None):
            try:
                found, trouble = list(self._containers()), ""
            except Unavailable as error:
                found, trouble = [], f"{cluster.words(error)}; waiting"
            say(trouble)
            for each in found:
                if each not in threads:
                    # Daemons: the aggregator's own log ends only with its Pod.
                    threads[each] = threading.Thread(target=self._follow, args=(each,), daemon=True)
                    threads[each].start()
            if look.document is not None and over(look.document):
                break
        self._over.set()
        end = time.monotonic() + _LAST_WORDS
        for each, thread in threads.items():
            if not each.aggregators:
                thread.join(max(end - time.monotonic(), 0.0))

    def _containers(self) -> Iterator[_Container]:
        """Yield all that have begun to write and were asked for."""
        for pod in self._api.list_all("Pod", self._namespace, selector(self._run)):
            if not self._wanted(pod):
                continue
            name = View(pod).name
            for container in _statuses(pod):
                begun = "waiting" not in section(container, "state")
                if begun or section(container, "lastState"):
                    made = text(container, "containerID")
                    own = key_of(pod) is None  # no plugin's
                    yield _Container(name, text(container, "name"), made, own)

    def _wanted(self, pod: Object) -> bool:
        if self._plugin is None and self._node is None:
            return True
        key = key_of(pod)
        if key is None:
            return False
        fits = self._plugin in {None, key.plugin}
        return fits and (self._node is None or (key.node == self._node != GLOBAL))

    def _follow(self, container: _Container) -> None:
        """Print a log as it comes; a stream that is cut goes on where it was, a little later."""
        lines, tries = LogLines(), 0
        while True:
            lines.begin()
            whole = True
            try:
                for piece in self._stream(container, follow=True, since=lines.since, silence=None):
                    if found := lines.take(piece):
                        tries = 0
                        self._put(container, found)
                self._put(container, lines.flush())
            except Unavailable:
                whole = False
            except KubeError as error:
                with self._lock:
                    tell(f"{self._whose(container)} {error}")
                return
            over, runs = self._over.is_set(), self._runs(container, whole=whole)
            if runs is None or (whole and (over or not runs)):
                return
            tries += 1
            self._over.wait(next_delay(tries, random, first=_FIRST, longest=_LATEST))
            if over:
                time.sleep(_FIRST)  # no wait for what has come about already

    def _runs(self, container: _Container, *, whole: bool) -> bool | None:
        """Return whether it runs, or has ended; None once its log is another one's or gone.

        Of a log that has not come as a `whole` it is said where the rest is.
        """
        try:
            pod = self._api.get("Pod", self._namespace, container.pod, timeout=cluster.TIMEOUT)
        except NotFound:
            return None
        except KubeError:
            return True  # while nobody says otherwise
        for found in _statuses(pod):
            if text(found, "name") != container.name:
                continue
            if text(found, "containerID") == container.made:
                return not section(found, "state", "terminated")
            before = section(found, "lastState", "terminated")
            if text(before, "containerID") == container.made and not whole:
                where = f"-n {self._namespace} {container.pod} -c {container.name}"
                with self._lock:
                    tell(f"{self._whose(container)} {_RESTARTED.format(where)}")
        return None

    def _print(self, container: _Container) -> None:
        lines = LogLines()
        for piece in self._stream(container):
            self._put(container, lines.take(piece))
        self._put(container, lines.flush())

    def _stream(self, container: _Container, **more: Any) -> Iterable[bytes]:
        pod, name = container.pod, container.name
        return self._api.stream_log(self._namespace, pod, name, stamped=True, **more)

    def _whose(self, container: _Container) -> str:
        # `sonobuoy retrieve` finds the aggregator by the name of its container, people do not.
        ours = container.aggregators and container.name == CONTAINER
        return f"[{container.pod}/{'aggregator' if ours else container.name}]"

    def _put(self, container: _Container, lines: list[bytes]) -> None:
        whose = self._whose(container)
        with self._lock:
            for line in lines:
                written = line.decode(errors="replace")
                indent = written[: len(written) - len(written.lstrip(" "))]
                sys.stdout.write(f"{whose} {indent}{clean(written, LONGEST)}\n")
            sys.stdout.flush()


def _statuses(pod: Object) -> Iterator[Object]:
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from items(section(pod, "status"), kind)
