"""A plugin that leaves no done file: what its Pod shows, and what comes of it."""

import contextlib
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reporter.common import log
from reporter.common.lifecycle import Stop
from reporter.worker.auto_tar import AutoTar, ended, pack_in_place
from reporter.worker.main import Worker
from tests.archives.tars import contents
from tests.fakekube import Answer, FakeKube, make_job, make_pod, running, terminated, waiting
from tests.integration.link.scripted import Scripted
from tests.kube_client import connect
from tests.ports import free_port
from tests.scripted_server import Say

BOUND = 30.0
OURS = "status-reporter"
NAME = "validate-x7k2p"

Object = dict[str, Any]


def pod(*states: Object, restart: str = "Never", **options: Any) -> Object:
    """A Pod of ours and of so many other containers in these states."""
    made = make_pod(
        make_job(),
        form="classic",
        adapter_state=states[0] if states else None,
        restart_policy=restart,  # type: ignore[arg-type]
        **options,
    )
    for number, state in enumerate(states[1:]):
        name = f"other{number}"
        made["spec"]["containers"].append({"name": name, "image": "example/other:1"})
        made["status"]["containerStatuses"].append({"name": name, "state": state, "lastState": {}})
    return made


def without_statuses() -> Object:
    made = pod(terminated(0))
    made["status"]["containerStatuses"] = []
    return made


def with_a_container_without_status() -> Object:
    made = pod(terminated(0))
    made["spec"]["containers"].append({"name": "late", "image": "example/late:1"})
    return made


def alone() -> Object:
    made = pod(terminated(0))
    made["spec"]["containers"] = [c for c in made["spec"]["containers"] if c["name"] == OURS]
    statuses = made["status"]["containerStatuses"]
    made["status"]["containerStatuses"] = [c for c in statuses if c["name"] == OURS]
    return made


def with_a_policy_of_its_own() -> Object:
    made = pod(terminated(0))
    for container in made["spec"]["containers"]:
        container["restartPolicy"] = "Always"
    return made


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (pod(terminated(0)), [("adapter", 0)]),
        (pod(terminated(0), terminated(0)), [("adapter", 0), ("other0", 0)]),
        (pod(terminated(0), restart="OnFailure"), [("adapter", 0)]),
        (pod(terminated(1)), [("adapter", 1)]),
        (pod(terminated(137, "OOMKilled")), [("adapter", 137)]),
        (pod(terminated(0), terminated(2)), [("adapter", 0), ("other0", 2)]),
        (pod(running()), []),
        (pod(terminated(1), running()), []),
        (pod(waiting()), []),
        (pod(terminated(1), restart="OnFailure"), []),
        (pod(terminated(0), restart="Always"), []),
        (pod(waiting("CrashLoopBackOff"), last_state=terminated(1)), []),
        (pod(running(), last_state=terminated(0), restart="Always"), []),
        (with_a_policy_of_its_own(), []),
        (without_statuses(), []),
        (with_a_container_without_status(), []),
        (alone(), []),
        ({}, []),
    ],
)
def test_how_the_others_ended(made: Object, expected: list[tuple[str, int]]) -> None:
    """W11, F18: only what has ended now and for good counts, and nothing shown is no end."""
    assert expected == [(name, state.exit_code) for name, state in ended(made, OURS).items()]


class Plugin:
    """A results directory, a Pod on a fake API server, an aggregator; the worker in a thread."""

    def __init__(self, fake: FakeKube, scripted: Scripted, results: Path) -> None:
        self.fake, self.scripted, self.results = fake, scripted, results
        self.codes: list[int] = []
        self._stop = Stop()
        self._thread: threading.Thread | None = None

    def show(self, state: Object, **options: Any) -> None:
        self.fake.create_pod(pod(state, **options))

    def start(self, role: str = "reporter", patience: float = 0.05) -> None:
        self.fake.write_token(self.fake.token(role))
        api = connect(self.fake)
        auto_tar = AutoTar(
            lambda: api.get("Pod", "default", NAME),
            OURS,
            self.results,
            every=0.05,
            patience=patience,
        )
        config = self.scripted.config(
            results_dir=self.results,
            progress_port=free_port(),
            done_file_delay=0.0,
            heartbeat_seconds=0,
            grace_seconds=5.5,
        )
        worker = Worker(config, self._stop, auto_tar)

        def run() -> None:
            self.codes.append(worker.run(0))
            auto_tar.close()
            api.close()

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def join(self) -> int:
        assert self._thread is not None
        self._thread.join(BOUND)
        assert not self._thread.is_alive()
        return self.codes[0]

    def looks(self, count: int) -> None:
        """Wait until the Pod was looked at so often."""
        self.fake.wait_for(lambda: len(self.fake.requests("GET", NAME)) >= count)

    def close(self) -> None:
        self._stop.request()
        if self._thread:
            self._thread.join(BOUND)


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Plugin]:
    (tmp_path / "results").mkdir()
    (tmp_path / "results/report.txt").write_bytes(b"report")
    with log.capture(), FakeKube() as fake, Scripted() as scripted:
        made = Plugin(fake, scripted, tmp_path / "results")
        with contextlib.closing(made):
            yield made


def test_all_others_ended_well(plugin: Plugin) -> None:
    """W10: their results go out as out.tar.gz, as if the plugin had said so."""
    plugin.show(terminated(0))
    plugin.start()

    assert 0 == plugin.join()
    (put,) = plugin.scripted.heard(1, "results")
    assert 'attachment; filename="out.tar.gz"' == put.headers["content-disposition"]
    assert "application/gzip" == put.headers["content-type"]
    assert "result-outcome" not in put.headers
    assert ["report.txt"] == list(contents(put.body))
    assert 2 == len(plugin.fake.requests("GET", NAME))
    assert str(plugin.results / "out.tar.gz") == (plugin.results / "done").read_text()
    assert ["done", "out.tar.gz", "report.txt"] == sorted(os.listdir(plugin.results))


def test_another_has_crashed_for_good(plugin: Plugin) -> None:
    """W11: an error report with what there is of the output; nothing was delivered."""
    plugin.show(terminated(137, "OOMKilled"))
    plugin.start()

    assert 1 == plugin.join()
    (put,) = plugin.scripted.heard(1, "results")
    assert "error" == put.headers["result-outcome"]
    assert ["error.json", "output/report.txt"] == list(contents(put.body))
    assert (
        b"container adapter ended with exit code 137 (OOMKilled)"
        in contents(put.body)["error.json"]
    )


def test_a_sonobuoy_aggregator_hears_nothing_of_a_crash(plugin: Plugin) -> None:
    """W11: it would book the report as a good result; one probe tells which it is."""
    plugin.scripted.script("health", Say(404))
    plugin.show(terminated(1))
    plugin.start()

    assert 1 == plugin.join()
    assert [] == plugin.scripted.heard(0, "results")
    assert 1 == len(plugin.scripted.heard(1, "health"))


class Pauses(threading.Event):
    """Records the pauses instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return False


@pytest.mark.parametrize(
    ("code", "expected"), [(0, [5.0, 5.0]), (1, [5.0, 5.0, 30.0])], ids=["well", "crashed"]
)
def test_the_pace(tmp_path: Path, code: int, expected: list[float]) -> None:
    """W10, W11: two looks five seconds apart; half a minute more after a crash."""
    pauses = Pauses()
    auto_tar = AutoTar(lambda: pod(terminated(code)), OURS, tmp_path, over=pauses)
    with log.capture():
        auto_tar.start()
        auto_tar.close()

    assert expected == pauses.waited
    assert (code == 0) == (tmp_path / "done").exists()
    assert (code == 1) == (auto_tar.failure is not None)


def test_a_done_file_after_a_crash(plugin: Plugin) -> None:
    """W11: half a minute for whoever knows of results."""
    plugin.show(terminated(1))
    plugin.start(patience=BOUND)
    plugin.looks(2)
    (plugin.results / "done").write_text("report.txt")

    assert 0 == plugin.join()
    (put,) = plugin.scripted.heard(1, "results")
    assert b"report" == put.body


def test_nothing_is_sent_yet(plugin: Plugin) -> None:
    """W11: it goes on looking."""
    plugin.show(running())
    plugin.start()
    plugin.looks(5)

    assert ["report.txt"] == os.listdir(plugin.results)
    assert [] == plugin.scripted.heard(0, "results")


def test_two_looks_in_a_row(plugin: Plugin) -> None:
    """W10: one that failed in between is none."""
    plugin.show(terminated(0))
    plugin.fake.fail(Answer(503), path=NAME, nth=2)
    plugin.start()

    assert 0 == plugin.join()
    assert 4 == len(plugin.fake.requests("GET", NAME))


def test_without_the_right_to_read_the_pod(plugin: Plugin) -> None:
    """W10: it is off, said once, and a done file works as ever."""
    plugin.show(terminated(0))
    plugin.start(role="nothing")
    plugin.looks(1)
    (plugin.results / "done").write_text("report.txt")

    assert 0 == plugin.join()
    assert 1 == len(plugin.fake.requests("GET", NAME))


def test_results_that_cannot_be_packed(plugin: Plugin) -> None:
    """W10: nobody else will ever say so."""
    (plugin.results / "out.tar.gz").mkdir()
    plugin.show(terminated(0))
    plugin.start()

    assert 1 == plugin.join()
    (put,) = plugin.scripted.heard(1, "results")
    assert "unreadable_result" == json.loads(put.body)["cause"]
    assert ["out.tar.gz", "report.txt"] == sorted(os.listdir(plugin.results))


def test_the_plugins_own_archive_of_that_name(tmp_path: Path) -> None:
    """F16: it is replaced, and lost to nobody: it is in the new one."""
    (tmp_path / "out.tar.gz").write_bytes(b"the plugin's own")
    (tmp_path / "done").write_bytes(b"half a done file")

    archive = pack_in_place(tmp_path)

    assert {"out.tar.gz": b"the plugin's own"} == contents(archive.read_bytes())


@pytest.mark.parametrize("written", ["/{}", "{}/../{name}", "{}/"])
def test_results_whose_path_is_written_otherwise(tmp_path: Path, written: str) -> None:
    """Nothing but a link is refused."""
    assert pack_in_place(Path(written.format(tmp_path, name=tmp_path.name))).is_file()


def test_results_behind_the_link_of_our_image() -> None:
    """Debian's images have the directory for the state of programs at `/run`."""
    if os.path.realpath("/var/run") != "/run" or not os.access("/run/lock", os.W_OK):
        pytest.skip("needs /var/run as a link to /run, with a directory that may be written")
    with tempfile.TemporaryDirectory(dir="/var/run/lock") as results:
        assert pack_in_place(Path(results)).is_file()


def test_results_behind_a_link(tmp_path: Path) -> None:
    """A plugin that may rename its results could have the worker's own secrets packed."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "results").symlink_to("secrets")

    with pytest.raises(OSError, match="symbolic link"):
        pack_in_place(tmp_path / "results")

    assert [] == os.listdir(tmp_path / "secrets")
