"""`status-ctl try`: the memory limit."""

import shutil
import subprocess
from pathlib import Path

import pytest

from reporter.author.memory_cgroup import places
from tests.blackbox.ctl.trying import SUCCESS, status_ctl_try


@pytest.fixture(scope="session")
def cgroup_problem():
    """Why no memory cgroup can be made here; empty where it can."""
    return status_ctl_try("--memory", "64Mi", "--", "true").err


@pytest.fixture
def real_limit(cgroup_problem):
    """A machine that lets us make a memory cgroup."""
    if cgroup_problem:
        pytest.skip(cgroup_problem)


def cgroups_of(run):
    """The cgroups that this run has left behind."""
    mounts, own = Path("/proc/self/mountinfo"), Path("/proc/self/cgroup")
    parents = [parent for _, parent in places(mounts.read_text(), own.read_text())]
    return [left for parent in parents for left in parent.glob(f"status-ctl-{run.pid}")]


@pytest.mark.usefixtures("real_limit")
@pytest.mark.parametrize(
    ("script", "codes"),
    [("exec tail /dev/zero", {137}), ("tail /dev/zero; exit 9", {9, 137})],
    ids=["the main process", "a child of it"],
)
def test_a_real_oom_kill(script, codes):
    """The kernel's own counter says so, whatever the exit code."""
    run = status_ctl_try("--memory", "32Mi", "--", "sh", "-c", script)

    assert 3 == run.code
    assert (
        "False",
        "AdapterOOMKilled",
        "Adapter container was killed due to out of memory (OOMKilled)",
    ) == run.condition
    # A child's kill takes the whole container along in cgroup v2, and not in v1.
    assert run.note["evidence"]["adapter"]["exitCode"] in codes
    assert [] == cgroups_of(run)


@pytest.mark.usefixtures("real_limit")
def test_a_limit_that_is_enough_changes_nothing():
    """The adapter has its memory and reports."""
    run = status_ctl_try("--memory", "64Mi", "--", "sh", "-c", SUCCESS)

    assert (0, "") == (run.code, run.err)
    assert "Fine" == run.condition[1]


def test_where_no_cgroup_may_be_made_it_says_so(cgroup_problem):
    """Plainly, and the verdict does not pretend: failed allocations are no OOM kill."""
    before = []
    if not cgroup_problem:
        # A mount namespace in which the cgroup tree is an empty directory.
        hide = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
        before = ["unshare", "--mount", "sh", "-c", hide, "sh"]
        if (
            shutil.which("unshare") is None
            or subprocess.run([*before, "true"], check=False).returncode
        ):
            pytest.skip("a memory cgroup can be made here, and nothing lets us hide the tree")

    run = status_ctl_try("--memory", "32Mi", "--", "tail", "/dev/zero", before=before)

    assert 3 == run.code
    assert "cannot create a memory cgroup" in run.err
    assert "AdapterExitedWithError" == run.condition[1]
