"""The two API servers of the behaviour suite, spoken to in plain HTTP.

On purpose not by the product's client: the suite is about what the server does with bytes.
"""

import http.client
import json
import ssl
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

from tests.bed.controlplane import ControlPlane
from tests.fakekube import ROLES, FakeKube, Rule, make_job, make_pod

JOB = "validate"
POD = "validate-pod"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_MERGE = "application/merge-patch+json"
PATIENCE = 20.0


@dataclass(frozen=True)
class Reply:
    """An answer; `json` is None where the body is none."""

    status: int
    headers: Mapping[str, str]
    json: Any

    @property
    def reason(self) -> str:
        return str(self.json.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))


class Server:
    """Requests with a token ("admin" by default) to one namespace of an API server."""

    def __init__(self, address: str, ca_file: str, namespace: str) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname, parts.port
        self._context = ssl.create_default_context(cafile=ca_file)
        self._stack = ExitStack()
        self.namespace = namespace
        self.jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        self.admin = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # What only the one or the other can do

    def token(self, role: str, rules: tuple[Rule, ...] = ()) -> str:
        """Return a token with the rules of that role, or with these."""
        raise NotImplementedError

    def cluster_token(self) -> str:
        """Return the token of somebody who may do everything in all namespaces."""
        raise NotImplementedError

    def create_unscheduled_pod(self) -> dict[str, Any]:
        """Return a new Pod that no node has, with a container `adapter`."""
        raise NotImplementedError

    def create_job(self) -> dict[str, Any]:
        """Return a new Job named `validate` that runs, with all its first writes done."""
        raise NotImplementedError

    def create_pod(
        self, name: str = POD, labels: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return a new Pod."""
        raise NotImplementedError

    def touch_pod(self, message: str) -> None:
        """Set `status.message` of the Pod, as a kubelet would."""
        raise NotImplementedError

    def delete_pod(self) -> None:
        """Take the Pod away at once."""
        raise NotImplementedError

    def forget_versions(self) -> None:
        """Let watches from versions before now be too old."""
        raise NotImplementedError

    def forget_pages(self) -> None:
        """Let lists that were begun before now be too old to go on."""
        raise NotImplementedError

    # What both are asked

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Reply:
        """Send one request; `token` "" sends none."""
        connection = self._connect()
        try:
            connection.request(method, path, body, self._headers(token) | dict(headers or {}))
            return _reply(connection.getresponse())
        finally:
            connection.close()

    def patch(
        self,
        patch: dict[str, Any] | bytes,
        *,
        query: str = "fieldManager=test&fieldValidation=Strict",
        content_type: str | None = STRATEGIC,
        token: str | None = None,
        job: str = JOB,
    ) -> Reply:
        """PATCH the status of the Job."""
        body = patch if isinstance(patch, bytes) else json.dumps(patch).encode()
        headers = {} if content_type is None else {"Content-Type": content_type}
        return self.call("PATCH", f"{self.jobs}/{job}/status?{query}", body, headers, token)

    def patch_conditions(self, *conditions: dict[str, Any]) -> Reply:
        """PATCH conditions with strict validation."""
        return self.patch({"status": {"conditions": list(conditions)}})

    def patch_pod(
        self,
        patch: dict[str, Any] | bytes,
        *,
        content_type: str = JSON_MERGE,
        token: str | None = None,
        pod: str = POD,
    ) -> Reply:
        """PATCH the Pod, validating strictly."""
        body = patch if isinstance(patch, bytes) else json.dumps(patch).encode()
        path = f"{self.pods}/{pod}?fieldManager=test&fieldValidation=Strict"
        return self.call("PATCH", path, body, {"Content-Type": content_type}, token)

    def post_event(
        self,
        event: dict[str, Any] | bytes,
        *,
        query: str = "fieldManager=test&fieldValidation=Strict",
        content_type: str | None = "application/json",
        token: str | None = None,
    ) -> Reply:
        """POST an Event to events.k8s.io/v1."""
        body = event if isinstance(event, bytes) else json.dumps(event).encode()
        headers = {} if content_type is None else {"Content-Type": content_type}
        return self.call("POST", f"{self.events}?{query}", body, headers, token)

    def annotate(self, annotations: Any) -> Reply:
        """PATCH the annotations of the Pod `validate-pod`."""
        return self.patch_pod({"metadata": {"annotations": annotations}})

    def job(self) -> dict[str, Any]:
        """Return the Job."""
        found: dict[str, Any] = self.call("GET", f"{self.jobs}/{JOB}").json
        return found

    def watch(self, query: str, token: str | None = None, path: str = "") -> "Watch":
        """Open a watch, of Pods unless said."""
        connection = self._connect()
        self._stack.callback(connection.close)
        path = path or self.pods
        connection.request("GET", f"{path}?watch=true&{query}", None, self._headers(token))
        return Watch(connection, connection.getresponse())

    def watch_pod(self, query: str = "", token: str | None = None) -> "Watch":
        """Open a watch of the Pod `validate-pod`."""
        return self.watch(f"fieldSelector=metadata.name={POD}&{query}", token)

    def _connect(self) -> http.client.HTTPSConnection:
        assert self._host is not None
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=PATIENCE, context=self._context
        )

    def _headers(self, token: str | None) -> dict[str, str]:
        chosen = self.admin if token is None else token
        return {"Authorization": f"Bearer {chosen}"} if chosen else {}


class Watch:
    """A watch's answer: a refusal, or events."""

    def __init__(
        self, connection: http.client.HTTPSConnection, answer: http.client.HTTPResponse
    ) -> None:
        self.connection = connection
        self._answer = answer
        self.status = answer.status

    def reply(self) -> Reply:
        """Return the refusal."""
        return _reply(self._answer)

    def event(self) -> tuple[str, dict[str, Any]]:
        """Return the next event's type and object; EOFError at the end of the stream."""
        line = self._answer.readline()
        if not line:
            raise EOFError
        event = json.loads(line)
        return event["type"], event["object"]

    def rest(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield events until the stream ends."""
        while line := self._answer.readline():
            event = json.loads(line)
            yield event["type"], event["object"]

    def is_silent(self, seconds: float = 0.5) -> bool:
        """Whether nothing comes for so long. Only once: afterwards the watch is of no use."""
        assert self.connection.sock is not None
        self.connection.sock.settimeout(seconds)
        try:
            self._answer.readline()
        except TimeoutError:
            return True
        return False


class FakeServer(Server):
    """FakeKube."""

    def __init__(self) -> None:
        self.fake = FakeKube()
        self.fake.start()
        super().__init__(self.fake.server, self.fake.ca_file, "default")
        self._stack.push(self.fake)
        self.admin = self.fake.token("admin")

    def token(self, role: str, rules: tuple[Rule, ...] = ()) -> str:
        self.fake.tokens.roles[role] = rules or ROLES[role]
        return self.fake.token(role)

    def cluster_token(self) -> str:
        return self.admin

    def create_unscheduled_pod(self) -> dict[str, Any]:
        pod = make_pod(make_job(JOB), name=POD)
        del pod["spec"]["nodeName"]
        return self.fake.create_pod(pod)

    def create_job(self) -> dict[str, Any]:
        return self.fake.create_job(make_job(JOB))

    def create_pod(
        self, name: str = POD, labels: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        pod = make_pod(make_job(JOB), name=name)
        pod["metadata"]["labels"] = dict(labels or {})
        return self.fake.create_pod(pod)

    def touch_pod(self, message: str) -> None:
        self.fake.update_pod(POD, lambda pod: pod["status"].update(message=message))

    def delete_pod(self) -> None:
        self.fake.delete_pod(POD)

    def forget_versions(self) -> None:
        self.fake.store.compact()

    def forget_pages(self) -> None:
        # Something has happened since: the present version is never too old.
        self.fake.create_pod(make_pod(make_job(JOB), name="later"))
        self.fake.store.compact()


class RealServer(Server):
    """A namespace of its own on the test bed's API server."""

    def __init__(self, controlplane: ControlPlane) -> None:
        namespace = f"contract-{uuid.uuid4().hex[:8]}"
        super().__init__(controlplane.url, str(controlplane.ca_file), namespace)
        self._bed = controlplane
        self._bed.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        self._stack.callback(self._bed.request, "DELETE", f"/api/v1/namespaces/{namespace}")
        self.admin = self.token("admin")

    def token(self, role: str, rules: tuple[Rule, ...] = ()) -> str:
        accounts = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.namespace}"
        meta = {"metadata": {"name": role}}
        self._bed.request("POST", accounts, meta)
        granted = [_policy(rule) for rule in rules or ROLES[role]]
        subject = {"kind": "ServiceAccount", "name": role, "namespace": self.namespace}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}
        self._bed.request("POST", f"{rbac}/roles", meta | {"rules": granted})
        binding = meta | {"roleRef": reference, "subjects": [subject]}
        self._bed.request("POST", f"{rbac}/rolebindings", binding)
        token = self._bed.create_token(self.namespace, role)
        for rule in rules or ROLES[role]:
            self._wait_until_granted(token, rule)
        return token

    def _wait_until_granted(self, token: str, rule: Rule) -> None:
        """The authorizer follows the API with a delay of its own."""
        resource, _, subresource = rule.resources[0].partition("/")
        attributes = {
            "namespace": self.namespace,
            "verb": rule.verbs[0],
            "group": "batch" if resource == "jobs" else rule.groups[0],
            "resource": resource,
            "subresource": subresource,
            "name": rule.names[0] if rule.names else "",
        }
        review = json.dumps(
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": attributes},
            }
        ).encode()
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            reply = self.call("POST", path, review, {"Content-Type": "application/json"}, token)
            if reply.json["status"].get("allowed"):
                return
            time.sleep(0.02)
        raise TimeoutError(f"never granted: {rule}")

    def cluster_token(self) -> str:
        account = {"kind": "ServiceAccount", "name": "admin", "namespace": self.namespace}
        rbac = "rbac.authorization.k8s.io"
        role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"}
        binding = {"metadata": {"name": self.namespace}, "roleRef": role, "subjects": [account]}
        bindings = f"/apis/{rbac}/v1/clusterrolebindings"
        self._bed.request("POST", bindings, binding)
        self._stack.callback(self._bed.request, "DELETE", f"{bindings}/{self.namespace}")
        self._wait_until_granted(self.admin, Rule(("create",), ("namespaces",)))
        return self.admin

    def create_unscheduled_pod(self) -> dict[str, Any]:
        return self.create_pod()

    def create_job(self) -> dict[str, Any]:
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        self._bed.api.wait_for(account, bool)
        container = {"name": "adapter", "image": "example/adapter:1"}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        body = {"metadata": {"name": JOB}, "spec": {"backoffLimit": 0, "template": template}}
        self._bed.request("POST", self.jobs, body)
        ready = self._bed.api.wait_for(
            f"{self.jobs}/{JOB}", lambda job: job and job["status"].get("active") == 1
        )
        assert isinstance(ready, dict)
        return ready

    def create_pod(
        self, name: str = POD, labels: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        container = {"name": "adapter", "image": "example/adapter:1"}
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        self._bed.api.wait_for(account, bool)
        meta = {"name": name, "labels": dict(labels or {})}
        body = {"metadata": meta, "spec": {"containers": [container]}}
        made = self._bed.request("POST", self.pods, body)
        assert isinstance(made, dict)
        return made

    def touch_pod(self, message: str) -> None:
        patch = {"status": {"message": message}}
        self._bed.request("PATCH", f"{self.pods}/{POD}/status", patch, STRATEGIC)

    def delete_pod(self) -> None:
        self._bed.request("DELETE", f"{self.pods}/{POD}?gracePeriodSeconds=0")

    def forget_versions(self) -> None:
        # Its watch cache begins anew with the present version.
        self._bed.stop_apiserver()
        self._bed.start_apiserver()

    def forget_pages(self) -> None:
        self.create_pod("later")
        # Its cache goes on with lists that etcd has forgotten.
        self._bed.stop_apiserver()
        self._bed.compact()
        self._bed.start_apiserver()


def _policy(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = {
        "apiGroups": list(rule.groups),
        "resources": list(rule.resources),
        "verbs": list(rule.verbs),
    }
    return found | ({"resourceNames": list(rule.names)} if rule.names else {})


def _reply(answer: http.client.HTTPResponse) -> Reply:
    data = answer.read()
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    return Reply(answer.status, dict(answer.headers), found)
