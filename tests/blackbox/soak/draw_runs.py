"""What is drawn from the seed: a run, what each of its plugins does, and what happens to it.

The same seed and number give the same draw, whatever else is drawn or happens.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.bed.images import BUSYBOX_IMAGE
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE

START_SECONDS = 180
UPLOADS = """\
import base64, hashlib, json, os, signal, ssl, sys, time, urllib.request
signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
env = os.environ
says, after, prefix, fill, size, suffix, again, end = json.loads(env["DRAWN"])
tls = ssl.create_default_context(cafile=env["CA_CERT_FILE"])
tls.load_cert_chain(env["CLIENT_CERT_FILE"], env["CLIENT_KEY_FILE"])
node = "by-node/" + env["NODE_NAME"] if env["AGGREGATOR_SCOPE"] == "node" else "global"
to = "/".join((env["AGGREGATOR_URL"], "api/v1/results", node, env["RESULT_TYPE"]))
def put(word, body):
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    head = {"Content-Type": "text/plain", "Content-Digest": f"sha-256=:{digest}:"}
    status = 0
    while status in (0, 500, 503, 507):
        ask = urllib.request.Request(to, body, head, method="PUT")
        try:
            status = urllib.request.urlopen(ask, timeout=60, context=tls).status
        except OSError as error:
            status = getattr(error, "code", 0)
            time.sleep(1)
        print(word, status)
print("begin")
if says:
    time.sleep(after)
    print("write")
    put("wrote", (prefix + (fill * (size // len(fill) + 1))[:size] + suffix).encode())
    if again:
        put("second", b"another")
if end == "stay":
    signal.pause()
sys.exit(int(end.split()[1]))
"""
"""A plugin that uploads by the published protocol, without anything of the product's."""


@dataclass(frozen=True)
class Plugin:
    """A plugin with one result, and what its container does `after` so many seconds.

    `says` is what its result says: passed, failed, or nothing where it writes none. The result has
    `size` bytes made of the word `fill`; it may be a `folder` with two such files. `again`: another
    one is sent after it.
    """

    name: str
    contract: str
    per_node: bool
    order: int
    timeout: int
    cleanup: str
    folder: bool
    junit: bool
    says: str
    after: float
    fill: str
    size: int
    end: str
    again: bool

    @property
    def key(self) -> str:
        """The key of its entry."""
        return f"{self.name}/{Node.name if self.per_node else 'global'}"

    @property
    def worker(self) -> str:
        """The name of the container that is added, where one is."""
        return "status-reporter" if self.contract == "result-file" else "status-worker"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its file."""
        prefix, suffix = self._around
        filled = (self.fill * (self.size // len(self.fill) + 1))[: self.size]
        return hashlib.sha256(f"{prefix}{filled}{suffix}".encode()).hexdigest()

    @property
    def definition(self) -> dict[str, Any]:
        """Its definition."""
        main: dict[str, Any] = {"name": "main", "image": BUSYBOX_IMAGE}
        main["command"] = ["sh", "-c", "\n".join(self._script)]
        if self.contract == "link":
            prefix, suffix = self._around
            does = [self.says, self.after, prefix, self.fill, self.size, suffix, self.again]
            main |= {"image": PRODUCT_IMAGE, "command": ["python3", "-uc", UPLOADS]}
            main["env"] = [{"name": "DRAWN", "value": json.dumps([*does, self.end])}]
        spec: dict[str, Any] = {"driver": "Node" if self.per_node else "Job"}
        spec |= {"contract": self.contract, "order": self.order, "cleanup": self.cleanup}
        spec |= {"timeoutSeconds": self.timeout, "startTimeoutSeconds": START_SECONDS}
        spec |= {"resultFormat": "junit"} if self.junit else {}
        spec["template"] = {"spec": {"terminationGracePeriodSeconds": 5, "containers": [main]}}
        kind = {"apiVersion": "status-reporter.io/v1", "kind": "Plugin"}
        return {**kind, "metadata": {"name": self.name}, "spec": spec}

    @property
    def _around(self) -> tuple[str, str]:
        """What stands before and after the filling."""
        if self.contract == "result-file":
            status = "success" if self.says == "passed" else "failure"
            return f'{{"status": "{status}", "reason": "Drawn", "details": "', '"}'
        if not self.junit:
            return "", "end"
        bad = "<failure/>" if self.says == "failed" else ""
        cases = f'<testcase name="a"/><testcase name="b">{bad}</testcase>'
        return f"<testsuite>{cases}<system-out>", "</system-out></testsuite>"

    @property
    def _script(self) -> list[str]:
        lines = ["trap 'exit 143' TERM", "nap() { sleep $1 & wait $!; }", "echo begin"]
        if self.says:
            lines += [f"nap {self.after:.2f}", "echo write", *self._writes, "echo wrote"]
        return [*lines, "while :; do nap 60; done" if self.end == "stay" else self.end]

    @property
    def _writes(self) -> list[str]:
        prefix, suffix = self._around
        filled = f"yes {self.fill} | tr -d '\\n' | head -c {self.size}"
        write = f"{{ printf %s '{prefix}'; {filled}; printf %s '{suffix}'; }} >"
        if self.contract == "result-file":
            return [f"{write}/results/new; mv /results/new /results/adapter-result.json"]
        ready = "echo $RESULTS_DIR/a >$RESULTS_DIR/d; mv $RESULTS_DIR/d $RESULTS_DIR/done"
        if self.folder:
            return [f"cd $RESULTS_DIR; mkdir a; {write}a/a.xml; cp a/a.xml a/b.xml", ready]
        return [f"{write}$RESULTS_DIR/a", ready]


@dataclass(frozen=True)
class Fault:
    """What is done so many seconds after a step, and to whom: also of the plugin at a place."""

    what: str
    whom: str
    step: str
    after: float
    seconds: float
    place: int

    @property
    def of_plugin(self) -> bool:
        """Whether an end of the run is that of one plugin."""
        return self.seconds < 15


@dataclass(frozen=True)
class Plan:
    """A run. `shared`: in a namespace that it did not make; `claim`: its state is on a volume."""

    number: int
    plugins: tuple[Plugin, ...]
    shared: bool
    claim: bool
    faults: tuple[Fault, ...]

    @property
    def name(self) -> str:
        """The run's name."""
        return f"drawn-run-{self.number}"


def draw(seed: str, number: int) -> Plan:
    """Draw one run."""
    rng = random.Random(f"{seed}/run/{number}")
    plugins = tuple(_draw_plugin(rng, f"p{place}") for place in range(rng.choice((1, 2, 3, 4))))
    claim = rng.random() < 0.6
    times = range(rng.choice((0, 1, 1, 2, 2, 2)))
    faults = tuple(_draw_fault(rng, len(plugins), claim=claim) for _ in times)
    return Plan(number, plugins, rng.random() < 0.4, claim, faults)


def _draw_plugin(rng: random.Random, name: str) -> Plugin:
    contract = rng.choice(("result-file", "done-file", "link"))
    adapter, timeout = contract == "result-file", rng.choice((25, 40))
    says = rng.choice(("passed", "passed", "failed", ""))
    soon = (0.0, 0.0, rng.uniform(0, 6), rng.uniform(0, 6))
    return Plugin(
        name=name,
        contract=contract,
        per_node=rng.random() < 0.4,
        order=rng.choice((0, 0, 1)),
        timeout=timeout,
        cleanup=rng.choice(("always", "always", "success", "never")),
        folder=contract == "done-file" and rng.random() < 0.3,
        junit=not adapter and (says == "failed" or rng.random() < 0.3),
        says=says,
        after=rng.choice((*soon, timeout + 8.0)),
        fill=f"{rng.randrange(16**8):08x}",
        size=rng.choice((0, 0, rng.randrange(900_000 if adapter else 9_000_000))),
        end=rng.choice(("exit 0", "exit 0", "exit 3", "stay")),
        again=contract == "link" and rng.random() < 0.5,
    )


def _draw_fault(rng: random.Random, many: int, *, claim: bool) -> Fault:
    others = ("pod", "job", "reader", "run", "run", *(("disk",) * 4 if claim else ()))
    whom = rng.choice(("aggregator",) * 8 + ("worker",) * 3 + others)
    whats = {
        "aggregator": ("kill", "stop", "end", "delete"),
        "worker": ("kill", "stop", "end"),
        "reader": ("second",),
        "run": ("delete", "end", "end"),
        "disk": ("fill", "freeze", "damage", "damage"),
    }
    what = rng.choice(whats.get(whom, ("delete",)))
    steps = ("started", *["one decided"] * 3, "all decided", "over")
    # What belongs to a plugin is gone soon after its result.
    step = "started" if whom in {"worker", "pod", "job"} else rng.choice(steps)
    after = rng.choice((0.0, rng.uniform(0, 2), rng.uniform(0, 15)))
    return Fault(what, whom, step, after, rng.uniform(1, 30), rng.randrange(many))
