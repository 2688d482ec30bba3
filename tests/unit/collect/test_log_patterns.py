"""The table of `log-analysis`, with lines as the kernel, systemd and kubelets write them."""

from dataclasses import replace

import pytest

from reporter.collect.log_analysis import TABLE, read_patterns

PATTERNS, MISTAKES = read_patterns(TABLE.read_bytes())
KUBELET = "E1128 04:12:07.901274    1187"
SANDBOX = "5f3a9c71e0d24b6897aa10cc42e9d7b35f3a9c71e0d24b6897aa10cc42e9d7b3"
LINES = {
    "oom-kill-node": (
        "kernel",
        "Out of memory: Killed process 48113 (postgres) total-vm:9437184kB, anon-rss:8126464kB, "
        "file-rss:2048kB, shmem-rss:0kB, UID:999 pgtables:17000kB oom_score_adj:0",
        "Out of memory: Kill process 2214 (java) score 871 or sacrifice child",
    ),
    "oom-kill-container": (
        "kernel",
        "Memory cgroup out of memory: Killed process 31007 (node) total-vm:1183744kB, "
        "anon-rss:523264kB, file-rss:4096kB, shmem-rss:0kB, UID:1000 pgtables:2400kB "
        "oom_score_adj:968",
        "Memory cgroup out of memory: Kill process 911 (python3) score 1974 or sacrifice child",
    ),
    "disk-io": (
        "kernel",
        "I/O error, dev nvme1n1, sector 40961 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
        "blk_update_request: I/O error, dev sdb, sector 7340032 op 0x0:(READ) flags 0x0 phys_seg 1 "
        "prio class 0",
        "print_req_error: I/O error, dev sdc, sector 128",
        "blk_update_request: critical medium error, dev sda, sector 91203",
        "Buffer I/O error on dev dm-3, logical block 2621440, async page read",
        "Buffer I/O error on device vdb1, logical block 0",
    ),
    "disk-controller": (
        "kernel",
        "ata3.00: failed command: WRITE FPDMA QUEUED",
        "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
        "nvme nvme2: I/O 517 QID 8 timeout, reset controller",
    ),
    "raid": ("kernel", "md/raid1:md127: Disk failure on sdb2, disabling device."),
    "filesystem-ext4": (
        "kernel",
        "EXT4-fs error (device sda1): ext4_lookup:1855: inode #131074: comm kubelet: deleted inode "
        "referenced: 131099",
        "Aborting journal on device dm-0-8.",
        "EXT4-fs (nvme0n1p1): Remounting filesystem read-only",
    ),
    "filesystem-xfs": (
        "kernel",
        "XFS (dm-2): Corruption detected. Unmount and run xfs_repair",
        "XFS (sdb1): Corruption of in-memory data (0x8) detected at xfs_trans_cancel+0x135/0x160 "
        "[xfs] (fs/xfs/xfs_trans.c:1098).  Shutting down filesystem.",
        "XFS (sdb1): Metadata corruption detected at xfs_dinode_verify+0x739/0x920 [xfs], "
        "inode 0x4021 dinode",
        'XFS (dm-2): metadata I/O error in "xfs_imap_to_bp+0x5c/0x80 [xfs]" at daddr 0x8c40 len 32 '
        "error 5",
        "XFS (dm-2): log I/O error -5",
        "XFS (dm-2): Filesystem has been shut down due to log error (0x2).",
    ),
    "filesystem-btrfs": (
        "kernel",
        "BTRFS error (device sda2): block=203366 write time tree block corruption detected",
        "BTRFS critical (device sdc3): corrupt leaf: root=7 block=3715672 slot=0, unexpected item "
        "end, have 16315 expect 16283",
        "BTRFS: error (device sda2: state AL) in free_log_tree:3284: errno=-5 IO failure",
    ),
    "hung-task": ("kernel", "INFO: task jbd2/sda2-8:349 blocked for more than 120 seconds."),
    "conntrack-full": ("kernel", "nf_conntrack: nf_conntrack: table full, dropping packet"),
    "neighbor-table-full": (
        "kernel",
        "neighbour: arp_cache: neighbor table overflow!",
        "Neighbour table overflow.",
    ),
    "kubelet-stopped": (
        "systemd",
        "kubelet.service: Failed with result 'exit-code'.",
        "containerd.service: Failed with result 'oom-kill'.",
        "crio.service: Failed with result 'core-dump'.",
        "docker.service: Failed with result 'timeout'.",
        "k3s.service: Failed with result 'exit-code'.",
        "k3s-agent.service: Failed with result 'exit-code'.",
        "rke2-server.service: Failed with result 'exit-code'.",
        "rke2-agent.service: Failed with result 'exit-code'.",
        "k0scontroller.service: Failed with result 'exit-code'.",
        "k0sworker.service: Failed with result 'exit-code'.",
        "snap.microk8s.daemon-kubelite.service: Failed with result 'exit-code'.",
        "snap.microk8s.daemon-containerd.service: Failed with result 'exit-code'.",
    ),
    "kubelet-pleg": (
        "kubelet",
        f'{KUBELET} kubelet.go:2412] "Skipping pod synchronization" err="PLEG is not healthy: pleg '
        'was last seen active 3m12.4s ago; threshold is 3m0s"',
        f"{KUBELET} kubelet.go:1765] skipping pod synchronization - [container runtime status "
        "check may not have completed yet, PLEG is not healthy: pleg was last seen active 16m6.5s "
        "ago; threshold is 3m0s]",
    ),
    "kubelet-api": (
        "kubelet",
        f'{KUBELET} kubelet_node_status.go:535] "Unable to update node status" err="update node '
        'status exceeds retry count"',
    ),
    "kubelet-certificate": (
        "kubelet",
        f"{KUBELET} bootstrap.go:266] part of the existing bootstrap client certificate in "
        "/etc/kubernetes/kubelet.conf is expired: 2026-11-20 09:18:55 +0000 UTC",
        f"{KUBELET} bootstrap.go:195] Part of the existing bootstrap client certificate is "
        "expired: 2026-11-20 09:18:55 +0000 UTC",
    ),
    "kubelet-eviction": (
        "k3s",
        'I1128 04:12:07.901274    1187 eviction_manager.go:387] "Eviction manager: must evict '
        'pod(s) to reclaim" resourceName="ephemeral-storage"',
        "I1128 04:12:07.901274    1187 eviction_manager.go:345] eviction manager: must evict "
        "pod(s) to reclaim nodefs",
    ),
    "kubelet-image-gc": (
        "microk8s.daemon-kubelite",
        f'{KUBELET} kubelet.go:1500] "Image garbage collection failed multiple times in a row" '
        'err="wanted to free 966184140 bytes, but freed 0 bytes space with errors in image '
        'deletion"',
    ),
    "cni-not-ready": (
        "kubelet",
        f'{KUBELET} kubelet.go:2916] "Container runtime network not ready" networkReady='
        '"NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: '
        'cni plugin not initialized"',
        f"{KUBELET} kubelet.go:2163] Container runtime network not ready: NetworkReady=false "
        "reason:NetworkPluginNotReady message:Network plugin returns error: cni config "
        "uninitialized",
    ),
    "cni-setup": (
        "kubelet",
        f'{KUBELET} log.go:32] "RunPodSandbox from runtime service failed" err="rpc error: code = '
        f'Unknown desc = failed to setup network for sandbox \\"{SANDBOX}\\": plugin '
        'type=\\"calico\\" failed (add): error getting ClusterInformation: connection is '
        'unauthorized: Unauthorized"',
        f'{KUBELET} remote_runtime.go:193] "RunPodSandbox from runtime service failed" err="rpc '
        "error: code = Unknown desc = failed to create pod network sandbox k8s_web-0_shop_1f_0"
        f'({SANDBOX}): error adding pod shop_web-0 to CNI network \\"multus-cni-network\\": plugin '
        'type=\\"multus\\" name=\\"multus-cni-network\\" failed (add)"',
    ),
    "cni-teardown": (
        "kubelet",
        f'{KUBELET} remote_runtime.go:222] "StopPodSandbox from runtime service failed" err="rpc '
        f'error: code = Unknown desc = failed to destroy network for sandbox \\"{SANDBOX}\\": '
        'plugin type=\\"calico\\" failed (delete): stat /var/lib/calico/nodename: no such file or '
        f'directory" podSandboxID="{SANDBOX}"',
        f'{KUBELET} log.go:32] "StopPodSandbox from runtime service failed" err="rpc error: code = '
        "Unknown desc = failed to destroy network for pod sandbox k8s_web-0_shop_1f_0"
        f'({SANDBOX}): error removing pod shop_web-0 from CNI network \\"multus-cni-network\\": '
        f'plugin type=\\"multus\\" failed (delete)" podSandboxID="{SANDBOX}"',
    ),
}
EVERY = "a text of * alone matches every line"
HARMLESS = [
    ("kernel", "blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0"),
    (
        "kernel",
        "blk_update_request: critical target error, dev sdb, sector 8390656 op 0x3:(DISCARD) flags "
        "0x800 phys_seg 1 prio class 0",
    ),
    (
        "kernel",
        "blk_update_request: I/O error, dev loop3, sector 0 op 0x9:(WRITE_ZEROES) flags 0x800 "
        "phys_seg 0 prio class 0",
    ),
    ("kernel", "Buffer I/O error on dev sr0, logical block 0, async page read"),
    ("kernel", "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none."),
    ("kernel", "XFS (dm-0): Ending clean mount"),
    ("kernel", "oom_reaper: reaped process 48113 (postgres), now anon-rss:0kB, file-rss:0kB"),
    ("systemd", "backup.service: Failed with result 'exit-code'."),
    (
        "kubelet",
        f'{KUBELET} kubelet.go:2412] "Skipping pod synchronization" err="[container runtime status '
        'check may not have completed yet, PLEG is not healthy: pleg has yet to be successful]"',
    ),
    (
        "kubelet",
        f'{KUBELET} log.go:32] "RunPodSandbox from runtime service failed" err="rpc error: code = '
        'NotFound desc = failed to get sandbox image \\"registry.k8s.io/pause:3.9\\": failed to '
        'pull image: dial tcp 10.0.0.9:443: connect: network is unreachable"',
    ),
    # What a user's program says.
    (
        "kubelet",
        f'{KUBELET} prober.go:104] "Probe failed" probeType="Liveness" output="PLEG is not '
        'healthy: pleg was last seen active 3m12.4s ago"',
    ),
    # Another program that repeats what the kernel has said.
    ("node-problem-detector", "message: Out of memory: Killed process 48113 (postgres)"),
]


def found(program: str, line: str) -> list[str]:
    return [
        name for name, each in PATTERNS.items() if each.concerns(program) and each.found_in(line)
    ]


@pytest.mark.parametrize("name", PATTERNS)
def test_each_pattern_is_found_in_real_lines_and_no_other_one_is(name: str) -> None:
    program, *lines = LINES[name]

    assert [[name]] * len(lines) == [found(program, line) for line in lines]


def test_every_text_of_the_table_has_such_a_line() -> None:
    for pattern in PATTERNS.values():
        _, *lines = LINES[pattern.name]
        for text in pattern.match:
            alone = replace(pattern, match=[text])
            assert any(map(alone.found_in, lines)), text


@pytest.mark.parametrize(("program", "line"), HARMLESS)
def test_a_line_that_only_looks_like_it(program: str, line: str) -> None:
    assert [] == found(program, line)


def test_the_table_has_no_mistakes() -> None:
    assert [] == MISTAKES


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("- {name: a, mtch: [b]}", "line 1: [0].mtch: is unknown; did you mean match?"),
        ("\n- {name: a, match: []}", "line 2: [0].match: must have at least 1 item"),
        ("- {name: a}", "line 1: [0].match: is required"),
        *(
            (f"- {{name: a, {field}}}", f"line 1: [0]: {EVERY}")
            for field in ("match: ['']", "match: [b, '*']", "match: [b], unless: ['**']")
        ),
        ("- {name: logs, match: [b]}", "line 1: [0].name: another test is named 'logs'"),
        ("- {name: a, match: [b], minimum: 0}", "line 1: [0].minimum: must be at least 1"),
        ("name: a", "line 1: must be a list"),
        ("- [", "line 2: invalid YAML: "),
    ],
)
def test_mistakes_in_a_table(written: str, said: str) -> None:
    patterns, mistakes = read_patterns(written.encode())

    assert not patterns
    assert mistakes[0].startswith(said)


def test_a_name_that_is_there_twice() -> None:
    _, mistakes = read_patterns(b"- {name: a, match: [b]}\n- {name: a, match: [c]}")

    assert ["line 2: [1].name: another test is named 'a'"] == mistakes


def test_a_table_that_no_variable_could_hold() -> None:
    _, mistakes = read_patterns(b"#" * 100 * 1024 + b"\n")

    assert ["line 1: larger than 102400 bytes"] == mistakes


def test_a_star_stands_for_any_text_and_the_order_counts() -> None:
    patterns, _ = read_patterns(b"- {name: a, match: [one*two], programs: ['web-*']}")
    pattern = patterns["a"]

    assert pattern.found_in("so one and two")
    assert not pattern.found_in("two and one")
    assert (True, False) == (pattern.concerns("web-3"), pattern.concerns("web"))
