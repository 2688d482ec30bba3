"""Manifests made up by a seed: valid Jobs of all kinds, laid out as nobody would, but could."""

import json
import random
from typing import Any

import yaml

COUNT = 200


def generated(seed: int) -> str:
    """Return a stream of documents; the same for the same seed."""
    chance = random.Random(seed)
    documents = [_document(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    stream = "".join(
        ("---\n" if at or chance.random() < 0.3 else "") + each for at, each in enumerate(documents)
    )
    if chance.random() < 0.2:
        stream = stream.rstrip("\n")
    return stream.replace("\n", "\r\n") if chance.random() < 0.1 else stream


def _document(chance: random.Random) -> str:
    kind = chance.choice(("Job", "Job", "Job", "CronJob", "CronJob", "List", "JobSet", "ConfigMap"))
    value = _object(chance, kind)
    style = chance.random()
    if style < 0.1:
        return json.dumps(value, indent=chance.choice((None, 1, 2, 4))) + "\n"
    if style < 0.2:
        return yaml.safe_dump(value, sort_keys=chance.random() < 0.5, width=40)
    return _Layout(chance).text(value)


def _object(chance: random.Random, kind: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": f"x{chance.randrange(1000)}"}
    if chance.random() < 0.3:
        metadata["labels"] = {"app": "x", **({"on": "true"} if chance.random() < 0.5 else {})}
    if chance.random() < 0.3:
        metadata["annotations"] = {
            "note": chance.choice(("a: b", "# no", "Job", "é 🎉", "two\nlines"))
        }
    if kind == "ConfigMap":
        return _mixed(chance, {"apiVersion": "v1", "kind": kind, "metadata": metadata})
    if kind == "List":
        inner = [_object(chance, chance.choice(("Job", "CronJob", "ConfigMap"))) for _ in range(2)]
        return {"apiVersion": "v1", "kind": "List", "items": inner}
    if kind == "JobSet":
        part = {"name": "part", "template": {"spec": _job(chance)}}
        version = "jobset.x-k8s.io/v1alpha2"
        spec: dict[str, Any] = {"replicatedJobs": [part]}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    spec = _job(chance)
    if kind == "CronJob":
        template: dict[str, Any] = {"spec": spec}
        if chance.random() < 0.3:
            template["metadata"] = chance.choice(({}, {"labels": {"a": "b"}}))
        spec = _mixed(chance, {"schedule": "*/5 * * * *", "jobTemplate": _mixed(chance, template)})
    whole = {"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": spec}
    return _mixed(chance, whole)


def _job(chance: random.Random) -> dict[str, Any]:
    names = chance.sample(
        ("main", "second", "istio-proxy", "third"), chance.choice((1, 1, 1, 2, 3))
    )
    pod: dict[str, Any] = {
        "restartPolicy": chance.choice(("Never", "OnFailure")),
        "containers": [_container(chance, name) for name in names],
    }
    volumes = [
        {"name": mount["name"], "emptyDir": {}}
        for each in pod["containers"]
        for mount in each.get("volumeMounts", [])
    ]
    if volumes or chance.random() < 0.3:
        pod["volumes"] = list({each["name"]: each for each in volumes}.values())
    if chance.random() < 0.3:
        pod["initContainers"] = [
            _container(chance, f"init{n}", mounts=False) for n in range(chance.randrange(3))
        ]
    for key, value in {
        "serviceAccountName": "mine",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsUser": chance.choice((0, 1000)), "fsGroup": 1},
        "activeDeadlineSeconds": chance.randrange(1, 4000),
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
    }.items():
        if chance.random() < 0.2:
            pod[key] = value
    if chance.random() < 0.1:
        pod["hostNetwork"] = True
    template: dict[str, Any] = {"spec": _mixed(chance, pod)}
    if chance.random() < 0.3:
        template["metadata"] = chance.choice(({}, {"labels": {"status-reporter.io/plugin": "p"}}))
    spec: dict[str, Any] = {"template": _mixed(chance, template)}
    for key, value in {"backoffLimit": 0, "activeDeadlineSeconds": 600, "parallelism": 2}.items():
        if chance.random() < 0.2:
            spec[key] = value
    return _mixed(chance, spec)


def _container(chance: random.Random, name: str, *, mounts: bool = True) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "image": "busybox:1.37"}
    if chance.random() < 0.5:
        made["command"] = [
            "sh",
            "-c",
            chance.choice(("true", "echo a\necho b\n", "a\n\n\nb", ": x")),
        ]
    if chance.random() < 0.3:
        made["env"] = [{"name": "A", "value": chance.choice(("1", "yes", "", "a #b", "- x"))}]
    if chance.random() < 0.2:
        port = chance.choice((80, 9464))
        made["ports"] = [{"containerPort": port}] if mounts else []
    if chance.random() < 0.3:
        made["resources"] = {}
    if mounts and chance.random() < 0.3:
        at = chance.choice(("/results", "/data", "/results/deeper"))
        made["volumeMounts"] = [{"name": chance.choice(("data", "results")), "mountPath": at}]
    return _mixed(chance, made)


def _mixed(chance: random.Random, value: dict[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in chance.sample(sorted(value), len(value))}


class _Layout:
    """Writes a value in a way of its own: columns, quotes, comments, empty lines, brackets."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._step = chance.choice((2, 2, 2, 3, 4))
        self._inset = chance.choice((0, 2))
        self._noise = chance.choice((0.0, 0.0, 0.1, 0.3))
        self._brackets = chance.choice((0.0, 0.0, 0.1, 0.3))

    def text(self, value: dict[str, Any]) -> str:
        return "".join(f"{line}\n" for line in self._mapping(value, 0))

    def _mapping(self, value: dict[str, Any], column: int) -> list[str]:
        return [line for key in value for line in self._member(key, value[key], column)]

    def _member(self, key: str, value: Any, column: int) -> list[str]:
        space = " " * column
        name = f"{space}{self._key(key)}:"
        before = self._between(column)
        if isinstance(value, (dict, list)) and (
            not value or self._chance.random() < self._brackets
        ):
            return [*before, f"{name} {self._flow(value)}{self._after()}"]
        if isinstance(value, dict):
            inner = self._mapping(value, column + self._step)
            return [*before, f"{name}{self._after()}", *inner]
        if isinstance(value, list):
            return [*before, f"{name}{self._after()}", *self._items(value, column + self._inset)]
        return [*before, *self._scalar(f"{name} ", value, column)]

    def _items(self, value: list[Any], column: int) -> list[str]:
        lines: list[str] = []
        for each in value:
            lines += self._between(column)
            space = " " * column
            if isinstance(each, dict) and self._chance.random() >= self._brackets:
                gap = self._chance.choice((1, 1, 1, 3))
                inner = self._mapping(each, column + 1 + gap)
                while not inner[0].strip() or inner[0].lstrip().startswith("#"):
                    inner.pop(0)
                lines += [f"{space}-{' ' * gap}{inner[0].lstrip()}", *inner[1:]]
            elif isinstance(each, dict):
                lines.append(f"{space}- {self._flow(each)}{self._after()}")
            else:
                lines += self._scalar(f"{space}- ", each, column)
        return lines

    def _scalar(self, before: str, value: Any, column: int) -> list[str]:
        if isinstance(value, str) and "\n" in value and self._chance.random() < 0.7:
            *lines, rest = value.split("\n")
            shown = [f"{' ' * (column + 2)}{each}" if each else "" for each in lines]
            if rest:
                return [f"{before}|-", *shown, f"{' ' * (column + 2)}{rest}"]
            return [f"{before}|", *shown]
        return [f"{before}{self._plain(value)}{self._after()}"]

    def _flow(self, value: Any) -> str:
        gap = self._chance.choice(("", " "))
        if isinstance(value, dict):
            inner = ", ".join(
                f"{self._key(key)}: {self._flow(each)}" for key, each in value.items()
            )
            return f"{{{gap}{inner}{gap}}}" if value else "{}"
        if isinstance(value, list):
            return f"[{gap}{', '.join(map(self._flow, value))}{gap}]" if value else f"[{gap}]"
        return json.dumps(value, ensure_ascii=False)

    def _key(self, key: str) -> str:
        return json.dumps(key) if key in ("on",) or self._chance.random() < 0.05 else key

    def _plain(self, value: Any) -> str:
        if isinstance(value, str) and value.isalnum() and value not in ("yes", "true", "1"):
            return self._chance.choice((value, value, f'"{value}"', f"'{value}'"))
        return json.dumps(value, ensure_ascii=False)

    def _between(self, column: int) -> list[str]:
        if self._chance.random() >= self._noise:
            return []
        shift = self._chance.choice((0, column, column + 1))
        return [self._chance.choice(("", "   ", f"{' ' * shift}# a comment: [Job"))]

    def _after(self) -> str:
        return (
            self._chance.choice(("  # why", " ", "  "))
            if self._chance.random() < self._noise
            else ""
        )
