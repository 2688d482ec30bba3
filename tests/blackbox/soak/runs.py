"""The runs of a soak: started and watched by the command line, disturbed, retrieved, deleted."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Self

import yaml

from tests.bed.api import ApiError
from tests.bed.containers import log_lines
from tests.bed.images import BUSYBOX_IMAGE
from tests.bed.node import PROJECT, Node
from tests.bed.product_image import PRODUCT_IMAGE
from tests.blackbox.scenarios.recorder import Recorder, Seen
from tests.blackbox.soak.disks import damage, fill, freeze
from tests.blackbox.soak.draw_runs import START_SECONDS, Fault, Plan, Plugin, draw
from tests.blackbox.soak.faults import Faults
from tests.blackbox.soak.found import Contradiction
from tests.blackbox.soak.run_model import ACKNOWLEDGED, Lived, World, allowed, history, of_run

Object = dict[str, Any]
Done = subprocess.CompletedProcess[str]

AGGREGATOR = "kube-sonobuoy"
SHARED = "soak-shared"
FOREIGN = "configmap,secret,serviceaccount,job"
VOLUME = "jsonpath={.items[*].spec.volumeName}"
RUN, PLUGIN = "status-reporter.io/run", "status-reporter.io/plugin"
COMMAND = (sys.executable, str(PROJECT / "cmd" / "status-ctl.py"))
COMMAND_SECONDS, BACK_SECONDS = 240.0, 120.0
"""For a command, and for an aggregator that was killed to be back."""
COLLECTED_SECONDS = 30.0
"""Until Kubernetes' garbage collector has removed what belonged to what was deleted."""


class Runs:
    """Runs with some plugins each, in namespaces of their own and in one with foreign objects."""

    def __init__(self, node: Node, faults: Faults, seed: str, at_once: int, folder: Path) -> None:
        self.node, self.faults, self.seed, self.at_once = node, faults, seed, at_once
        self.folder, self.controlplane = folder, node.controlplane
        self.recorder = Recorder(node.controlplane.api, node)
        self.counts: Counter[str] = Counter()
        self.over = threading.Event()
        self.commands: set[subprocess.Popen[str]] = set()

    def __enter__(self) -> Self:
        self.recorder.__enter__()
        kubectl, place = self.controlplane.kubectl, ("-n", SHARED)
        kubectl("create", "namespace", SHARED)
        for kind in ("configmap", "serviceaccount", "secret generic"):
            kubectl("create", *kind.split(), "drawn", *place)
        kubectl("create", "job", "drawn", f"--image={BUSYBOX_IMAGE}", *place, "--", "true")
        kubectl("wait", "job/drawn", *place, "--for=condition=Complete", "--timeout=2m")
        kubectl("label", FOREIGN, "drawn", *place, f"{RUN}=drawn", f"{PLUGIN}=p0")
        self._foreign = self._see_foreign()
        return self

    def __exit__(self, *details: object) -> None:
        self.recorder.__exit__(*details)

    def stop(self) -> None:
        """End the commands and what waits for their runs."""
        self.over.set()
        for command in self.commands.copy():
            command.kill()

    def play(self, number: int) -> None:
        """Start a run, disturb it, wait for its end, judge it, and delete it."""
        plan = draw(self.seed, number)
        folder = self.folder / plan.name
        folder.mkdir(parents=True)
        game = Game(self, plan, folder)
        try:
            game.play()
        except (Contradiction, TimeoutError, subprocess.SubprocessError) as error:
            raise Contradiction("\n".join([str(error), *game.report()])) from None
        shutil.rmtree(folder)
        self.counts["runs"] += 1
        done = [f"{fault.what} {fault.whom}" for fault, _, _ in game.done]
        self.counts.update(f"runs with {each}" for each in done or ["no fault"])

    def check_deleted(self, plan: Plan) -> None:
        """Find nothing that is labelled with a run, and everything foreign as it was."""
        named = self._kubectl("api-resources", "--verbs=list", "-o", "name").split()
        kinds = ",".join(sorted({*named} - {"events", "componentstatuses"}))
        labelled = ("get", kinds, "-A", "-l", f"{RUN}={plan.name}", "-o", "name")
        began = time.time()
        while left := self._kubectl(*labelled).split():
            if time.time() > began + COLLECTED_SECONDS + self.faults.seconds(began):
                break
            time.sleep(1)
        now = self._see_foreign()
        if left or now != self._foreign:
            told = ("get", kinds, *labelled[2:-1], "jsonpath={.items[*].metadata}")
            left.append(self._kubectl(*told))
            raise Contradiction(f"after delete: left {left}; foreign {self._foreign}, then {now}")

    def _see_foreign(self) -> str:
        """Names, identities and versions of what no run may touch."""
        columns = "K:.kind,N:.metadata.name,U:.metadata.uid,V:.metadata.resourceVersion"
        words = ("get", FOREIGN, "drawn", "-n", SHARED, "-o", f"custom-columns={columns}")
        return self._kubectl(*words)

    def _kubectl(self, *words: str) -> str:
        return self.faults.asking(lambda: self.controlplane.kubectl(*words))


class Game:
    """One run from its start to its end."""

    def __init__(self, runs: Runs, plan: Plan, folder: Path) -> None:
        self._runs, self._plan, self._folder = runs, plan, folder
        self._namespace = SHARED if plan.shared else f"status-reporter-{plan.name}"
        self._it = (f"run/{plan.name}", "-n", self._namespace)
        self._began = time.time()
        environment = {"KUBECONFIG": str(runs.controlplane.kubeconfig), "PATH": "/usr/bin:/bin"}
        environment |= {"STATUS_CTL_IMAGE": PRODUCT_IMAGE, "XDG_STATE_HOME": str(folder)}
        environment["PYTHONPATH"] = str(PROJECT)  # not what is installed
        self._how: Any = {"env": environment, "cwd": folder, "text": True}
        self._said: list[str] = []
        self._documents: list[Object] = []
        self._reached: dict[str, float] = {}
        self._deleted = self._lost = False
        self.done: list[tuple[Fault, float, float]] = []

    def play(self) -> None:
        """Play it; raises Contradiction."""
        (self._folder / "plugins.yaml").write_text(
            yaml.safe_dump_all(each.definition for each in self._plan.plugins)
        )
        storage = "1Gi" if self._plan.claim else "none"
        place = ("-n", SHARED) if self._plan.shared else ()
        words = ("run", "-f", "plugins.yaml", "--name", self._plan.name, "--storage", storage)
        if self._command(*words, *place).returncode:
            # A node is ready again some time after what it missed.
            if not self._runs.faults.between(self._began - BACK_SECONDS, time.time()):
                raise Contradiction("the run was not started")
            self._succeed("delete", *self._it, "--yes", codes=(0, 4))
            return
        self._follow()
        if not self._deleted:
            self._judge()
        self._succeed("delete", *self._it, *(("--yes",) if self._deleted else ()))
        self._runs.check_deleted(self._plan)

    def _sick(self) -> float:
        """Seconds in which something was done to the whole cluster."""
        return self._runs.faults.seconds(self._began)

    def _command(self, *words: str) -> Done:
        how = self._how | {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [*COMMAND, *words]
        with subprocess.Popen(command, **how) as running:
            self._runs.commands.add(running)
            try:
                out, err = running.communicate(timeout=COMMAND_SECONDS)
            finally:
                running.kill()
                self._runs.commands.discard(running)
        code = running.returncode
        self._said.append(f"{_clock(time.time())} {' '.join(words)}: {code} {err[-600:].strip()}")
        return Done(command, code, out, err)

    def _succeed(self, *words: str, codes: tuple[int, ...] = (0,)) -> Done:
        """Run a command; again where it cannot tell and something is away on purpose."""
        began, left = time.time(), False
        while (done := self._command(*words)).returncode not in codes:
            if left and f"run {self._plan.name!r} not found" in done.stderr:
                break  # what a delete has left is gone
            left = f"something of run {self._plan.name} is left" in done.stderr
            if self._runs.over.is_set():
                raise InterruptedError(" ".join(words))
            end = began + BACK_SECONDS + self._runs.faults.seconds(began)
            if time.time() > end or not (self._sick() or (self.done and done.returncode == 4)):
                raise Contradiction(f"exit code {done.returncode} of {' '.join(words)}")
            time.sleep(1)
        return done

    def _follow(self) -> None:
        """Watch it to its end, and disturb it."""
        command = [*COMMAND, "watch", *self._it, "-o", "json"]
        stderr = self._folder / "watch.stderr"
        how = self._how | {"stdout": subprocess.PIPE}
        with stderr.open("w") as told, subprocess.Popen(command, stderr=told, **how) as watch:
            reader = threading.Thread(target=self._take, args=(watch.stdout,))
            reader.start()
            try:
                self._disturb(reader)
            finally:
                watch.kill()
                reader.join()
                self._said.append(f"watch: {watch.wait()} {stderr.read_text()[-600:]}")

    def _disturb(self, reader: threading.Thread) -> None:
        pending = list(self._plan.faults)
        bound = sum(each.timeout + 120 for each in self._plan.plugins) + START_SECONDS
        self._reached["started"] = time.time()
        while not self._deleted:
            if not reader.is_alive() and "over" not in self._reached:
                raise Contradiction("the command that watches ended before the run")
            now = time.time()
            if self._runs.over.is_set():
                raise InterruptedError("the soak is over")
            if now > self._began + bound + BACK_SECONDS * len(self.done) + self._sick():
                raise Contradiction("the run does not end")
            due = [each for each in pending if each.step in self._reached]
            if "over" in self._reached and not due:
                return
            for fault in due:
                ripe = now >= self._reached[fault.step] + fault.after
                if ripe and (self._do(fault) or "over" in self._reached):
                    pending.remove(fault)
            time.sleep(0.3)

    def _take(self, lines: Iterable[str]) -> None:
        for document in map(json.loads, lines):
            if document.get("partial"):
                # The annotation alone, while nobody can reach the aggregator; it knows the end.
                if document["final"]:
                    self._reached.setdefault("over", time.time())
                continue
            self._documents.append(document)
            running = [each["status"] == "running" for each in document["plugins"]]
            reached = {"one decided": not all(running), "all decided": not any(running)}
            for step, true in {**reached, "over": document["final"]}.items():
                if true:
                    self._reached.setdefault(step, time.time())

    def _do(self, fault: Fault) -> bool:
        """Do what was drawn; False where there is nobody yet, or no more, to do it to."""
        began, plugin = time.time(), self._plan.plugins[fault.place]
        with suppress(LookupError, OSError, ValueError, ApiError, subprocess.CalledProcessError):
            match fault.what, fault.whom:
                case "end", "run":
                    only = ("--plugin", plugin.name) if fault.of_plugin else ()
                    self._succeed("stop", *self._it, *only)
                case _, "run":
                    self._deleted = True  # by whoever plays it
                case _, "reader":
                    self._take([self._command("status", *self._it, "-o", "json").stdout])
                case "damage", "disk":
                    damage(self._disk(), self._documents[-1]["plugins"][fault.place]["digest"])
                case what, "disk":
                    {"fill": fill, "freeze": freeze}[what](self._disk(), fault.seconds)
                case "delete", "aggregator":
                    self._remove("pod", self._pod(None)["name"])
                    self._lost |= not self._plan.claim
                case "delete", "pod":
                    self._remove("pod", self._pod(plugin)["name"])
                case "delete", _:
                    (owner,) = self._pod(plugin)["ownerReferences"]
                    self._remove(owner["kind"], owner["name"])
                case _, "aggregator":
                    self._signal(fault, self._pod(None)["name"], AGGREGATOR)
                case _:
                    self._signal(fault, self._pod(plugin)["name"], plugin.worker)
            self.done.append((fault, began, time.time()))
            return True
        return False

    def _disk(self) -> Path:
        words = ("get", "pvc", "-n", self._namespace, "-l", f"{RUN}={self._plan.name}")
        ask = partial(self._runs.controlplane.kubectl, *words, "-o", VOLUME)
        volume = self._runs.faults.asking(ask)
        return self._runs.controlplane.folder / "volumes" / volume.removeprefix("local-")

    def _remove(self, kind: str, name: str) -> None:
        words = ("delete", kind, name, "-n", self._namespace, "--wait=false")
        self._runs.faults.asking(lambda: self._runs.controlplane.kubectl(*words))

    def _signal(self, fault: Fault, pod: str, container: str) -> None:
        find = self._runs.node.container_pid
        pid = self._runs.faults.asking(lambda: find(self._namespace, pod, container))
        if fault.what != "stop":
            os.kill(pid, signal.SIGKILL if fault.what == "kill" else signal.SIGTERM)
            return
        os.kill(pid, signal.SIGSTOP)
        time.sleep(fault.seconds)
        with suppress(ProcessLookupError):  # the kubelet may have ended it
            os.kill(pid, signal.SIGCONT)

    def _pods(self, plugin: Plugin | None) -> list[list[Seen]]:
        """The versions of the Pods of a plugin, or of the aggregator."""
        wanted = (self._plan.name, plugin.name if plugin else None)
        found = []
        for seen in self._runs.recorder.pods_in(self._namespace):
            labels = seen[-1].object["metadata"].get("labels", {})
            found += [seen] if (labels.get(RUN), labels.get(PLUGIN)) == wanted else []
        return found

    def _pod(self, plugin: Plugin | None) -> Object:
        """The metadata of the Pod that runs, of a plugin or of the aggregator."""
        pods = self._pods(plugin)
        if not pods or pods[-1][-1].gone or pods[-1][-1].object["status"]["phase"] != "Running":
            raise LookupError(f"{plugin.name if plugin else 'the aggregator'} has no Pod")
        return dict(pods[-1][-1].object["metadata"])

    def _lived(self, plugin: Plugin) -> Lived:
        said: dict[str, float] = {}
        pods = self._pods(plugin)
        for pod, container in product(pods, ("main", plugin.worker)):
            log = self._runs.recorder.log(pod[-1].object, container)
            for line in log_lines("\n".join(log)):
                acknowledged = plugin.digest in line.text and '"status":200' in line.text
                said.setdefault(ACKNOWLEDGED if acknowledged else line.text, line.time_ns / 1e9)
        done = [each for each in self.done if self._plan.plugins[each[0].place] is plugin]
        ends = [each for each, _, _ in self.done if (each.what, each.whom) == ("end", "run")]
        ended = any(not each.of_plugin or self._plan.plugins[each.place] is plugin for each in ends)
        mine = [each for each in done if each[0].whom in {"worker", "pod", "job"}]
        stops = [ended - began for fault, began, ended in mine if fault.what == "stop"]
        damaged = any(fault.what == "damage" for fault, _, _ in done)
        return Lived(said, len(pods), len(mine) > len(stops), sum(stops), damaged, ended)

    def _world(self) -> World:
        """When the aggregator was away: from a fault to the moment that it was ready again."""
        away = []
        for fault, began, ended in self.done:
            if fault.whom in {"aggregator", "disk"}:
                later = [v for seen in self._pods(None) for v in seen if v.at >= began]
                down = [v.at for v in later if not _ready(v.object)]
                up = [v.at for v in later if down and v.at > down[0] and _ready(v.object)]
                away.append((began, max(ended, up[0]) if up else time.time() if down else ended))
        return World(tuple(away), self._lost, self._sick())

    def _judge(self) -> None:
        words = ("wait", *self._it, "--timeout", "3m", "-o", "json")
        end = time.time() + BACK_SECONDS
        waited = self._succeed(*words, codes=(0, 1))
        # What the annotations say, while the aggregator is just not there, is not all of it.
        while (last := json.loads(waited.stdout)).get("partial"):
            if time.time() > end + self._sick():
                raise Contradiction("the aggregator does not come back to say all of it")
            waited = self._succeed(*words, codes=(0, 1))
        self._documents.append(last)
        entries = {each["key"]: each for each in last["plugins"]}
        lived = {each.key: self._lived(each) for each in self._plan.plugins}
        world, code = self._world(), waited.returncode
        if (last["status"], last["result_status"], code) != of_run(last["plugins"]):
            raise Contradiction(f"the run's verdict is not that of its entries: {code}")
        for plugin in self._plan.plugins:
            entry, seen = entries[plugin.key], lived[plugin.key]
            verdict, right = (entry["status"], entry["result_status"]), allowed(plugin, seen, world)
            if entry["reason"] == "unreadable_result" and not seen.damaged:
                raise Contradiction(f"{plugin.key} is readable: {entry}")
            if verdict not in right:
                raise Contradiction(f"{plugin.key}: {verdict}; allowed: {sorted(right)}; {seen}")
            self._runs.counts["entries {}/{}".format(*verdict)] += 1
        wrong = history(self._plan, self._documents, lived, world)
        if wrong or len(entries) != len(lived):
            raise Contradiction(f"{wrong}; {len(entries)} entries")
        versions = [version.object["status"] for pods in self._pods(None) for version in pods]
        if "OOMKilled" in json.dumps(versions):
            raise Contradiction("the aggregator ran out of memory")
        self._check_tarball(last)

    def _check_tarball(self, last: Object) -> None:
        digests = set()
        for name in ("first", "second"):
            self._succeed("retrieve", *self._it, "-f", name)
            digests.add(hashlib.sha256((self._folder / name).read_bytes()).hexdigest())
        if digests != {last["tar-info"]["sha256"]}:
            if self._lost:
                return  # it was deleted without a volume after the run's end
            raise Contradiction(f"not one tarball: {digests}, {last['tar-info']}")
        held: dict[str, list[str]] = defaultdict(list)
        with tarfile.open(self._folder / "first") as packed:
            for member in packed:
                match member.name.split("/"):
                    case "plugins", name, "results", node, *_ if data := packed.extractfile(member):
                        digest = hashlib.file_digest(data, "sha256").hexdigest()
                        held[f"{name}/{node}"].append(digest)
                    case "plugins", name, "errors", node, "error.json":
                        held[f"{name}/{node}"].append("error")
        complete = {each["key"]: each["status"] == "complete" for each in last["plugins"]}
        for plugin in self._plan.plugins:
            files = [plugin.digest] * (1 + plugin.folder) if plugin.says else []
            right = files if complete[plugin.key] else ["error"]
            if held[plugin.key] != right:
                raise Contradiction(f"{plugin.key} in the tarball: {held[plugin.key]}, not {right}")

    def report(self) -> Iterator[str]:
        """All that is known of the run, in order."""
        yield f"seed {self._runs.seed}, {self._plan}\n{self._world()}\n{self.done}"
        yield from map(str, self._runs.faults.between(self._began - 60, time.time()))
        shown: dict[str, Object] = {}
        for document in self._documents:
            for entry in [{**document, "key": "run", "plugins": ""}, *document["plugins"]]:
                new = dict.fromkeys(("last-heartbeat", "time", "revision"))
                told = {**entry, **new}
                if shown.get(entry["key"]) != told:
                    yield f"{document['time']} r{document['revision']} {told}"
                    shown[entry["key"]] = told
        for plugin in (*self._plan.plugins, None):
            for seen in self._pods(plugin):
                pod, gone = seen[-1].object, seen[-1].gone
                yield f"{_clock(seen[0].at)} to {_clock(seen[-1].at)} gone={gone} {pod['status']}"
                for container in ("main", "status-reporter", "status-worker", AGGREGATOR):
                    log = self._runs.recorder.log(pod, container)
                    yield from (f"  {container}: {line}" for line in log[-80:])
        yield from self._said


def _ready(pod: Object) -> bool:
    return [each["ready"] for each in pod["status"].get("containerStatuses", [])] == [True]


def _clock(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%H:%M:%S.%f")[:-3]
