"""`status-ctl jobs --watch` against an API server: what is a line, and what ends it."""

import json
import signal
import subprocess
from collections.abc import Callable
from operator import itemgetter

import pytest
import yaml

from tests import verdicts
from tests.blackbox.ctl.scripted import Home, interrupt
from tests.fakekube import Answer, CloseMidStream, FakeKube, Rule, make_job
from tests.verdicts import with_verdicts

GOOD = verdicts.result(True, "Fine", "12 of 12")
RUNNING = verdicts.RUNNING


@pytest.fixture
def fake(fake: FakeKube) -> FakeKube:
    fake.tokens.roles["person"] = (Rule(("get", "list", "watch"), ("jobs",)),)
    return fake


def job(name: str, *reports: verdicts.Report, **more):
    return with_verdicts(*reports, name=name, uid=f"uid-{name}", **more)


class Output:
    """What the command writes, line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def lines(self, count: int) -> list[str]:
        """Wait for so many lines; the bound of the test ends a hang."""
        assert self._process.stdout is not None
        return [self._process.stdout.readline().decode().rstrip() for _ in range(count)]

    def stop(self) -> tuple[int, str, str]:
        """Ctrl-C: the code, and what was written besides."""
        self._process.send_signal(signal.SIGINT)
        try:
            out, err = self._process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGABRT)  # it writes where each of its threads is
            _, err = self._process.communicate(timeout=60)
            pytest.fail(f"it does not end:\n{err.decode()}")
        return self._process.returncode, out.decode(), err.decode()


def watching(fake: FakeKube, count: int = 1) -> None:
    """Return when so many watches are open."""
    fake.wait_for(lambda: count <= sum(e.status == 200 for e in fake.requests(watch=True)), 60)


def test_every_change_is_a_line(at_home: Home, fake: FakeKube) -> None:
    """Those that are there, those that come, what they say, and that they go; others never."""
    fake.create_job(job("one"))
    fake.create_job(job("two", RUNNING, final=False))
    foreign = make_job("foreign", uid="4")
    foreign["spec"]["template"]["spec"].pop("initContainers")
    fake.create_job(foreign)
    with at_home.started("jobs", "--watch") as process:
        output = Output(process)
        header, one, two = output.lines(3)
        watching(fake)
        fake.update_job("foreign", lambda made: made["status"].update(active=0))
        fake.update_job("two", lambda made: made["status"].update(active=0))
        fake.update_job("two", lambda _: job("two", GOOD))
        (decided,) = output.lines(1)
        fake.create_job(job("three", GOOD))
        (new,) = output.lines(1)
        fake.delete_job("one")
        (gone,) = output.lines(1)
        code, out, err = output.stop()

    assert ["NAME", "CONDITION", "STATUS", "SINCE", "REASON", "FINAL", "MESSAGE"] == header.split()
    assert ["one", "-", "-", "-", "-", "-", "no", "condition", "yet"] == one.split()
    but_since = itemgetter(0, 1, 2, 4, 5)
    assert ("two", "Available", "Unknown", "AdapterRunning", "no") == but_since(two.split())
    assert ("two", "Available", "True", "Fine", "yes") == but_since(decided.split())
    assert ("three", "Available", "True", "Fine", "yes") == but_since(new.split())
    assert ["one", "deleted"] == [gone.split()[0], gone.split()[-1]]
    assert (130, "", "") == (code, out, err)


@pytest.mark.parametrize(
    ("form", "read"),
    [
        ("json", json.loads),
        ("yaml", lambda text: next(iter(yaml.safe_load_all(text)))),
        ("name", lambda text: {"name": text.strip().removeprefix("job.batch/")}),
    ],
)
def test_data(at_home: Home, fake: FakeKube, form: str, read: Callable[[str], dict]) -> None:
    """A document for each change."""
    fake.create_job(job("one", GOOD))
    with at_home.started("jobs", "-w", "-o", form) as process:
        watching(fake)
        _, out, _ = Output(process).stop()

    assert "one" == read(out)["name"]


def test_nothing_yet(at_home: Home, fake: FakeKube) -> None:
    """That is said, once, and the header comes with the first line."""
    with at_home.started("jobs", "--watch", "-A") as process:
        output = Output(process)
        watching(fake)
        fake.create_job(job("far", namespace="other"))
        header, line = output.lines(2)
        _, _, err = output.stop()

    assert ("NAMESPACE", "other") == (header.split()[0], line.split()[0])
    assert "status-ctl: no Jobs with a status reporter in any namespace; waiting\n" == err


def test_labels(at_home: Home, fake: FakeKube) -> None:
    """A selector holds for what comes later, too."""
    with at_home.started("jobs", "-w", "-l", "job-name=two", "-o", "name") as process:
        output = Output(process)
        watching(fake)
        fake.create_job(job("one", GOOD))
        fake.create_job(job("two", GOOD))
        (line,) = output.lines(1)
        _, out, _ = output.stop()

    assert ("job.batch/two", "") == (line, out)


def test_an_interrupted_watch_misses_nothing(at_home: Home, fake: FakeKube) -> None:
    """All Jobs are read again; only what is new is a line."""
    fake.create_job(job("one", GOOD))
    fake.create_job(job("two", GOOD))
    fake.fail(CloseMidStream(after=2), watch=True)

    def end(_: object) -> None:
        fake.delete_job("two")
        fake.create_job(job("three", GOOD))

    with at_home.started("jobs", "-w", "-o", "json") as process:
        output = Output(process)
        first = output.lines(2)
        watching(fake)
        with fake.store.changed:
            end(None)
        later = output.lines(2)
        code, out, _ = output.stop()

    assert ["one", "two"] == [json.loads(line)["name"] for line in first]
    assert [("two", True), ("three", None)] == [
        (shown["name"], shown.get("deleted")) for shown in map(json.loads, later)
    ]
    assert (130, "") == (code, out)


def test_without_the_right_to_watch(at_home: Home, fake: FakeKube) -> None:
    """Lists do, and that is said."""
    fake.tokens.roles["person"] = (Rule(("list",), ("jobs",)),)
    fake.create_job(job("one", GOOD))
    with at_home.started("jobs", "-w", "-o", "name") as process:
        output = Output(process)
        assert process.stderr is not None
        told = process.stderr.readline().decode()
        code, out, err = output.stop()

    assert "listing every 10 s instead" in told
    assert (130, "job.batch/one\n", "") == (code, out, err)


def test_not_allowed(at_home: Home, fake: FakeKube) -> None:
    """4, one line."""
    fake.tokens.roles["person"] = ()
    code, out, err = at_home.run("jobs", "--watch")

    assert (4, "", 1) == (code, out, len(err.splitlines()))


def test_an_api_server_that_is_away_for_a_while(at_home: Home, fake: FakeKube) -> None:
    """It is asked again."""
    fake.create_job(job("one", GOOD))
    fake.fail(Answer(503))
    with at_home.started("jobs", "-w", "-o", "name") as process:
        output = Output(process)
        (line,) = output.lines(1)
        code, _, err = output.stop()

    assert (130, "job.batch/one") == (code, line)
    assert "(unavailable)" in err
    assert "; trying again\n" in err


def test_on_a_terminal(at_home: Home, fake: FakeKube) -> None:
    """Colours, lines that fit, and Ctrl-C."""
    fake.create_job(job("one", GOOD))
    told = []

    def seen(written: str, pid: int) -> None:
        if "Fine" in written and not told:
            told.append(pid)
            interrupt(pid)

    code, out = at_home.terminal("jobs", "-w", seen=seen, columns=60)
    assert 130 == code
    assert "\x1b[32mTrue\x1b[0m" in out


def test_nobody_reads(at_home: Home, fake: FakeKube) -> None:
    """`| head -2` ends it at the next change."""
    fake.create_job(job("one"))
    with at_home.started("jobs", "-w") as process:
        Output(process).lines(2)
        assert process.stdout is not None
        process.stdout.close()
        watching(fake)
        fake.update_job("one", lambda _: job("one", GOOD))
        assert 141 == process.wait(60)
        assert process.stderr is not None
        assert b"" == process.stderr.read()
