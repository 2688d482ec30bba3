"""Plugin definitions in YAML: bytes to `Definition`s, or every mistake with its line and field.

Both shapes are read: ours, by the published schema `plugin.v1`, and Sonobuoy's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reporter.common import schema
from reporter.common.kubernetes_yaml import Document, Mistake, read_documents
from reporter.common.objects import Object, items
from reporter.run.definition import (
    API_VERSION,
    PROGRESS_PORT,
    Definition,
    Place,
    misfits,
    read_definition,
)

MAX_BYTES: Final = 1024 * 1024  # what an object of the API server can hold
_MOST_VALUES: Final = 20_000  # of a document, each alias counted as what it stands for
_SONOBUOY: Final = "sonobuoy-config"
_ACCOUNT: Final = "sonobuoy-serviceaccount"
_ONE_JOB: Final = "is unknown: the driver Node always runs one Job for each node"


@dataclass(frozen=True, slots=True)
class Read:
    """What a file holds: definitions with the lines they begin at, and every mistake."""

    definitions: tuple[tuple[int, Definition], ...]
    mistakes: tuple[Mistake, ...]


def read_definitions(data: bytes) -> Read:
    """Read all documents of a file. Never raises: what cannot be read is a mistake."""
    found: list[tuple[int, Definition]] = []
    documents, mistakes = read_documents(data, MAX_BYTES, _MOST_VALUES)
    for document in documents:
        definition = _definition(document)
        mistakes += sorted(document.mistakes, key=lambda mistake: mistake.line)
        if definition is not None and not document.mistakes:
            found.append((document.first, definition))
    if not found and not mistakes:
        mistakes.append(Mistake(1, "", "no plugin definition found"))
    return Read(tuple(found), tuple(mistakes))


def _definition(document: Document) -> Definition | None:
    """Return what it defines; nothing if it is empty or has a mistake in its shape."""
    value = document.value
    if value is None:
        return None
    if not isinstance(value, Mapping):
        document.say((), "not an object")
        return None
    if _SONOBUOY in value:
        return _of_sonobuoy(document, value)
    if value.get("apiVersion") != API_VERSION and value.get("kind") != "Plugin":
        document.say(
            (), f"not a plugin definition: neither kind Plugin of {API_VERSION} nor Sonobuoy's"
        )
        return None
    if _misshapen(document, "plugin.v1"):
        return None
    return _checked(document, read_definition(value), {})


def _misshapen(document: Document, name: str) -> bool:
    found = list(schema.violations(name, document.value))
    for path, text in found:
        document.say(path, _ONE_JOB if path == ("spec", "dispatch") else text)
    return bool(found)


def _checked(document: Document, made: Definition, places: Mapping[Place, Place]) -> Definition:
    for path, text in misfits(made):
        document.say(places.get(path, path), text)
    return made


# -- Sonobuoy's shape ------------------------------------------------------------------------------


def _of_sonobuoy(document: Document, value: Mapping[str, Any]) -> Definition | None:
    if _misshapen(document, "sonobuoy-plugin"):
        return None
    config = value[_SONOBUOY]
    driver = config["driver"].lower()
    if driver not in ("job", "daemonset"):
        document.say((_SONOBUOY, "driver"), "must be either 'Job' or 'DaemonSet'")
        return None
    per_node = driver == "daemonset"
    template, remarks = _sonobuoy_template(value, per_node=per_node)
    made = Definition(
        name=config["plugin-name"],
        driver="Node" if per_node else "Job",
        contract="done-file",
        template=template,
        order=config.get("order", 0),
        result_format=config.get("result-format") or "raw",
        result_files=tuple(config.get("result-files") or ()),
        cleanup="never" if config.get("skip-cleanup") else "always",
        config=value.get("config-map") or {},
        remarks=remarks,
    )
    inner = len(template["spec"]["containers"]) - 1
    places: dict[Place, Place] = {
        ("spec", "template", "spec", "containers", inner, "name"): ("spec", "name"),
        ("metadata", "name"): (_SONOBUOY, "plugin-name"),
        ("spec", "driver"): (_SONOBUOY, "driver"),
    }
    return _checked(document, made, places)


def _sonobuoy_template(document: Object, *, per_node: bool) -> tuple[Object, tuple[str, ...]]:
    """Return the Pod template of a definition in Sonobuoy's shape, and what was changed in it.

    Without a `podSpec` it has what Sonobuoy v0.57 gives such plugins.
    """
    given = document.get("podSpec")
    spec = dict(given if given is not None else _default_spec(per_node=per_node))
    remarks = []
    spec["containers"] = [*items(spec, "containers"), document["spec"]]
    extra = items(document, "extra-volumes")
    spec["volumes"] = [*items(spec, "volumes"), {"name": "results", "emptyDir": {}}, *extra]
    if spec.get("restartPolicy", "Never") != "Never":
        remarks.append(f"restartPolicy {spec['restartPolicy']} becomes Never")
    spec["restartPolicy"] = "Never"
    if spec.get("serviceAccountName") == _ACCOUNT:
        del spec["serviceAccountName"]
        remarks.append(
            f"the service account {_ACCOUNT} is replaced by --service-account or the run's own"
        )
    own = [each.get("name") for each in items(document["spec"], "env")]
    if spec.get("hostNetwork") is True and PROGRESS_PORT not in own:
        remarks.append(
            f"with hostNetwork the progress port is not 8099 but ${PROGRESS_PORT}; set that "
            "variable to keep 8099"
        )
    return {"spec": spec}, tuple(remarks)


def _default_spec(*, per_node: bool) -> dict[str, Any]:
    if per_node:
        return {
            "dnsPolicy": "ClusterFirstWithHostNet",
            "hostIPC": True,
            "hostNetwork": True,
            "hostPID": True,
            "serviceAccountName": _ACCOUNT,
            "tolerations": [{"operator": "Exists"}],
            "volumes": [{"name": "root", "hostPath": {"path": "/"}}],
        }
    return {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "serviceAccountName": _ACCOUNT,
        "tolerations": [
            {
                "key": "node-role.kubernetes.io/master",
                "operator": "Exists",
                "effect": "NoSchedule",
            },
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": "kubernetes.io/e2e-evict-taint-key", "operator": "Exists"},
        ],
    }
