"""A small run and the API objects of its plugins, with only what a test is about."""

from dataclasses import dataclass, field

from reporter.common.objects import stamp
from reporter.launch.decide import decide
from reporter.launch.seen import newest_pods, newest_refusals, read_event, read_job, read_pod
from reporter.launch.world import Decision, LaunchedRun, Memory, World
from reporter.run import names
from reporter.run.definition import Definition
from reporter.run.entry import Entry, fail, receive, start
from reporter.run.entry import launch as launched
from reporter.run.launch_file import Launch
from reporter.run.plan import GLOBAL, Key, Plan, Plugin
from reporter.run.record import Rank, Record

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
OWNER = "0a-config-map"
CHECK = Key("check", GLOBAL)
NODE1, NODE2 = Key("disk", "node1"), Key("disk", "node2")
LINKED = Key("linked", GLOBAL)
SONO = Key("sono", GLOBAL)


def definition(name, contract="result-file", **fields):
    """What to start for a plugin."""
    driver = fields.pop("driver", "Job")
    return Definition(
        name, driver, contract, {"spec": {"containers": [{"name": "main"}]}}, **fields
    )


def run_of(*plugins, definitions=None, most=200, **fields):
    """A run with these plugins, whose definitions are plain unless given."""
    given = {each.name: each for each in definitions or ()}
    made = tuple(given.get(each.name) or definition(each.name) for each in plugins)
    return LaunchedRun(
        Plan("r", plugins, **fields),
        Launch("ours:1", "r-plugin", made, max_nodes_at_once=most),
        OWNER,
    )


def check_run(contract="result-file", **fields):
    """A run of one plugin for the whole cluster."""
    made = definition("check", contract, **fields)
    return run_of(Plugin("check"), definitions=[made])


def api_job(key, *, run="r", owner=OWNER, uid="", conditions=(), **metadata):
    """A Job as the launcher makes it."""
    name = names.entry_name(run, key)
    return {
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "creationTimestamp": stamp(NOW),
            "annotations": names.annotations(key),
            "ownerReferences": [{"kind": "ConfigMap", "name": run, "uid": owner}],
            **metadata,
        },
        "status": {"conditions": list(conditions)},
    }


OURS = {"result-file": "status-reporter", "done-file": "status-worker"}


def api_pod(
    key,
    plugin=None,
    ours=None,
    *,
    contract="result-file",
    phase="Pending",
    node="node1",
    conditions=(),
    job_uid="",
    spec=None,
    status=None,
    **metadata,
):
    """The Pod of an entry; `plugin` and `ours` are the states of its two containers."""
    name = names.entry_name("r", key)
    declared, shown = [{"name": "main"}], []
    init, init_shown = [], []
    if contract == "done-file":
        declared.insert(0, {"name": "status-worker"})
        shown += [{"name": "status-worker", "state": ours}] if ours else []
    elif contract == "result-file":
        init.append({"name": "status-reporter", "restartPolicy": "Always"})
        init_shown += [{"name": "status-reporter", "state": ours}] if ours else []
    shown += (
        [{"name": "main", **(plugin if "state" in plugin else {"state": plugin})}] if plugin else []
    )
    return {
        "metadata": {
            "name": f"{name}-x7k2p",
            "uid": f"pod-{name}",
            "creationTimestamp": stamp(NOW),
            "labels": {
                names.PLUGIN_LABEL: key.plugin,
                "batch.kubernetes.io/job-name": name,
                "batch.kubernetes.io/controller-uid": job_uid or f"uid-{name}",
            },
            "annotations": {"kubectl.kubernetes.io/default-container": "main"},
            **metadata,
        },
        "spec": {
            "restartPolicy": "Never",
            "containers": declared,
            "initContainers": init,
            **({"nodeName": node} if node else {}),
            **(spec or {}),
        },
        "status": {
            "phase": phase,
            "containerStatuses": shown,
            "initContainerStatuses": init_shown,
            "conditions": list(conditions),
            **(status or {}),
        },
    }


def api_refusal(key, message, *, uid=""):
    """The Event that tells that a Job's Pod was refused."""
    name = names.entry_name("r", key)
    return {
        "reason": "FailedCreate",
        "message": message,
        "lastTimestamp": stamp(NOW),
        "involvedObject": {"kind": "Job", "name": name, "uid": uid or f"uid-{name}"},
    }


def waiting(reason, message=""):
    """The state of a container that waits."""
    return {"waiting": {"reason": reason, "message": message}}


def running(at=NOW):
    """The state of a container that runs."""
    return {"running": {"startedAt": stamp(at)}}


def ended(code=0, reason="", message="", *, began=NOW, at=NOW + 5):
    """The state of a container that has ended."""
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason or ("Completed" if code == 0 else "Error"),
            "message": message,
            "startedAt": stamp(began),
            "finishedAt": stamp(at),
        }
    }


def unscheduled(message, reason="Unschedulable"):
    """The condition of a Pod that no node takes."""
    return {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}


def world(run, jobs=(), pods=(), events=(), **fields):
    """What was seen, read from API objects."""
    read = [read_job(each) for each in jobs]
    seen = [found for each in pods if (found := read_pod(each, run.launch)) is not None]
    refusals = [found for each in events if (found := read_event(each)) is not None]
    return World(
        {each.name: each for each in read},
        newest_pods(seen),
        newest_refusals(refusals),
        **fields,
    )


@dataclass
class Launcher:
    """Decides again and again, and carries out on the entries what was decided."""

    run: LaunchedRun
    entries: dict = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    begun: bool = True
    now: float = NOW
    seen: World | None = None

    def __post_init__(self):
        self.entries = {key: Entry(key) for key in self.run.plan.keys} | self.entries

    def launch(self, *keys, at=NOW):
        """Their Jobs were created then."""
        for key in keys:
            self.entries[key] = launched(self.entries[key], at)
        return self

    def started(self, key, at=NOW):
        """The plugin's container has begun, as is stored."""
        self.entries[key] = start(self.entries[key], at, self.run.plan.timeout_of(key.plugin))
        return self

    def receive(self, key, verdict="passed", at=NOW):
        """Its result is in."""
        record = Record(Rank.RESULT, at, verdict=verdict)
        self.entries[key], _ = receive(self.entries[key], record, closed=False)
        return self

    def fail(self, key, failure):
        """It has failed."""
        self.entries[key], _ = fail(self.entries[key], failure, closed=False)
        return self

    def look(self, after, jobs=(), pods=(), events=(), **fields) -> Decision:
        """Decide that many seconds after the launch, and store what was decided.

        Until then it looks, as it must, whenever it said that it would.
        """
        while self.memory.next_look is not None and self.memory.next_look < NOW + after:
            self._look(self.memory.next_look)
        self.seen = world(self.run, jobs, pods, events, **fields)
        return self._look(NOW + after)

    def _look(self, now):
        self.now = now
        made = decide(self.run, self.entries, self.seen, self.memory, now=now, begun=self.begun)
        self.memory = made.memory
        for key, failure in made.fail.items():
            self.fail(key, failure)
        for key, at in made.start.items():
            self.started(key, at)
        return made

    def late(self, after) -> Decision:
        """Look at the same world again, but only then: it has missed what it had to do before."""
        return self._look(NOW + after)

    def restart(self):
        """The process has ended and begun again."""
        self.memory = Memory()
        return self
