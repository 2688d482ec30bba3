"""A copy of another machine's files, as much as the gatherers read."""

from pathlib import Path

FILES = {
    "proc/1/mounts": "/dev/vda / xfs rw,seclabel 0 0\ncg /sys/fs/cgroup cgroup2 rw 0 0\n",
    "proc/1/net/fib_trie": "     |-- 10.0.0.7\n        /32 host LOCAL\n",
    "proc/1/net/route": "head\ncali1 0700000A 00000000 0001 0 0 0 FFFFFFFF 0 0 0\n",
    "proc/71/comm": "kubelet\n",
    "proc/71/cmdline": "/usr/bin/kubelet\0--v=2\0--bootstrap-token=abc\0",
    "proc/72/comm": "crio\n",
    "proc/73/comm": "chronyd\n",
    "proc/cpuinfo": "processor : 0\nmodel name : A64\n\n",
    "proc/meminfo": "MemTotal: 1024 kB\n",
    "proc/stat": "btime 1700000000\n",
    "proc/sys/kernel/arch": "aarch64\n",
    "proc/sys/kernel/osrelease": "5.14.0-503.el9.aarch64\n",
    "proc/sys/vm/swappiness": "30\n",
    "proc/sys/net/ipv4/ip_forward": "1\n",
    "etc/hostname": "rocky1\n",
    "etc/resolv.conf": "nameserver 10.0.0.2\n",
    "usr/lib/os-release": 'ID="rocky"\nVERSION_ID="9.4"\n',
    "usr/share/zoneinfo/Europe/Berlin": "TZif2",
    "sys/block/nvme0n1/size": "2048\n",
    "sys/block/nvme0n1/queue/scheduler": "mq-deadline [none]\n",
    "sys/block/nvme0n1/nvme0n1p1/size": "1024\n",
    "sys/block/nvme0n1/nvme0n1p1/partition": "1\n",
    "sys/block/loop0/size": "0\n",
    "sys/devices/pci0/net/eth0/mtu": "9001\n",
    "sys/devices/pci0/net/eth0/speed": "-1\n",
    "sys/devices/virtual/net/cali1/ifindex": "9\n",
    "sys/devices/virtual/net/cali1/iflink": "3\n",
    "sys/devices/virtual/net/cali1/uevent": "INTERFACE=cali1\nIFINDEX=9\n",
    "sys/devices/system/cpu/online": "0-1\n",
    "sys/fs/cgroup/kubepods.slice/memory.max": "max\n",
    "sys/fs/cgroup/kubepods.slice/pids.max": "100\n",
    "sys/firmware/efi/x": "",
    "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
    "sys/bus/pci/drivers/nvme/x": "",
    "sys/bus/pci/devices/0000:00:04.0/vendor": "0x1d0f\n",
    "var/log/kern.log": "one\ntwo\n",
    "var/log/cloud-init-output.log": "kubeadm join --token abc\n",
    "var/log/secure": "who has logged in\n",
    "var/log/pods/a/0.log": "an application's\n",
}
LINKS = {
    "etc/os-release": "../usr/lib/os-release",
    "etc/localtime": "/usr/share/zoneinfo/Europe/Berlin",
    "sys/class/net/eth0": "../../devices/pci0/net/eth0",
    "sys/class/net/cali1": "../../devices/virtual/net/cali1",
    "sys/bus/pci/devices/0000:00:04.0/driver": "../../drivers/nvme",
}


def copied(root: Path) -> Path:
    """Make the tree below `root`."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, to in LINKS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(to)
    return root
