"""The Job that is made of a definition, and its parts as tests look at them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reporter.launch.job import job
from reporter.run.definition import Definition
from reporter.run.launch_file import Launch
from tests.plugin_launches import PLACE, definition, launch_of, plugin_of

Object = dict[str, Any]


def made(situation: str, *, index: int = 3, timeout: int = 600, **changes: Any) -> Object:
    """The Job of a definition, on the first node where it has nodes."""
    found = replace(definition(situation), **changes)
    return made_of(found, launch_of(found), index=index, timeout=timeout)


def made_of(found: Definition, launch: Launch, *, index: int = 3, timeout: int = 600) -> Object:
    plugin = plugin_of(found)
    return job(PLACE, launch, plugin, plugin.keys[0], index=index, timeout=timeout)


def pod_of(job: Object) -> Object:
    return job["spec"]["template"]["spec"]


def container(pod: Object, name: str) -> Object:
    both = [*pod.get("initContainers", []), *pod["containers"]]
    (found,) = (each for each in both if each["name"] == name)
    return found


def environ(found: Object) -> dict[str, str]:
    """A container's variables; those that Kubernetes fills in as the field they come from."""
    pairs = [
        (each["name"], each.get("value") or each["valueFrom"]["fieldRef"]["fieldPath"])
        for each in found.get("env", [])
    ]
    assert len(dict(pairs)) == len(pairs), "a variable appears twice"
    return dict(pairs)


def mounts(found: Object) -> dict[str, str]:
    return {each["mountPath"]: each["name"] for each in found.get("volumeMounts", [])}


def volume(pod: Object, name: str) -> Object:
    (found,) = (each for each in pod["volumes"] if each["name"] == name)
    return found


OURS = ("status-reporter", "status-worker")
