"""POST and DELETE of any kind of object, reviews of rights, and logs."""

import copy
import re
import uuid

from tests.fakekube.answers import ApiError, NotImitated, conflict_uid, invalid, no_namespace
from tests.fakekube.jobstatus import decode_json
from tests.fakekube.journal import Entry
from tests.fakekube.kinds import RBAC, WITHOUT_STATUS, Kind
from tests.fakekube.rbac import Tokens
from tests.fakekube.store import Object, Store

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def created(entry: Entry, kind: Kind, namespace: str, store: Store) -> Object:
    """Return the new object, stored unless it is a dry run. Raises ApiError."""
    given = _decoded(entry, kind)
    meta = given.setdefault("metadata", {})
    if kind.namespaced and meta.setdefault("namespace", namespace) != namespace:
        why = "the namespace of the provided object does not match the namespace sent on the"
        raise ApiError(400, "BadRequest", f"{why} request")
    name = meta.get("name", "")
    if not name:
        why = "Required value: name or generateName is required"
        raise invalid(kind.name, name, "metadata.name", why, reason="FieldValueRequired", times=1)
    # Names of roles may be anything that is one part of a path.
    if not _NAME.fullmatch(name) and (kind.group != RBAC or set(name) & set("/%")):
        why = f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist of lower case'
        raise invalid(kind.name, name, "metadata.name", why, times=1)
    if kind.namespaced and not store.has_namespace(namespace):
        raise no_namespace(namespace)
    for name in ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"):
        meta.pop(name, None)
    if kind.name not in WITHOUT_STATUS:
        given["status"] = {}
    _default(kind, given)
    return store.create(kind.name, given, dry_run=entry.query.get("dryRun") == "All")


def deleted(entry: Entry, kind: Kind, namespace: str, name: str, store: Store) -> Object:
    """Delete the object and, as the garbage collector, what it owns; return the answer."""
    options = _decoded(entry, None) if entry.body else {}
    policy = options.get("propagationPolicy") or entry.query.get("propagationPolicy")
    if policy not in {"Background", None}:
        raise NotImitated(f"the propagation policy {policy!r}")
    with store.changed:
        live = store.get(kind.name, namespace, name)
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted not in {None, live["metadata"]["uid"]}:
            raise conflict_uid(kind.name, name, wanted, live["metadata"]["uid"])
        store.delete(kind.name, namespace, name)
        if kind.name == "Namespace":
            store.empty(name)
        # Jobs of batch/v1 leave their Pods behind unless they are told otherwise.
        elif policy or kind.name != "Job":
            store.collect(live["metadata"]["uid"])
    if kind.name in {"Pod", "Service", "ServiceAccount", "PersistentVolumeClaim", "Namespace"}:
        return live
    details = {"name": name, "kind": kind.plural, "uid": live["metadata"]["uid"]}
    details |= {"group": kind.group} if kind.group else {}
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return head | {"details": details}


def reviewed(entry: Entry, kind: Kind, role: str | None, tokens: Tokens) -> Object:
    """Return a review of access with the answer in its status.

    A LocalSubjectAccessReview is about the role that its service account is named for.
    """
    review = _decoded(entry, kind)
    if kind.name == "LocalSubjectAccessReview":
        role = review["spec"]["user"].rpartition(":")[2]
    asked = review.get("spec", {}).get("resourceAttributes")
    if not isinstance(asked, dict):
        raise NotImitated("a review of something else than a resource")
    resource = "/".join(filter(None, (asked.get("resource"), asked.get("subresource"))))
    rules = tokens.roles.get(role or "", ())
    allowed = any(
        rule.allows(
            asked.get("verb", ""),
            asked.get("group", ""),
            resource,
            asked.get("name"),
            asked.get("namespace", ""),
        )
        for rule in rules
    )
    head = {"kind": kind.name, "apiVersion": kind.api_version}
    status = {"allowed": allowed} | ({"reason": "RBAC: allowed"} if allowed else {})
    return head | {"metadata": {}, "spec": review["spec"], "status": status}


def log_of(entry: Entry, namespace: str, name: str, store: Store) -> bytes | None:
    """Return the log of a container as the query wants it; None where no node has the Pod."""
    pod = store.get("Pod", namespace, name)
    spec = pod.get("spec", {})
    containers = [each["name"] for each in spec.get("containers", [])]
    others = [each["name"] for each in spec.get("initContainers", [])]
    chosen = entry.query.get("container") or (containers[0] if len(containers) == 1 else "")
    if chosen not in containers + others:
        text = f"container {chosen} is not valid for pod {name}"
        raise ApiError(400, "BadRequest", text)
    if not spec.get("nodeName"):
        return None
    found = store.logs.get((namespace, name, chosen), b"")
    if entry.query.get("timestamps") == "true":
        found = _stamped(found, entry.query.get("sinceTime", ""))
    if "tailLines" in entry.query:
        lines = found.splitlines(keepends=True)
        found = b"".join(lines[len(lines) - min(int(entry.query["tailLines"]), len(lines)) :])
    # From the beginning, although the end is what people look for.
    return found[: int(entry.query.get("limitBytes") or len(found))]


def _stamped(log: bytes, since: str) -> bytes:
    """Return the lines with their times, of which three are in each second."""
    lines = [
        b"2030-01-01T00:%02d:%02d.%09dZ %s" % (*divmod(number // 3, 60), number % 3, line)
        for number, line in enumerate(log.splitlines(keepends=True))
    ]
    # In whole seconds, as the API server hands it on.
    return b"".join(line for line in lines if line[:19] >= since[:19].encode())


def _decoded(entry: Entry, kind: Kind | None) -> Object:
    sort = entry.headers.get("content-type", "").partition(";")[0].strip()
    if sort not in {"", "application/json"}:
        raise NotImitated(f"a body of type {sort}")
    try:
        given = decode_json(entry.body)
    except ValueError as error:
        raise ApiError(400, "BadRequest", f"the object provided is unrecognized: {error}") from None
    if kind is None:
        return given
    said = given.get("kind", kind.name), given.get("apiVersion", kind.api_version)
    if said != (kind.name, kind.api_version):
        text = (
            f"{said[0]} in version {said[1]!r} cannot be handled as a {kind.name}: "
            f"no kind {said[0]!r} is registered for that version"
        )
        raise ApiError(400, "BadRequest", text)
    return copy.deepcopy(given)


def _default(kind: Kind, given: Object) -> None:
    """What the server adds that somebody looks at."""
    if kind.name != "Job":
        return
    meta = given["metadata"]
    uid = meta["uid"] = str(uuid.uuid4())
    spec: Object = given.setdefault("spec", {})
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    labels = spec.setdefault("template", {}).setdefault("metadata", {}).setdefault("labels", {})
    labels |= {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": meta["name"],
        "controller-uid": uid,
        "job-name": meta["name"],
    }
