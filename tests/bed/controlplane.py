"""A real etcd, API server and controller-manager on loopback; no root needed.

Without the scheduler, which tests rarely need, Pods have to name their node. The node itself is in
`node.py`.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from tests.bed import binaries, controlplane_config
from tests.bed.api import Api
from tests.bed.certificates import Authority, write_signing_key
from tests.bed.processes import Program
from tests.ports import free_port

ISSUER = "https://kubernetes.default.svc"
# Each node has a network of its own (see node.py); the server's certificate knows all gateways.
NODES = ("node1", "node2")
POD_GATEWAYS = tuple(f"10.244.{number}.1" for number in range(16))
SERVER_NAMES = ("127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1", *POD_GATEWAYS)
CONTROLLERS = (
    "job cronjob serviceaccount serviceaccount-token root-ca-certificate-publisher "
    "garbage-collector namespace ttl-after-finished daemonset pod-garbage-collector disruption "
    "taint-eviction deployment replicaset statefulset endpointslice persistentvolume-binder "
    "persistentvolume-protection persistentvolumeclaim-protection resourcequota "
    "clusterrole-aggregation"
)


class ControlPlane:
    """A control plane whose files all lie in `folder`.

    With `pods` the server listens on all addresses, because the bridge of a node does not exist
    yet when the server starts; otherwise on loopback only. An object made for the folder of a
    running bed can use and stop it. With `scheduler` Pods find their node, and with `loses_nodes` a
    node that does not answer loses them.
    """

    def __init__(
        self,
        folder: Path,
        *,
        pods: bool = False,
        scheduler: bool = False,
        loses_nodes: bool = True,
    ) -> None:
        self.folder = folder
        self.pki = folder / "pki"
        self.kubeconfig = folder / "kubeconfig"
        self.ca_file = self.pki / "ca.crt"
        self.gateway = POD_GATEWAYS[0]
        self._bind = "0.0.0.0" if pods else "127.0.0.1"
        self._schedules, self._loses_nodes = scheduler, scheduler and loses_nodes
        self._etcd = Program(folder, "etcd")
        self._apiserver = Program(folder, "kube-apiserver")
        self._controllers = Program(folder, "kube-controller-manager")
        self._scheduler = Program(folder, "kube-scheduler")
        self._ports = folder / "ports.json"

    @property
    def port(self) -> int:
        """The port of the API server; it stays the same over `stop_apiserver`."""
        return int(json.loads(self._ports.read_text())["apiserver"])

    @property
    def pods_port(self) -> int:
        """The port at which Pods find the API server: its own, or that of what stands before it."""
        return int(json.loads(self._ports.read_text()).get("pods", self.port))

    def send_pods_to(self, port: int) -> None:
        """Have the Pods that are made from now on, and the node's Services, ask at another port."""
        self._ports.write_text(json.dumps(json.loads(self._ports.read_text()) | {"pods": port}))

    @property
    def running(self) -> bool:
        """Whether any of its programs lives."""
        programs = (self._etcd, self._apiserver, self._controllers, self._scheduler)
        return any(program.pid is not None for program in programs)

    @property
    def url(self) -> str:
        """The address of the API server for programs on this machine."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def api(self) -> Api:
        """Requests as an administrator."""
        return Api(self.port, self.pki)

    def token_api(self, token: str) -> Api:
        """Requests with a service account's token."""
        return Api(self.port, self.pki, token)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all three and wait until the default namespace's service account is there."""
        if self.running:
            raise RuntimeError(f"the control plane in {self.folder} runs already")
        binaries.programs("etcd", "kube-apiserver", "kube-controller-manager")
        self.folder.mkdir(parents=True, exist_ok=True)
        authority = Authority(self.pki)
        authority.issue("apiserver", "kube-apiserver", server=SERVER_NAMES)
        authority.issue("admin", "admin", groups=["system:masters"])
        authority.issue("controllers", "system:kube-controller-manager")
        authority.issue("scheduler", "system:kube-scheduler")
        for node in NODES:
            authority.issue(node, f"system:node:{node}", groups=["system:nodes"])
        write_signing_key(self.pki, "tokens")
        ports = {"etcd": free_port(), "apiserver": free_port()}
        self._ports.write_text(json.dumps(ports | {"bind": self._bind}))
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)
        (self.folder / "audit.log").unlink(missing_ok=True)
        controlplane_config.write_audit_policy(self.folder / "audit-policy.yaml")
        for user in ("admin", "controllers", "scheduler", *NODES):
            file = self.folder / ("kubeconfig" if user == "admin" else f"{user}-kubeconfig")
            controlplane_config.write_kubeconfig(file, self.url, self.pki, user)
        self.start_etcd()
        self.start_apiserver()
        self.start_controllers()
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._controllers.wait_ready(lambda: self.api.get_or_none(account) is not None)
        if self._schedules:
            self._start_scheduler()

    def start_controllers(self) -> None:
        """Start the controller-manager, also after `stop_controllers`."""
        controllers = CONTROLLERS.split() + (["node-lifecycle"] if self._loses_nodes else [])
        self._controllers.start(
            [
                str(binaries.program("kube-controller-manager")),
                f"--kubeconfig={self.folder / 'controllers-kubeconfig'}",
                f"--controllers={','.join(f'{name}-controller' for name in controllers)}",
                "--leader-elect=false",
                "--use-service-account-credentials=true",
                f"--root-ca-file={self.ca_file}",
                f"--service-account-private-key-file={self.pki / 'tokens.key'}",
                "--secure-port=0",
                "--kube-api-qps=200",
                "--kube-api-burst=400",
            ]
        )

    def _start_scheduler(self) -> None:
        self._scheduler.start(
            [
                str(binaries.program("kube-scheduler")),
                f"--kubeconfig={self.folder / 'scheduler-kubeconfig'}",
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                f"--secure-port={free_port()}",
            ]
        )

    def stop(self) -> None:
        """End everything; safe to repeat and safe after half a start."""
        # Killed, not asked: nobody needs their state any more, and a polite end takes seconds. Each
        # is, whatever became of the others.
        with ExitStack() as stack:
            for program in (self._etcd, self._apiserver, self._controllers, self._scheduler):
                stack.callback(program.stop, signal.SIGKILL)

    def start_etcd(self) -> None:
        """Start etcd, again on the same port and data after `stop_etcd`."""
        client = f"http://127.0.0.1:{json.loads(self._ports.read_text())['etcd']}"
        self._etcd.start(
            [
                str(binaries.program("etcd")),
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                "--listen-peer-urls=http://127.0.0.1:0",
                "--unsafe-no-fsync",
                "--log-level=warn",
            ]
        )

    def stop_etcd(self) -> None:
        """Kill only etcd; its data stays."""
        self._etcd.stop(signal.SIGKILL)

    def start_apiserver(self) -> None:
        """Start the API server, again on the same port and data after `stop_apiserver`."""
        ports = json.loads(self._ports.read_text())
        pki = self.pki
        self._apiserver.start(
            [
                str(binaries.program("kube-apiserver")),
                f"--etcd-servers=http://127.0.0.1:{ports['etcd']}",
                f"--bind-address={ports['bind']}",
                "--advertise-address=127.0.0.1",
                f"--secure-port={ports['apiserver']}",
                f"--cert-dir={pki}",
                f"--tls-cert-file={pki / 'apiserver.crt'}",
                f"--tls-private-key-file={pki / 'apiserver.key'}",
                f"--client-ca-file={self.ca_file}",
                f"--kubelet-client-certificate={pki / 'admin.crt'}",
                f"--kubelet-client-key={pki / 'admin.key'}",
                "--kubelet-preferred-address-types=InternalIP",
                f"--service-account-key-file={pki / 'tokens.pub'}",
                f"--service-account-signing-key-file={pki / 'tokens.key'}",
                f"--service-account-issuer={ISSUER}",
                "--authorization-mode=Node,RBAC",
                "--enable-admission-plugins=NodeRestriction",
                # Off by default in this version; without a policy it changes nothing.
                "--feature-gates=MutatingAdmissionPolicy=true",
                "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
                # As on any cluster that people install.
                "--allow-privileged=true",
                "--service-cluster-ip-range=10.96.0.0/16",
                "--endpoint-reconciler-type=none",
                f"--audit-policy-file={self.folder / 'audit-policy.yaml'}",
                f"--audit-log-path={self.folder / 'audit.log'}",
                "--audit-log-mode=blocking",
            ]
        )
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the API server is ready (again)."""
        self._apiserver.wait_ready(lambda: _answers(lambda: self.api.request("GET", "/readyz")))

    def stop_apiserver(self, first: signal.Signals = signal.SIGKILL) -> None:
        """End only the API server: at once, or politely by SIGTERM (waits 5 s for open watches)."""
        self._apiserver.stop(first, seconds=5)

    def stop_controllers(self) -> None:
        """End only the controller-manager, so that nothing makes new Pods."""
        self._controllers.stop(signal.SIGKILL)

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Any:
        """A raw JSON request as an administrator; raises ApiError."""
        return self.api.request(method, path, body, content_type)

    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002
        """The standard output of kubectl as an administrator; CalledProcessError with its notes."""
        command = [str(binaries.program("kubectl")), "--kubeconfig", str(self.kubeconfig), *args]
        done = subprocess.run(command, input=input, capture_output=True, text=True, check=False)
        if done.returncode:
            error = subprocess.CalledProcessError(done.returncode, command, done.stdout)
            error.add_note(done.stderr)
            raise error
        return done.stdout

    def create_token(self, namespace: str, serviceaccount: str, seconds: int = 3600) -> str:
        """A token of an existing service account; the server's shortest life is 600 seconds."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{serviceaccount}/token"
        answer = self.request("POST", path, {"spec": {"expirationSeconds": seconds}})
        return str(answer["status"]["token"])

    def audit_events(self) -> list[dict[str, Any]]:
        """The audit events of service accounts so far, oldest first, kube-system's left out.

        A watch gives two: stages ResponseStarted and ResponseComplete with one `auditID`.
        """
        try:
            whole, _, _ = (self.folder / "audit.log").read_text().rpartition("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in whole.splitlines()]

    def requests_of(self, namespace: str, serviceaccount: str) -> Counter[str]:
        """Count what a service account has asked for, by verb and resource."""
        account = f"system:serviceaccount:{namespace}:{serviceaccount}"
        asked: dict[str, str] = {}
        for event in self.audit_events():
            if event["user"]["username"] == account:
                target = event["objectRef"]
                sub = f"/{target['subresource']}" if "subresource" in target else ""
                asked[event["auditID"]] = f"{event['verb']} {target['resource']}{sub}"
        return Counter(asked.values())

    def service_env(self) -> list[dict[str, str]]:
        """The `env` entries a container needs to find the API server without a kube-proxy."""
        return [
            {"name": "KUBERNETES_SERVICE_HOST", "value": self.gateway},
            {"name": "KUBERNETES_SERVICE_PORT", "value": str(self.pods_port)},
        ]

    def compact(self) -> None:
        """Let etcd forget every version before the present one, as it does every five minutes."""
        status = self._ask_etcd("maintenance/status", {})
        revision = status["header"]["revision"]
        self._ask_etcd("kv/compaction", {"revision": revision, "physical": True})

    def _ask_etcd(self, path: str, body: dict[str, Any]) -> Any:
        port = json.loads(self._ports.read_text())["etcd"]
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v3/{path}", json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)


def _answers(request: Callable[[], Any]) -> bool:
    try:
        request()
    except Exception:
        return False
    return True
