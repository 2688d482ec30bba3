"""A reporter at work: one Job with one Pod on a fake API server, a directory, and what was said.

The reporter is a process.
"""

import http.client
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.fakekube import FakeKube, make_job, make_pod, running, terminated
from tests.fakekube.journal import Entry
from tests.forked import ROOT, VERSION_OF, Forked

BOUND = 60.0
"""Nothing takes so long unless it hangs."""
TYPE = "Available"
ANNOTATION = f"status-reporter.io/{TYPE}"
RUNNING = "AdapterRunning"
IN_POD = str(ROOT / "tests" / "blackbox" / "in_pod.py")
VERSION = VERSION_OF["reporter"]
PROGRAM = str(VERSION / "cmd" / "status-reporter.py")

Object = dict[str, Any]


def now(offset: float = 0.0) -> str:
    """Return a time near the present as the API shows it."""
    return datetime.fromtimestamp(time.time() + offset, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ask(port: int, path: str) -> tuple[int, str]:
    """Return status and body; 0 where nobody listens."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
    with closing(client):
        try:
            client.request("GET", path)
            response = client.getresponse()
            return response.status, response.read().decode()
        except ConnectionError:
            return 0, ""


class Reporter:
    """One start of the sidecar; what it logs is added to `logs`."""

    def __init__(self, environ: dict[str, str], logs: list[Object]) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by `close`
        self._process = Forked(
            [IN_POD, PROGRAM], env=environ, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._said = threading.Event()
        self._reader = threading.Thread(target=self._read, args=(logs,))
        self._reader.start()

    def _read(self, logs: list[Object]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                # The last one of a killed process may be a part of one.
                with suppress(ValueError):
                    logs.append(json.loads(line))
                self._said.set()
        self._said.set()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def sigterm(self) -> None:
        """Ask it to end, once it has begun to say something: before, the signal just kills."""
        assert self._said.wait(BOUND)
        self._process.send_signal(signal.SIGTERM)

    def join(self, within: float = BOUND) -> int:
        """Return the exit code once it has ended by itself; nothing may be on its stderr."""
        code = self._process.wait(within)
        self._reader.join(BOUND)
        self._errors.seek(0)
        assert "" == self._errors.read()
        return code

    def finish(self, within: float = BOUND) -> int:
        """Return the exit code after a SIGTERM."""
        self.sigterm()
        return self.join(within)

    def close(self) -> None:
        """Leave nothing of it."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._errors.close()


class Scene:
    """What the tests act on and look at."""

    def __init__(self, fake: FakeKube, directory: Path) -> None:
        self.fake, self.logs = fake, list[Object]()
        self.directory = directory
        self.path = directory / "adapter-result.json"
        self.progress = directory / "progress.json"
        self.job_name = "validate"
        self.pod_name = f"{self.job_name}-x7k2p"
        self.started = now()
        self.job: Object = {}
        self.reporters: list[Reporter] = []

    # The cluster

    def create(
        self,
        form: str = "classic",
        adapter: Object | None = None,
        *,
        job: Callable[[Object], object] = lambda job: None,
        pod: Callable[[Object], object] = lambda pod: None,
        **options: Any,
    ) -> None:
        """Create the Job and its Pod; the adapter runs since now unless said."""
        self.job = make_job(self.job_name)
        self.job["status"]["startTime"] = now()
        job(self.job)
        self.fake.create_job(self.job)
        self.create_pod(form, adapter, change=pod, **options)

    def create_pod(
        self,
        form: str = "classic",
        adapter: Object | None = None,
        *,
        change: Callable[[Object], object] = lambda pod: None,
        created: str = "",
        name: str | None = None,
        **options: Any,
    ) -> None:
        """Create a Pod of the Job."""
        pod = make_pod(
            self.job,
            form=form,  # type: ignore[arg-type]
            adapter_state=adapter or running(self.started),
            created=created or self.started,
            name=name or self.pod_name,
            **options,
        )
        change(pod)
        self.fake.create_pod(pod)

    def adapter(self, state: Object, *, last: Object | None = None, restarts: int = 0) -> None:
        """Show the adapter in this state."""

        def change(pod: Object) -> None:
            (shown,) = [c for c in pod["status"]["containerStatuses"] if c["name"] == "adapter"]
            shown |= {"state": state, "lastState": last or {}, "restartCount": restarts}

        self.fake.update_pod(self.pod_name, change)

    def ended(self, code: int = 0, reason: str | None = None, **options: Any) -> Object:
        """Return the state of an adapter that started with the scene and has ended now."""
        options = {"started_at": self.started, "finished_at": now()} | options
        return terminated(code, reason, **options)

    # The adapter's files

    def write(self, text: str | bytes, path: Path | None = None) -> None:
        """Put a file in place as one, as adapters should."""
        path = path or self.path
        new = path.with_suffix(".new")
        new.write_bytes(text if isinstance(text, bytes) else text.encode())
        new.replace(path)

    def write_result(
        self, status: str = "success", reason: str = "AllGood", message: str = "fine"
    ) -> None:
        """Write a valid result."""
        self.write(json.dumps({"status": status, "reason": reason, "message": message}))

    def write_progress(self, **fields: Any) -> None:
        """Write progress."""
        self.write(json.dumps(fields), self.progress)

    # The reporter

    def environ(self, **variables: str) -> dict[str, str]:
        """Return the sidecar's settings."""
        return {
            "JOB_NAME": self.job_name,
            "JOB_NAMESPACE": "default",
            "POD_NAME": self.pod_name,
            "RESULTS_PATH": str(self.path),
            "METRICS_PORT": "0",
        } | variables

    def process_environ(self, **variables: str) -> dict[str, str]:
        """Return the whole environment of a process."""
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(VERSION),
            # Warnings show on stderr, which has to stay empty.
            "PYTHONWARNINGS": "default",
            "SERVER": self.fake.server,
            "CA_FILE": self.fake.ca_file,
            "TOKEN_FILE": self.fake.token_file,
        } | self.environ(**variables)

    def start(self, **variables: str) -> Reporter:
        """Start the sidecar."""
        environ = self.process_environ(**{"LOG_LEVEL": "debug"} | variables)
        reporter = Reporter(environ, self.logs)
        self.reporters.append(reporter)
        return reporter

    @contextmanager
    def process(self, *arguments: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
        """Start the sidecar; what it logs can be read from its stdout.

        The arguments are those of `in_pod.py`.
        """
        with Forked(
            [IN_POD, *arguments, PROGRAM],
            env=self.process_environ(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    # What is to be seen

    def condition(self) -> Object:
        """Return the condition on the Job, or an empty one."""
        return self.fake.condition(self.job_name, TYPE) or {}

    def note(self) -> Object:
        """Return our annotation on the Job, or an empty one."""
        annotations = self.fake.job(self.job_name)["metadata"].get("annotations", {})
        found: Object = json.loads(annotations.get(ANNOTATION, "{}"))
        return found

    def wait_condition(self, reason: str = RUNNING) -> Object:
        """Return the condition once it has this reason."""
        return self.fake.wait_for(
            lambda: (found := self.condition()).get("reason") == reason and found, BOUND
        )

    def wait_final(self) -> Object:
        """Return the condition once the annotation calls it final."""
        self.fake.wait_for(lambda: self.note().get("final"), BOUND)
        return self.condition()

    def wait_log(self, message: str) -> Object:
        """Return the first log event of that message."""
        return self.fake.wait_for(lambda: next(iter(self.said(message)), None), BOUND)

    def said(self, message: str) -> list[Object]:
        """Return the log events of that message."""
        return [event for event in self.logs if event["message"] == message]

    def writes(self) -> list[Object]:
        """Return the bodies of the patches that the server has carried out, in order."""

        def patches() -> list[Entry]:
            return self.fake.requests("PATCH", f"/jobs/{self.job_name}/")

        # What a patch has changed can be seen a moment before its answer is in the journal.
        self.fake.wait_for(lambda: all(e.fault or e.status or e.ended for e in patches()), BOUND)
        return [
            entry.json for entry in patches() if getattr(entry.fault, "apply", entry.status == 200)
        ]

    def history(self) -> list[tuple[str, str, bool]]:
        """Return status, reason and finality of every condition that was written, in order."""
        found = []
        for body in self.writes():
            note = json.loads(body["metadata"]["annotations"][ANNOTATION])
            for condition in body.get("status", {}).get("conditions", []):
                found.append((condition["status"], condition["reason"], note["final"]))
        return found

    def close(self) -> None:
        """End what still runs."""
        for reporter in self.reporters:
            reporter.close()


@contextmanager
def staged(directory: Path) -> Iterator[Scene]:
    """Set a scene in a directory."""
    directory.mkdir(exist_ok=True)
    with FakeKube() as fake:
        scene = Scene(fake, directory)
        try:
            yield scene
        finally:
            scene.close()
