"""Where a memory cgroup may be made, from what the kernel says of mounts and of ourselves."""

import pytest

from reporter.author.memory_cgroup import V1, V2, MemoryCgroup, NoMemoryCgroup, places

V1_MOUNT = "35 31 0:32 {root} {at} rw,relatime - cgroup cgroup rw,memory\n"
V2_MOUNT = "30 23 0:26 / {at} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
OTHERS = (
    "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
    "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
)


def tree(root, controllers):
    """Make the directories of a v2 tree, each handing down these controllers."""
    for path, handed_down in controllers.items():
        (root / path).mkdir(parents=True, exist_ok=True)
        (root / path / "cgroup.subtree_control").write_text(f"{handed_down}\n")


def test_v1_is_made_below_our_own_cgroup(tmp_path):
    """On the hierarchy that has the memory controller."""
    mounts = OTHERS + V1_MOUNT.format(root="/", at=tmp_path)

    assert [(V1, tmp_path / "user/us")] == list(
        places(mounts, "9:name=systemd:/other\n4:hugetlb,memory:/user/us\n0::/\n")
    )


def test_v1_in_a_container_sees_only_its_own_part_of_the_tree(tmp_path):
    """What is mounted is a part of the tree, and our cgroup is named from the tree's root."""
    mounts = V1_MOUNT.format(root="/docker/abc", at=tmp_path)

    assert [(V1, tmp_path / "us")] == list(places(mounts, "4:memory:/docker/abc/us\n"))
    assert [(V1, tmp_path)] == list(places(mounts, "4:memory:/docker/abc\n"))


def test_v2_is_made_beside_our_own_cgroup(tmp_path):
    """A cgroup with processes in it hands nothing down, the one above it does."""
    tree(tmp_path, {"app.slice": "cpu memory pids", "app.slice/term.scope": ""})
    mounts = OTHERS + V2_MOUNT.format(at=tmp_path)

    assert [(V2, tmp_path / "app.slice")] == list(places(mounts, "0::/app.slice/term.scope\n"))


def test_v2_at_the_root_of_the_tree(tmp_path):
    """The real root may have processes and hand controllers down."""
    tree(tmp_path, {".": "memory"})

    assert [(V2, tmp_path)] == list(places(V2_MOUNT.format(at=tmp_path), "0::/\n"))


def test_v2_without_the_memory_controller_is_no_place(tmp_path):
    """As in a hybrid system, where v1 has the controller."""
    tree(tmp_path, {".": "", "us": ""})

    assert [] == list(places(V2_MOUNT.format(at=tmp_path), "0::/us\n"))


@pytest.mark.parametrize(
    ("mounts", "cause"),
    [
        (OTHERS, "no memory controller is mounted"),
        (V1_MOUNT.format(root="/", at="/nowhere"), "/nowhere/us: no such file or directory"),
    ],
)
def test_no_place_is_told_with_its_reason(tmp_path, mounts, cause):
    """The person has to know why there is no limit."""
    (tmp_path / "mounts").write_text(mounts)
    (tmp_path / "own").write_text("4:memory:/us\n0::/\n")

    with pytest.raises(NoMemoryCgroup) as refused:
        MemoryCgroup.make(2**20, mounts=tmp_path / "mounts", own=tmp_path / "own")

    assert cause == str(refused.value)


def test_a_system_without_such_files_has_no_place(tmp_path):
    """As macOS."""
    with pytest.raises(NoMemoryCgroup, match="no memory controller is mounted"):
        MemoryCgroup.make(2**20, mounts=tmp_path / "none", own=tmp_path / "none")


@pytest.mark.parametrize(
    ("version", "file", "text", "expected"),
    [
        (V1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", 2),
        (V1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", 0),
        (V2, "memory.events", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 1\noom_group_kill 1\n", 1),
        (V2, "memory.events", "low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\n", 0),
    ],
)
def test_oom_kills_are_counted_by_the_kernel(tmp_path, version, file, text, expected):
    """Each version in its own file; a kernel that does not count has seen none."""
    (tmp_path / file).write_text(text)

    assert expected == MemoryCgroup(tmp_path, version).oom_kills
