"""The fake as tests use it: life, objects, tokens, faults, journal, and waiting for events."""

import secrets
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.fakekube.certs import Authority
from tests.fakekube.discovery import Offered
from tests.fakekube.faults import Fault, Script
from tests.fakekube.journal import Entry
from tests.fakekube.rbac import Tokens
from tests.fakekube.server import Server
from tests.fakekube.store import Object, Store, stamp
from tests.http_server import Dropped

T = TypeVar("T")


def _now() -> datetime:
    return datetime.now(UTC)


class FakeKube:
    """A context manager: `with FakeKube() as fake`. No thread, socket or file is left behind.

    `server`, `ca_file` and `token_file` are what a client needs; the token is of `role`.
    Objects live in namespace "default" unless said. `clock` gives creation and deletion times.
    `strict_ca=False` makes a CA that Python 3.13 refuses; `certified` are the certificate's names.
    """

    def __init__(
        self,
        *,
        role: str = "reporter",
        clock: Callable[[], datetime] = _now,
        strict_ca: bool = True,
        certified: Sequence[str] = ("127.0.0.1",),
    ) -> None:
        self.changed = threading.Condition()
        self.clock = clock
        self.store = Store(self.changed, clock)
        self.tokens = Tokens()
        self.journal: list[Entry] = []
        self.bookmark_every = 60.0
        self.offered = Offered()
        self.forwards: dict[tuple[str, str | None, int], int] = {}
        """The port of this machine behind a port of a Pod: namespace, name and port to port."""
        self.handshakes = 0
        """Connections so far, refused ones too."""
        self._scripts: list[Script] = []
        self._refused = 0
        self._strict_ca = strict_ca
        self._certified = certified
        self._port = 0
        self._server: Server | None = None
        self._directory = tempfile.TemporaryDirectory(prefix="fakekube-")
        self._path = Path(self._directory.name)
        self.ca_file = str(self._path / "ca.crt")
        self.token_file = str(self._path / "token")
        self.new_authority()
        self.write_token(self.token(role))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._directory.cleanup()

    # Life

    @property
    def server(self) -> str:
        """The address, as `https://127.0.0.1:PORT`."""
        return f"https://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Listen, after a stop on the same port."""
        self._server = Server(self, self._port)
        self._port = self._server.port

    def stop(self) -> None:
        """Go away; the objects stay. Connections end, new ones are refused."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def drop_connections(self) -> None:
        """End all connections; new ones are welcome."""
        if self._server is not None:
            self._server.drop_connections()

    def new_authority(self, *, publish: bool = True) -> None:
        """Use a new CA for connections to come; tell clients by `ca_file` if `publish`."""
        authority = Authority(strict=self._strict_ca)
        authority.write_pair(
            self._path / "serving.crt", self._path / "serving.key", self._certified
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._path / "serving.crt", self._path / "serving.key")
        self._context = context
        authority.write(self._path / "ca.new")
        if publish:
            self.publish_authority()

    def publish_authority(self) -> None:
        """Write the present CA to `ca_file`."""
        (self._path / "ca.new").replace(self.ca_file)

    # Tokens and rights

    def token(self, role: str) -> str:
        """Return a new token of that role (see `rbac.ROLES`; `tokens.roles` may be changed)."""
        made = secrets.token_urlsafe(24)
        self.tokens.add(made, role)
        return made

    def revoke(self, token: str) -> None:
        """The token is answered with 401 from now on."""
        self.tokens.revoke(token)

    def write_token(self, content: str) -> None:
        """Replace the token file as the kubelet does, as one."""
        new = self._path / "token.new"
        new.write_text(content)
        new.replace(self.token_file)

    def read_token(self) -> str:
        """Return what the token file holds."""
        return Path(self.token_file).read_text()

    def remove_token(self) -> None:
        """Take the token file away."""
        Path(self.token_file).unlink()

    # Objects

    def create_pod(self, pod: Object) -> Object:
        """Add a Pod; return it as stored."""
        return self.store.create("Pod", pod)

    def create_job(self, job: Object) -> Object:
        """Add a Job; return it as stored."""
        return self.store.create("Job", job)

    def pod(self, name: str, namespace: str = "default") -> Object:
        """Return a copy of the Pod. Raises ApiError (404)."""
        return self.store.get("Pod", namespace, name)

    def job(self, name: str, namespace: str = "default") -> Object:
        """Return a copy of the Job. Raises ApiError (404)."""
        return self.store.get("Job", namespace, name)

    def events(self, namespace: str = "default") -> list[Object]:
        """Return copies of the Events, as v1 shows them."""
        return self.store.find("Event", namespace)

    def condition(self, job: str, kind: str, namespace: str = "default") -> Object | None:
        """Return the condition of that type on the Job, or None."""
        found = self.job(job, namespace)["status"].get("conditions", [])
        return next((condition for condition in found if condition["type"] == kind), None)

    def update_pod(
        self, name: str, change: Callable[[Object], Object | None], namespace: str = "default"
    ) -> Object:
        """Change the Pod with a function that alters it or returns a new one."""
        return self.store.update("Pod", namespace, name, change)

    def update_job(
        self, name: str, change: Callable[[Object], Object | None], namespace: str = "default"
    ) -> Object:
        """Change the Job, all of it, as a controller would: nothing is checked."""
        return self.store.update("Job", namespace, name, change)

    def mark_pod_deleted(self, name: str, grace: int = 30, namespace: str = "default") -> Object:
        """Ask for its deletion: it is there until `grace` seconds from now (deletionTimestamp)."""

        def change(pod: Object) -> None:
            pod["metadata"]["deletionTimestamp"] = stamp(self.clock() + timedelta(seconds=grace))
            pod["metadata"]["deletionGracePeriodSeconds"] = grace

        return self.store.update("Pod", namespace, name, change)

    def delete_pod(self, name: str, namespace: str = "default") -> None:
        """The Pod is gone at once: MODIFIED with grace 0, then DELETED."""
        self.mark_pod_deleted(name, 0, namespace)
        self.store.delete("Pod", namespace, name)

    def delete_job(self, name: str, namespace: str = "default") -> None:
        """The Job is gone at once; its Pods stay."""
        self.store.delete("Job", namespace, name)

    # Faults

    def fail(
        self,
        fault: Fault,
        *,
        method: str | None = None,
        path: str = "",
        watch: bool | None = None,
        where: Callable[[Entry], bool] | None = None,
        nth: int = 1,
        times: int | None = 1,
    ) -> Script:
        """Let the `nth` fitting request from now on fail, and `times` in all (None: for ever).

        `path` is a part of the path. Of several scripts only the first that strikes is used.
        """

        def fits(entry: Entry) -> bool:
            return (
                method in {None, entry.method}
                and path in entry.path
                and watch in {None, entry.is_watch}
                and (where is None or where(entry))
            )

        script = Script(fault, fits, nth, times)
        with self.changed:
            self._scripts.append(script)
        return script

    def refuse_handshakes(self, count: int) -> None:
        """Close the next connections before TLS."""
        with self.changed:
            self._refused = count

    def clear_faults(self) -> None:
        """Behave from now on."""
        with self.changed:
            self._scripts.clear()
            self._refused = 0

    # Looking on

    def requests(
        self, method: str | None = None, path: str = "", *, watch: bool | None = None
    ) -> list[Entry]:
        """Return the journal's entries of that method, with that in their path, watches or not."""
        with self.changed:
            return [
                entry
                for entry in self.journal
                if method in {None, entry.method}
                and path in entry.path
                and watch in {None, entry.is_watch}
            ]

    def wait_for(self, predicate: Callable[[], T], timeout: float = 20.0) -> T:
        """Return the predicate's first true value; it is asked after every change and request.

        Raises TimeoutError with the journal so far.
        """
        end = time.monotonic() + timeout
        with self.changed:
            while not (found := predicate()):
                left = end - time.monotonic()
                if left <= 0:
                    seen = [f"{e.method} {e.path} {e.status}" for e in self.journal[-20:]]
                    raise TimeoutError(f"never true in {timeout} s; journal: {seen}")
                # A predicate may also look at things that nobody tells us of.
                self.changed.wait(min(left, 0.05))
            return found

    # What the server asks

    def begin(self, entry: Entry) -> Fault | None:
        """Note the request and return the fault that strikes it."""
        with self.changed:
            self.journal.append(entry)
            self.changed.notify_all()
            due = [script for script in self._scripts if script.is_due(entry)]
            if not due:
                return None
            due[0].hits += 1
            entry.fault = due[0].fault
            return due[0].fault

    def noted(self) -> None:
        """Wake those who wait for the journal."""
        with self.changed:
            self.changed.notify_all()

    def handshake(self) -> ssl.SSLContext:
        """Return the context for a new connection. Raises Dropped to refuse it."""
        with self.changed:
            self.handshakes += 1
            self.changed.notify_all()
            if self._refused:
                self._refused -= 1
                raise Dropped
            return self._context

    def condition_history(self, job: str, kind: str) -> list[Any]:
        """Return the conditions of that type that PATCHes of this Job have left, in order."""
        found = []
        for entry in self.requests("PATCH", f"/jobs/{job}/status"):
            if entry.status == 200 and isinstance(entry.answer, dict):
                after = entry.answer.get("status", {}).get("conditions", [])
                found += [condition for condition in after if condition["type"] == kind]
        return found
