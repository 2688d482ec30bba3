"""What the files of a machine say: a line of a table for each situation."""

import pytest

from reporter.collect.host import parsers
from reporter.collect.host.parsers import (
    count,
    decimal,
    hexadecimal,
    natural,
    short,
    truth,
    whole,
    words,
)

CPUINFO = """\
processor	: 0
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R)
physical id	: 0
core id		: 0
microcode	: 0x1
flags		: sse2 fpu hypervisor

processor	: 1
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R)
physical id	: 0
core id		: 0

processor	: 2
physical id	: 1
core id		: 0
"""
ARM = """\
processor	: 0
CPU implementer	: 0x41
Features	: fp asimd

Hardware	: a board
"""
FIB_TRIE = """\
Local:
  +-- 0.0.0.0/0 3 0 5
     |-- 10.0.0.7
        /32 host LOCAL
     |-- 10.0.0.255
        /32 link BROADCAST
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 9.9.9.999
        /32 host LOCAL
"""
ROUTE = """\
Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	0100000A	0003	0	0	100	00000000	1500	0	0
eth0	0000000A	00000000	0001	0	0	100	00FFFFFF	0	0	0
eth0	0000000A	00000000	0000	0	0	100	00FFFFFF	0	0	0
eth0	X	00000000	0001	0	0	100	00FFFFFF	0	0	0
eth1	00000000	00000000	0001	0	0	-1	00000000	-1500	0	0
short
"""
V6 = "fe80" + "0" * 27 + "7"
HOP = "fe80" + "0" * 27 + "1"
NONE = "0" * 32
ROUTE6 = f"""\
{NONE} 00 {NONE} 00 {HOP} 00000400 00000001 00000000 00000003 eth0
fd00{"0" * 28} 40 {NONE} 00 {NONE} 00000100 00000001 00000000 00000001 eth0
{NONE} 00 {NONE} 00 {NONE} ffffffff 00000001 00000000 00200200 lo
{NONE} 00 {NONE} 00 {NONE} 00000400 00000001 00000000 00000203 eth0
ff00{"0" * 28} 08 {NONE} 00 {NONE} 00000100 00000001 00000000 00000001 eth0
{NONE} 81 {NONE} 00 {NONE} 00000100 00000001 00000000 00000001 eth0
nothing
"""
IF_INET6 = f"""\
{"0" * 31}1 01 80 10 80 lo
{V6} 02 40 20 80 eth0
{V6} 02 f0 20 80 eth0
fd00{"0" * 28} 02 40 99 80 eth0
broken
"""
PRESSURE = "some avg10=1.50 avg60=0.00 avg300=nan total=2500000\nfull avg10=x\nother avg10=1.0\n\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian \\"x\\""\nHOME_URL="u"\nno line\n',
            {"id": "debian", "version_id": "12", "pretty_name": 'Debian "x"'},
            id="quoted",
        ),
        pytest.param(
            "ID='rocky'\nID_LIKE=\"rhel centos fedora\"\nVARIANT_ID=\n",
            {"id": "rocky", "id_like": ["centos", "fedora", "rhel"]},
            id="alike",
        ),
        pytest.param("", {}, id="empty"),
    ],
)
def test_os_release(text, expected):
    assert expected == parsers.os_release(text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("quiet root=/dev/sda1\n", ["quiet", "root=/dev/sda1"]),
        ("rd.luks.key=abc token_file=x", ["rd.luks.key=(blanked)", "token_file=(blanked)"]),
        ("kubelet\0--config=/a b\0\0", ["kubelet", "--config=/a b"]),
        ("k\0--auth-token\0abc\0--v=1\0", ["k", "--auth-token", "(blanked)", "--v=1"]),
        ("k\0--password\0--v=1\0", ["k", "--password", "--v=1"]),
        ("inst.ks=https://user:hunt@er2@host/ks@1", ["inst.ks=https://(blanked)@host/ks@1"]),
        ("proxy=http://u:p@h:3128 a=b@c", ["proxy=http://(blanked)@h:3128", "a=b@c"]),
        ("ks=http://h/a?token=abc&b=c x=y", ["ks=http://h/a?(blanked)", "x=y"]),
        (f"k\0x=http://u:{'p' * 2000}@h/\0", ["k", "x=http://(blanked)@h/"]),
        ("netroot=iscsi:u:p@10.0.0.1::3260", ["netroot=iscsi:(blanked)@10.0.0.1::3260"]),
        ("cifspass=x root=UUID=a", ["cifspass=(blanked)", "root=UUID=a"]),
        ("systemd.setenv=DB_PASSWORD=x=y", ["systemd.setenv=DB_PASSWORD=(blanked)"]),
        (
            'a="b c" systemd.setenv="KEY=x y" z',
            ['a="b c"', 'systemd.setenv="KEY=(blanked)', "z"],
        ),
        ("", []),
    ],
)
def test_what_may_be_a_credential_is_blanked_on_a_command_line(line, expected):
    assert expected == parsers.arguments(line)


def test_processors():
    assert {
        "logical": 3,
        "sockets": 2,
        "cores": 2,
        "model": "Intel(R) Xeon(R)",
        "vendor": "GenuineIntel",
        "microcode": "0x1",
        "flags": ["fpu", "hypervisor", "sse2"],
    } == parsers.cpu(CPUINFO)
    assert {"logical": 1, "vendor": "0x41", "flags": ["asimd", "fp"]} == parsers.cpu(ARM)
    assert {} == parsers.cpu("")


def test_memory():
    text = "MemTotal:  10 kB\nHugePages_Total:  3\nMemFree: x kB\nOther: 1 kB\nSwapFree:\n"

    assert {"total_bytes": 10240, "huge_pages": 3} == parsers.memory(text)


def test_swaps():
    text = "Filename Type Size Used Priority\n/dev/sda2 partition 8 0 -2\n/f file x 0\nbad\n"

    assert [
        {"path": "/dev/sda2", "type": "partition", "size_bytes": 8192, "priority": -2},
        {"path": "/f", "type": "file"},
    ] == parsers.swaps(text)


def test_modules_and_file_systems():
    assert ["overlay", "veth"] == parsers.modules("veth 1 0 - Live 0x0\n\noverlay 2 0 - Live 0x0\n")
    assert ["ext4", "tmpfs"] == parsers.filesystems("nodev\ttmpfs\n\text4\n\n")


def test_pressure():
    """A number that is none is absent."""
    some = {"avg10_percent": 1.5, "avg60_percent": 0.0, "total_seconds": 2.5}

    assert {"some": some} == parsers.pressure(PRESSURE)


def test_load_and_boot():
    assert {"load1": 1.0, "load5": 0.5, "load15": 0.25} == parsers.load("1.00 0.50 0.25 1/2 3\n")
    assert {} == parsers.load("")
    assert 1700000000 == parsers.boot_time("cpu 1\nbtime 1700000000\n")
    assert parsers.boot_time("cpu 1\n") is None


@pytest.mark.parametrize(
    ("vendor", "product", "flags", "hypervisor", "expected"),
    [
        ("QEMU", "Standard PC", [], "", "qemu"),
        ("Microsoft Corporation", "Virtual Machine", [], "", "hyper-v"),
        (None, "OpenStack Nova", [], "", "openstack"),
        ("Amazon EC2", "m5.large", ["hypervisor"], "xen\n", "amazon-ec2"),
        (None, None, ["hypervisor"], "", "unknown hypervisor"),
        (None, None, [], "xen\n", "xen"),
        ("Dell Inc.", "PowerEdge", ["fpu"], "", None),
    ],
)
def test_virtualisation(vendor, product, flags, hypervisor, expected):
    firmware = parsers.known(system_vendor=vendor, product_name=product)
    assert expected == parsers.virtualisation(firmware, flags, hypervisor)


def test_ipv4():
    """The kernel writes addresses in the order of its memory."""
    assert ["10.0.0.7"] == parsers.ipv4_addresses(FIB_TRIE)
    assert [
        {
            "destination": "0.0.0.0/0",
            "gateway": "10.0.0.1",
            "interface": "eth0",
            "metric": 100,
            "mtu_bytes": 1500,
        },
        {"destination": "10.0.0.0/24", "interface": "eth0", "metric": 100},
        {"destination": "0.0.0.0/0", "interface": "eth1"},
    ] == parsers.ipv4_routes(ROUTE)


def test_ipv6():
    """Without the loopback's, multicast, and routes that refuse."""
    assert [
        {"address": "fe80::7", "prefix_length": 64, "scope": "link", "interface": "eth0"},
        {"address": "fd00::", "prefix_length": 64, "interface": "eth0"},
    ] == parsers.ipv6_addresses(IF_INET6)
    assert [
        {"destination": "::/0", "gateway": "fe80::1", "interface": "eth0", "metric": 1024},
        {"destination": "fd00::/64", "interface": "eth0", "metric": 256},
    ] == parsers.ipv6_routes(ROUTE6)


def test_resolver():
    text = "# c\nnameserver 10.0.0.1\nnameserver\nsearch old\nsearch a.b c\noptions ndots:2 edns0\n"

    assert {
        "nameservers": ["10.0.0.1"],
        "search": ["a.b", "c"],
        "options": ["edns0", "ndots:2"],
    } == parsers.resolver(text)


def test_mounts_of_containers_are_counted_and_passwords_blanked():
    found, others = parsers.mounts(
        "/dev/sda1 / ext4 rw,relatime 0 0\n"
        "//u:p@ss@host/a /mnt/a\\040b cifs rw,username=me,password=x,vers=3 0 0\n"
        "tmpfs /var/lib/kubelet/pods/1/volumes/x tmpfs rw 0 0\n"
        "broken\n"
    )

    assert 1 == others
    assert [
        {"path": "/", "device": "/dev/sda1", "type": "ext4", "options": ["rw", "relatime"]},
        {
            "path": "/mnt/a b",
            "device": "//(blanked)@host/a",
            "type": "cifs",
            "options": ["rw", "username=(blanked)", "password=(blanked)", "vers=3"],
        },
    ] == found


def test_very_many_mounts():
    found, others = parsers.mounts("a /x ext4 rw 0 0\n" * 1_100)

    assert (1_024, 0) == (len(found), others)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", 2),
        ("t /sys/fs/cgroup tmpfs rw 0 0\nc /sys/fs/cgroup/cpu cgroup rw 0 0\n", 1),
        ("", None),
    ],
)
def test_the_version_of_control_groups(text, expected):
    assert expected == parsers.cgroup_version(parsers.mounts(text)[0])


def test_numbers():
    assert [7, -1, None, None, None] == [*map(whole, (" 7\n", "-1", "x", "٣", "9" * 19))]
    assert [7, None, None] == [*map(natural, ("7", "-7", "x"))]
    assert [1.5, 2.0, None, None] == [*map(decimal, ("1.5", "2", "nan", "1e9"))]
    assert [255, 16, None] == [*map(hexadecimal, ("0xff", "10", "g"))]
    assert [True, False, None] == [*map(truth, ("Y\n", "0", "maybe"))]
    assert [5, 1, None, None, None] == [*map(count, ("0-3,8\n", "0", "", "3-1", "0-x"))]


def test_text_is_one_line_of_at_most_a_thousand_characters():
    assert [None, "a b", 1024] == [short("\n\0"), short(" a\x1b\nb "), len(short("x" * 2000) or "")]
    assert ["a", "b"] == words("b a\nb")
