"""`status-ctl jobs` against an API server, with a person's rights."""

import json
import re

import pytest
import yaml

from tests import verdicts
from tests.blackbox.ctl.scripted import Home
from tests.fakekube import FakeKube, make_job
from tests.verdicts import with_verdicts


@pytest.fixture
def several(fake: FakeKube) -> None:
    """Jobs of all sorts in two namespaces."""
    fake.create_job(with_verdicts(verdicts.TIMEOUT, name="bad", uid="1"))
    fake.create_job(with_verdicts(verdicts.result(True, "Fine", "好"), name="good", uid="2"))
    fake.create_job(make_job("new", uid="3"))
    foreign = make_job("foreign", uid="4")
    foreign["spec"]["template"]["spec"].pop("initContainers")
    fake.create_job(foreign)
    fake.create_job(with_verdicts(verdicts.OUT_OF_MEMORY, name="far", uid="5", namespace="other"))


def test_the_table(at_home: Home, several) -> None:
    """Those with a verdict, those with a reporter, and no others."""
    code, out, err = at_home.run("jobs")
    lines = [line.split() for line in out.splitlines()]

    assert (0, "") == (code, err)
    assert ["NAME", "CONDITION", "STATUS", "SINCE", "REASON", "FINAL", "MESSAGE"] == lines[0]
    assert ["bad", "good", "new"] == [line[0] for line in lines[1:]]
    bad = lines[1]
    assert ["bad", "Available", "False"] == bad[:3]
    assert re.fullmatch("[0-9]+[smhd].*", bad[3])
    assert ["AdapterTimeout", "yes"] == bad[4:6]
    assert ["no", "condition", "yet"] == lines[3][-3:]


def test_all_namespaces_and_wide(at_home: Home, several) -> None:
    """With the namespace first, row and Pod."""
    _, out, _ = at_home.run("jobs", "-A", "-o", "wide")
    lines = [line.split() for line in out.splitlines()]

    assert "NAMESPACE" == lines[0][0]
    assert ["default"] * 3 + ["other"] == [line[0] for line in lines[1:]]
    assert ["O", "far-x7k2p"] == lines[4][7:9]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], ["bad", "good", "new"]),
        (["-n", "other"], ["far"]),
        (["-l", "job-name=bad"], ["bad"]),
    ],
)
def test_names(at_home: Home, several, words, names) -> None:
    """As kubectl takes them."""
    expected = "".join(f"job.batch/{name}\n" for name in names)

    assert (0, expected, "") == at_home.run("jobs", "-o", "name", *words)


def test_two_of_one_name(at_home: Home, fake: FakeKube) -> None:
    """Jobs of two namespaces are two."""
    for number, namespace in enumerate(("default", "other")):
        fake.create_job(make_job("same", uid=f"s{number}", namespace=namespace))

    assert (0, "job.batch/same\n" * 2, "") == at_home.run("jobs", "-A", "-o", "name")


def test_data(at_home: Home, several) -> None:
    """JSON and YAML are the same; a Job without a condition has null."""
    _, out, _ = at_home.run("jobs", "-o", "json")
    shown = json.loads(out)

    assert ("v1", "Jobs") == (shown["api_version"], shown["kind"])
    assert [("bad", True), ("good", True), ("new", None)] == [
        (item["name"], item["condition"] and item["condition"]["final"]) for item in shown["items"]
    ]
    assert shown == yaml.safe_load(at_home.run("jobs", "-o", "yaml")[1])


def test_on_a_terminal(at_home: Home, several) -> None:
    """Status in colour; the message is cut to the line."""
    _, out = at_home.terminal("jobs", columns=70)

    assert "\x1b[31mFalse\x1b[0m" in out
    assert "\x1b[32mTrue\x1b[0m" in out
    assert 70 >= max(map(len, at_home.terminal("jobs", "--no-color", columns=70)[1].split("\n")))


def test_none(at_home: Home) -> None:
    """0: that is an answer; data stays data."""
    assert (0, "", "status-ctl: no Jobs with a status reporter in namespace 'default'\n") == (
        at_home.run("jobs")
    )
    assert '"items": []' in at_home.run("jobs", "-o", "json")[1]


@pytest.mark.parametrize("trouble", ["forbidden", "unreachable"])
def test_cannot_tell(at_home: Home, fake: FakeKube, trouble: str) -> None:
    """4."""
    fake.tokens.roles["person"] = ()
    where = ["--context", "nowhere"] if trouble == "unreachable" else []
    code, out, err = at_home.run("jobs", *where)

    assert (4, "") == (code, out)
    assert 1 == len(err.splitlines())
