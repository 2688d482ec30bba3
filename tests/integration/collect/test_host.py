"""L14: facts of this machine, of a copy of another one's files, of an empty tree and of none."""

import gzip
import json
import os
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
        list(logs.newest(host, tmp_path, None))

        assert expected == gzip.decompress((tmp_path / "kern.log.gz").read_bytes())

    def test_all_logs_together_are_limited(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        host = copied(tmp_path / "host")
        (host / "var/log/syslog").write_text("three\n")

        monkeypatch.setattr(logs, "MOST", 1)
        kept = list(logs.newest(host, tmp_path, None))

        assert ["over the limit of all logs"] * 2 == [problem for _, problem in kept]
        assert b"" == gzip.decompress((tmp_path / "syslog.gz").read_bytes())

    def test_without_logs_there_is_nothing_to_do(self, tmp_path: Path) -> None:
        assert (2, {}) == self.gather(tmp_path, tmp_path / "out")

    def test_a_journal_that_nobody_can_read_is_said(self, tmp_path: Path) -> None:
        """On many nodes it has all logs of the kubelet: without it nothing is complete."""
        host = copied(tmp_path / "host")
        (host / "var/log/journal").mkdir()

        assert (1, {"kern.log.gz": b"one\ntwo\n"}) == self.gather(host, tmp_path / "out")
        assert ("/var/log/journal", "not read: journalctl is not installed") in list(
            logs.newest(host, tmp_path / "out", None)
        )

    def test_a_journal_is_read_by_a_program_of_ours(self, tmp_path: Path) -> None:
        """One that the image brings; nothing of the host is executed."""
        (tmp_path / "host/var/log/journal").mkdir(parents=True)
        (tmp_path / "bin").mkdir()
        program = tmp_path / "bin/journalctl"
        program.write_text('#!/bin/sh\necho "$@"; exit 3\n')
        program.chmod(0o755)
        out = tmp_path / "out"
        out.mkdir()

        kept = list(logs.newest(tmp_path / "host", out, str(program)))

        said = gzip.decompress((out / "journal.gz").read_bytes()).decode()
        assert [("/var/log/journal", "journalctl ended with exit code 3")] == kept
        assert f"--directory={tmp_path}/host/var/log/journal" in said
