"""`status-ctl run` with mistakes in its files and trouble in the cluster: all is said in one go."""

from pathlib import Path

import pytest

from tests.blackbox.ctl.launched import RUN_LABEL, standing
from tests.blackbox.ctl.scripted import Home
from tests.blackbox.ctl.starting import EACH_NODE, fake, posts, start, there, write
from tests.fakekube import Answer, FakeKube

__all__ = ["fake", "there"]

BROKEN = ("-f", "broken.yaml")
MISTAKE = "status-ctl: broken.yaml: line 1: not an object"
REFUSED = "status-ctl: the run cannot be started:"
TAKEN = "choose another --name, or delete the run that uses it"
EXPIRED = "the upload URL expired at 1970-01-01T00:01"


@pytest.fixture(autouse=True)
def _broken(there: Home) -> None:
    write(there, "broken.yaml", "[]")
    write(there, "kernel.yaml", EACH_NODE)
    write(there, "url", "https://store/k?Signature=5ec2e7&Expires=99")


@pytest.fixture
def _account(fake: FakeKube) -> None:
    """The namespace `default` can have Pods."""
    fake.store.create("ServiceAccount", {"metadata": {"name": "default"}})


@pytest.mark.usefixtures("_account")
def test_a_definition_and_the_namespace_of_the_run(there: Home, fake: FakeKube) -> None:
    """What the API server says of the plugins that are right, too."""
    fake.store.create("Service", {"metadata": {"name": "first"}})
    words = 'pods "x" is forbidden: exceeded quota'
    fake.fail(Answer(403, said=words), method="POST", path="/pods", times=None)
    more = ("-n", "default", "--node", "nodel", "--image-pull-secret", "mirror")
    code, out, err = start(there, *BROKEN, *more)

    assert (2, "") == (code, out)
    assert [
        MISTAKE,
        REFUSED,
        f'  service/first: services "first" already exists; {TAKEN}',
        f"  the aggregator: its Pod would be refused: {words}",
        f"  plugin quota: its Pod would be refused: {words}",
        "  --image-pull-secret mirror: there is no such Secret in namespace default",
        "  --node nodel: there is no such node",
    ] == err.splitlines()
    assert [] == posts(fake)


def test_a_definition_and_a_namespace_that_the_run_would_make(there: Home, fake: FakeKube) -> None:
    """It is not made for a run that cannot start: what only it could show is not known."""
    more = ("--node", "nodel", "--image-pull-secret", "mirror")
    code, _, err = start(there, *BROKEN, *more)

    own = "status-reporter-first"
    assert 2 == code
    assert [
        MISTAKE,
        REFUSED,
        f"  --image-pull-secret mirror: there is no such Secret in namespace {own}",
        "  --node nodel: there is no such node",
    ] == err.splitlines()
    assert [] == posts(fake)
    assert not fake.store.has_namespace(own)


def test_a_definition_and_a_name_in_use(there: Home, fake: FakeKube) -> None:
    """Where the other commands look first, and as the namespace of the run."""
    labels = {RUN_LABEL: "first"}
    fake.store.create("ConfigMap", {"metadata": {"name": "first", "labels": labels}})
    fake.store.create("Namespace", {"metadata": {"name": "status-reporter-first"}})
    code, _, err = start(there, *BROKEN)

    assert 2 == code
    assert [
        MISTAKE,
        REFUSED,
        "  namespace default has a run named first; choose another --name",
        '  namespace/status-reporter-first: namespaces "status-reporter-first" already exists; '
        f"{TAKEN}",
    ] == err.splitlines()


def test_a_namespace_that_is_just_going_is_not_in_use(there: Home, fake: FakeKube) -> None:
    """The run that is right waits for it."""
    name = "status-reporter-first"
    going = {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    fake.store.create("Namespace", {"metadata": {"name": name}})
    fake.store.update("Namespace", "", name, lambda found: found | {"metadata": going})

    assert (2, "", f"{MISTAKE}\n") == start(there, *BROKEN)


def test_a_definition_and_the_right_to_make_namespaces(there: Home, fake: FakeKube) -> None:
    fake.fail(Answer(403), method="POST", path="/namespaces", times=None)
    code, _, err = start(there, *BROKEN)

    assert 2 == code
    assert [MISTAKE, REFUSED] == err.splitlines()[:2]
    assert err.endswith("; -n uses a namespace that exists\n")


def test_a_name_in_use_and_a_node_that_does_not_exist(there: Home, fake: FakeKube) -> None:
    """1: no file has a mistake."""
    labels = {RUN_LABEL: "first"}
    fake.store.create("ConfigMap", {"metadata": {"name": "first", "labels": labels}})
    code, _, err = start(there, "-f", "kernel.yaml", "--node", "nodel")

    assert 1 == code
    assert [
        REFUSED,
        "  namespace default has a run named first; choose another --name",
        "  --node nodel: there is no such node",
    ] == err.splitlines()
    assert [] == posts(fake)


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_every_mistake_of_files_and_names(there: Home, fake: FakeKube, more: tuple[str]) -> None:
    """With `--dry-run` too, which then prints nothing. No word about a plugin that was not read."""
    files = ("-f", "absent.yaml", *BROKEN, "-f", "kernel.yaml", "-f", "quota.yaml")
    asked = ("--upload-url-file", "url", "--nodes", "disk=tape", "--plugin-env", "unread.A=1")
    code, out, err = start(there, *files, *asked, *more)

    assert (2, "") == (code, out)
    assert [
        "status-ctl: cannot read absent.yaml: No such file or directory",
        "broken.yaml: line 1: not an object",
        "quota.yaml: line 1: another plugin is named 'quota'",
        "status-ctl: plugin kernel: no node to run on",
    ] == err.splitlines()[:4]
    assert err.splitlines()[4].startswith(f"status-ctl: {EXPIRED}")
    assert 5 == len(err.splitlines())
    assert [] == posts(fake)


def test_both_files_of_the_upload(there: Home, fake: FakeKube) -> None:
    """And a definition."""
    write(there, "url", "http://store/5ec2e7")
    code, _, err = start(there, *BROKEN, "--upload-url-file", "url", "--upload-ca", "url")

    assert 2 == code
    assert [
        MISTAKE,
        "the upload URL does not begin with https://",
        "url: not a certificate in PEM",
    ] == err.splitlines()


def test_a_name_that_no_run_can_have(there: Home, fake: FakeKube) -> None:
    """The API server has nothing to say of such names."""
    code, _, err = start(there, *BROKEN, "--name", "First")

    assert 2 == code
    assert [MISTAKE, "status-ctl: 'First' is not a valid run name"] == [
        line.partition(": use at most")[0] for line in err.splitlines()
    ]


def test_a_cluster_that_is_not_reachable(there: Home, fake: FakeKube) -> None:
    """2 all the same: what is known has to be repaired first."""
    code, _, err = start(there, *BROKEN, "--context", "nowhere")

    assert 2 == code
    assert err.startswith(f"{MISTAKE}\nstatus-ctl: cannot read from the cluster (unavailable): ")


def test_nothing_but_mistakes(there: Home, fake: FakeKube) -> None:
    """Of no plugin that could be checked is anything said."""
    code, _, err = there.run("run", *BROKEN, "--name", "first", "-n", "default")

    assert (2, f"{MISTAKE}\n") == (code, err)
    assert [] == standing(fake, "first")


def test_a_connection_file_that_exists(there: Home, fake: FakeKube, tmp_path: Path) -> None:
    """It stays as it is."""
    path = tmp_path / "theirs.json"
    path.write_text("{}")
    more = ("--expose", "nodeport", "--connection", str(path), "--image-pull-secret", "mirror")
    code, _, err = start(there, *more)

    assert 2 == code
    assert [
        f"status-ctl: {path} exists: delete it, or name another file with --connection",
        REFUSED,
        "  --image-pull-secret mirror: there is no such Secret in namespace status-reporter-first",
    ] == err.splitlines()
    assert "{}" == path.read_text()


def test_a_namespace_in_use_and_a_node_that_does_not_exist(there: Home, fake: FakeKube) -> None:
    """Nothing was known to be wrong before the namespace was to be made."""
    fake.store.create("Namespace", {"metadata": {"name": "status-reporter-first"}})
    code, _, err = start(there, "-f", "kernel.yaml", "--node", "nodel")

    assert 1 == code
    assert [
        REFUSED,
        '  namespace/status-reporter-first: namespaces "status-reporter-first" already exists; '
        f"{TAKEN}",
        "  --node nodel: there is no such node",
    ] == err.splitlines()
