"""L14: facts of this machine, of a copy of another one's files, of an empty tree and of none."""

import errno
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reporter.collect import logs
from reporter.collect.host.facts import main
from reporter.collect.host.parsers import LARGEST
from reporter.common import schema
from tests.integration.collect.trees import copied


def gather(root: Path, out: Path) -> tuple[int, dict]:
    """Return the exit code and the facts, which fit the published schema."""
    code = main({"GATHER_HOST_ROOT": str(root), "GATHER_OUT": str(out), "NODE_NAME": "node1"})
    facts = json.loads((out / "facts.json").read_text())
    assert [] == list(schema.violations("facts.v1", facts))
    return code, facts


def test_this_machine(tmp_path: Path) -> None:
    """All that it has in common with any Linux is there, and is what the system itself says."""
    _, facts = gather(Path("/"), tmp_path)

    assert os.uname().release == facts["kernel"]["release"]
    assert os.uname().machine == facts["kernel"]["architecture"]
    assert os.sysconf("SC_NPROCESSORS_ONLN") == facts["cpu"]["logical"]
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert pages == facts["memory"]["total_bytes"]
    assert "lo" in {each["name"] for each in facts["network"]["interfaces"]}
    assert "/etc" in {each["path"] for each in facts["file_systems"]}


def test_a_copy_of_another_machine(tmp_path: Path) -> None:
    """Nothing of the machine that reads it gets in, and what the copy lacks is absent."""
    code, facts = gather(copied(tmp_path / "host"), tmp_path)

    assert (0, "node1") == (code, facts["node"])
    assert {"id": "rocky", "version_id": "9.4"} == facts["os"]
    assert {"release": "5.14.0-503.el9.aarch64", "architecture": "aarch64"} == facts["kernel"]
    assert {"at": "2023-11-14T22:13:20Z"} == facts["boot"]
    assert {"total_bytes": 1048576} == facts["memory"]
    assert [
        {
            "name": "nvme0n1",
            "size_bytes": 1048576,
            "scheduler": "none",
            "partitions": [{"name": "nvme0n1p1", "size_bytes": 524288}],
        }
    ] == facts["disks"]
    assert {
        "interfaces": [{"name": "eth0", "mtu_bytes": 9001, "virtual": False}],
        "ipv4_addresses": ["10.0.0.7"],
        "resolver": {"nameservers": ["10.0.0.2"]},
    } == facts["network"]
    assert {"running": True, "flags": ["--v=2", "--bootstrap-token=(blanked)"]} == facts["kubelet"]
    assert ["cri-o"] == facts["container_runtimes"]
    assert {"version": 2, "limits": {"/kubepods.slice": {"pids_max": 100}}} == facts["cgroup"]
    assert {"vm.swappiness": "30"} == facts["sysctls"]
    assert {"zone": "Europe/Berlin", "sources": ["chrony"]} == facts["time"]
    assert {"kind": "uefi", "system_vendor": "Amazon EC2"} == facts["firmware"]
    assert "amazon-ec2" == facts["virtualisation"]
    assert [{"address": "0000:00:04.0", "vendor": "0x1d0f", "driver": "nvme"}] == facts[
        "pci_devices"
    ]
    assert not {"file_systems", "problems", "load"} & set(facts)


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_without_files_the_facts_are_partial(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()

    code, facts = gather(tmp_path / name, tmp_path)

    assert 1 == code
    assert {"/proc/cpuinfo", "/usr/lib/os-release", "/proc/1/mounts"} <= {
        each["path"] for each in facts["problems"]
    }
    assert {"api_version", "collected_at", "collector", "node", "problems"} == set(facts)


def test_files_that_are_no_files(tmp_path: Path) -> None:
    """A strange file system gives partial facts: nothing hangs, and nothing crashes."""
    host = copied(tmp_path / "host")
    for name in ("proc/cpuinfo", "etc/hostname", "usr/lib/os-release"):
        (host / name).unlink()
    os.mkfifo(host / "proc/cpuinfo")
    (host / "etc/hostname").mkdir()
    (host / "usr/lib/os-release").symlink_to("os-release")
    (host / "proc/meminfo").write_bytes(b"\xff\0MemTotal: " + b"9" * 100 + b" kB\n" * 1000)
    (host / "sys/block/nvme0n1/size").write_text(str(LARGEST))

    code, facts = gather(host, tmp_path)

    assert 1 == code
    assert ["/proc/cpuinfo", "/etc/os-release", "/usr/lib/os-release"] == [
        each["path"] for each in facts["problems"]
    ]
    assert not {"hostname", "os", "memory"} & set(facts)


class TestLogs:
    """The newest lines of the host's own logs."""

    def gather(self, root: Path, out: Path) -> tuple[int, dict[str, bytes]]:
        out.mkdir()
        told = {"GATHER_HOST_ROOT": str(root), "GATHER_OUT": str(out), "PATH": "/nowhere"}
        code = logs.main(told)
        return code, {each.name: gzip.decompress(each.read_bytes()) for each in out.iterdir()}

    def test_not_those_of_people_and_applications(self, tmp_path: Path) -> None:
        assert (0, {"kern.log.gz": b"one\ntwo\n"}) == self.gather(
            copied(tmp_path / "host"), tmp_path / "out"
        )

    @pytest.mark.parametrize(
        ("most", "expected"), [(6, b"two\n"), (4, b"two\n"), (3, b""), (8, b"one\ntwo\n")]
    )
    def test_a_large_log_begins_with_a_whole_line(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, expected: bytes
    ) -> None:
        host = copied(tmp_path / "host")

        monkeypatch.setattr(logs, "MOST_OF_ONE", most)
        list(logs.newest(host, tmp_path, None, 24))

        assert expected == gzip.decompress((tmp_path / "kern.log.gz").read_bytes())

    def test_all_logs_together_are_limited(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host = copied(tmp_path / "host")
        (host / "var/log/syslog").write_text("three\n")

        monkeypatch.setattr(logs, "MOST", 1)
        kept = list(logs.newest(host, tmp_path, None, 24))

        assert ["over the limit of all logs"] * 2 == [problem for _, problem in kept]
        assert b"" == gzip.decompress((tmp_path / "syslog.gz").read_bytes())

    def test_a_log_whose_older_lines_are_not_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that nobody has written for longer than the hours had nothing to say in them."""
        host = copied(tmp_path / "host")
        os.utime(host / "var/log/kern.log", (0, 0))
        (host / "var/log/syslog").write_text("one\ntwo\n")
        monkeypatch.setattr(logs, "MOST_OF_ONE", 6)

        kept = dict(logs.newest(host, tmp_path, None, 24))

        assert {
            "/var/log/kern.log": "",
            "/var/log/syslog": "older lines are missing, it is too long",
        } == kept

    def test_the_kubelet_of_rke2_has_a_directory_of_its_own(self, tmp_path: Path) -> None:
        host = copied(tmp_path / "host")
        place = host / "var/lib/rancher/rke2/agent/logs"
        place.mkdir(parents=True)
        (place / "kubelet.log").write_text("three\n")

        _, kept = self.gather(host, tmp_path / "out")

        assert {"kern.log.gz": b"one\ntwo\n", "kubelet.log.gz": b"three\n"} == kept

    def test_without_logs_there_is_nothing_to_do(self, tmp_path: Path) -> None:
        assert (2, {}) == self.gather(tmp_path, tmp_path / "out")

    def test_hours_that_are_no_hours(self, tmp_path: Path) -> None:
        assert 3 == logs.main({"GATHER_OUT": str(tmp_path), "LOG_HOURS": "169"})


class TestJournal:
    """By a program of ours, or by the host's own in the host's root."""

    @pytest.fixture
    def host(self, tmp_path: Path) -> Path:
        host = copied(tmp_path / "host")
        (host / "var/log/journal/0a").mkdir(parents=True)
        (host / "var/log/kubelet.log").write_text("three\n")
        return host

    def gather(
        self, host: Path, script: str | None = None, *, chroot: bool = False
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return what is said of each log, and what is kept; `script` is our `journalctl`."""
        out, program = host.parent / "out", host.parent / "journalctl"
        out.mkdir()
        if script is not None:
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        ours = "journalctl" if chroot else script and str(program)
        said = dict(logs.newest(host, out, ours, 24, chroot=chroot))
        read = {each.name: gzip.decompress(each.read_bytes()) for each in out.iterdir()}
        return said, {name: data.decode(errors="replace") for name, data in read.items()}

    def test_the_kernels_lines_are_kept_apart_and_files_that_repeat_a_journal_are_not(
        self, host: Path
    ) -> None:
        said, kept = self.gather(host, 'echo "$@"')

        assert {"/var/log/journal": "", "/var/log/kubelet.log": ""} == said
        assert {"journal-kernel.gz", "journal.gz", "kubelet.log.gz"} == set(kept)
        # Not --lines: before systemd 254, --since with it gives the oldest ones.
        both = f"--directory={host}/var/log/journal --since=-24h --reverse --utc --no-pager "
        assert kept["journal.gz"].startswith(both)
        assert kept["journal-kernel.gz"].startswith(both)
        assert kept["journal-kernel.gz"].endswith(" _TRANSPORT=kernel\n")

    @pytest.mark.parametrize(
        ("script", "why"),
        [
            ("echo 'no such file' >&2; exit 3", "no such file"),
            ("exit 3", "exit code 3"),
            # It goes on without a file that is damaged.
            ("echo entry; echo 'system.journal is truncated' >&2", "system.journal is truncated"),
            (
                "exec head -c 600000 /dev/urandom",
                "the oldest entries are missing, its output is too long",
            ),
        ],
    )
    def test_a_journal_that_cannot_be_read_is_said_and_the_files_are_kept(
        self, host: Path, script: str, why: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(logs, "JOURNAL_SECONDS", 600)
        monkeypatch.setattr(logs, "MOST", 400_000)

        said, kept = self.gather(host, script)

        assert f"journalctl: {why}" == said["/var/log/journal"]
        assert {"kern.log.gz", "kubelet.log.gz"} <= set(kept)

    def test_a_journal_that_takes_too_long(
        self, host: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(logs, "JOURNAL_SECONDS", 1)

        said, kept = self.gather(host, "exec sleep 600")

        why = "journalctl: the oldest entries are missing, it took more than 1 s"
        assert why == said["/var/log/journal"]
        assert {"kern.log.gz", "kubelet.log.gz"} == set(kept)

    def test_one_that_is_lost_at_a_reboot(self, host: Path) -> None:
        """What was before the reboot is in the files alone."""
        (host / "var/log/journal/0a").rmdir()
        (host / "run/log/journal/0a").mkdir(parents=True)

        said, kept = self.gather(host, 'echo "$1"')

        files = {"/var/log/kern.log": "", "/var/log/kubelet.log": ""}
        assert {"/run/log/journal": ""} | files == said
        assert f"--directory={host}/run/log/journal\n" == kept["journal.gz"]

    def test_one_without_entries_of_these_hours_is_not_complete(self, host: Path) -> None:
        """Nobody has written it since, or the clock was wrong: a node always logs something."""
        said, kept = self.gather(host, "exit 0")

        assert "no entries in the last 24 hours" == said["/var/log/journal"]
        assert {"kern.log.gz", "kubelet.log.gz"} <= set(kept)

    def test_an_empty_directory_is_no_journal(self, host: Path) -> None:
        (host / "var/log/journal/0a").rmdir()

        assert {"/var/log/kern.log": "", "/var/log/kubelet.log": ""} == self.gather(host)[0]

    def test_a_pod_that_may_not_change_its_root(
        self, host: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(_: Path) -> None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "chroot", refused)

        said, kept = self.gather(host, chroot=True)

        assert "journalctl: chroot: Operation not permitted" == said["/var/log/journal"]
        assert {"kern.log.gz", "kubelet.log.gz"} == set(kept)

    def test_the_hosts_own_program_runs_in_the_hosts_root(self, host: Path) -> None:
        """It sees no other files, and no variables of ours."""
        if os.geteuid() != 0:
            pytest.skip("only root can change the root")
        with_shell(host)
        program = host / "usr/bin/journalctl"
        program.write_text('#!/bin/sh\necho "$1" "$PYTHONPATH" /*\n')
        program.chmod(0o755)

        said, kept = self.gather(host, chroot=True)

        assert "" == said["/var/log/journal"]
        seen = " ".join(f"/{name}" for name in sorted(os.listdir(host)))
        assert f"--directory=/var/log/journal  {seen}\n" == kept["journal.gz"]

    @pytest.mark.parametrize("asked", ["", "false"])
    def test_nobody_has_asked_for_the_hosts_own_program(
        self, host: Path, asked: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Whatever it is, it is not run."""
        with_shell(host)
        program = host / "usr/bin/journalctl"
        program.write_text("#!/bin/sh\necho ran\n")
        program.chmod(0o755)
        out = host.parent / "out"
        out.mkdir()
        told = {"GATHER_HOST_ROOT": str(host), "GATHER_OUT": str(out), "PATH": "/nowhere"}

        assert 1 == logs.main({**told, "LOG_CHROOT": asked})
        said = "/var/log/journal: not read: journalctl is not installed\n"
        assert said == capsys.readouterr().err
        assert not (out / "journal.gz").exists()

    def test_the_newest_entries_of_a_real_one_are_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever the version of its `journalctl`, and however long the journal is."""
        program, journald = shutil.which("journalctl"), Path("/lib/systemd/systemd-journald")
        mounts = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
        if program is None or not journald.exists() or mounts.returncode:
            pytest.skip("needs systemd-journald, and the right to mount")
        log = tmp_path / "host/var/log"
        log.mkdir(parents=True)
        write_journal(log, entries=1000)
        monkeypatch.setattr(logs, "JOURNAL_SECONDS", 600)
        monkeypatch.setattr(logs, "MOST", 4 * 32_000)
        monkeypatch.setattr(logs, "_PIECE", 4096)

        said = dict(logs.newest(tmp_path / "host", tmp_path, program, 24))

        cut = "journalctl: the oldest entries are missing, its output is too long"
        assert {"/var/log/journal": cut} == said
        lines = gzip.decompress((tmp_path / "journal.gz").read_bytes()).decode().splitlines()
        assert lines[0].endswith(" number 999")
        assert 100 < len(lines) < 1000

    def test_a_host_without_the_program(self, host: Path) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can change the root")

        said, _ = self.gather(host, chroot=True)

        assert "journalctl: No such file or directory" == said["/var/log/journal"]


JOURNAL = """
set -e
mount --bind "$1" /var/log
mount -t tmpfs none /run
mkdir -p /run/systemd/journal.test "$1/journal"
/lib/systemd/systemd-journald test &
until [ -S /run/systemd/journal.test/socket ]; do sleep 0.1; done
"$2" -c '
import random, socket, sys
to = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
to.connect("/run/systemd/journal.test/socket")
for n in range(int(sys.argv[1])):
    noise = random.randbytes(100).hex().encode()
    to.send(b"SYSLOG_IDENTIFIER=kubelet\\nMESSAGE=%s number %d\\n" % (noise, n))' "$3"
kill $!
wait $! || true
mv "$1"/journal/*.test "$1/journal/0123456789abcdef0123456789abcdef"
"""
"""Writes a journal as a node has it, without touching this machine's."""


def write_journal(log: Path, *, entries: int) -> None:
    command = ["unshare", "-m", "sh", "-c", JOURNAL, "sh", str(log), sys.executable, str(entries)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)


def with_shell(root: Path) -> None:
    """Put this machine's sh there, with its libraries."""
    (root / "usr/bin").mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    shutil.copy(os.path.realpath("/bin/sh"), root / "usr/bin/sh")
    linked = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True)
    for library in re.findall(r"/\S+", linked.stdout):
        to = root / library.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, to)
