"""A run of one plugin whose Pods are made by one DaemonSet, and those Pods."""

from reporter.core.launch import names
from reporter.core.run.plan import Key, Plugin
from reporter.core.run.record import Cause
from tests.unit.core.launch.cluster import (
    NODE1,
    NODE2,
    Launcher,
    api_daemon_pod,
    api_daemon_set,
    definition,
    ended,
    run_of,
    running,
    waiting,
)

LOST, POD_FAILED, START_FAILED = Cause.LOST, Cause.POD_FAILED, Cause.START_FAILED
SET = names.shared_name("r", "disk")
SHARED = Key("disk", "*")
BOTH = (NODE1, NODE2)
UP = {"sets": [api_daemon_set()]}


def daemons(contract="done-file", nodes=("node1", "node2"), most=200, **fields):
    """A run of one plugin with a DaemonSet."""
    made = definition("disk", contract, driver="Node", dispatch="daemonset", **fields)
    return run_of(Plugin("disk", nodes), definitions=[made], most=most)


def begun(contract="done-file", **fields):
    """Its containers have begun on both nodes."""
    launcher = Launcher(daemons(contract, **fields)).launch(*BOTH)
    return launcher.started(NODE1).started(NODE2)


def pod(key=NODE1, plugin=None, ours=None, **fields):
    """A Pod that runs unless said otherwise."""
    return api_daemon_pod(
        key, plugin or running(), ours or running(), **({"phase": "Running"} | fields)
    )


def crashed(code=1, restarts=3, state=None, **fields):
    """The plugin's container was restarted so often, and ended with that code the last time."""
    state = state or waiting("CrashLoopBackOff", "back-off 40s")
    shown = {"state": state, "restartCount": restarts, "lastState": ended(code)}
    return pod(plugin=shown, **fields)


POD1 = f"{SET}-node1-1"
LEAVING = {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
