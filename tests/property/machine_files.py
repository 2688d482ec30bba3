"""Files of a machine that are damaged, and every parser that reads such files."""

import json
import random
from collections.abc import Iterator

from reporter.collect.host import parsers
from reporter.collect.host.parsers import count, decimal, hexadecimal, short, truth, whole, words
from reporter.common import schema
from reporter.results.compare import lines

SEEDS = (
    'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian \\"x\\""\nID_LIKE="a b"\n',
    "processor\t: 0\nmodel name\t: Xeon\nphysical id\t: 0\ncore id\t: 0\nflags\t: fpu sse\n\n",
    "MemTotal:  10 kB\nHugePages_Total:  3\nSwapFree: 7 kB\n",
    "Filename Type Size Used Priority\n/dev/sda2 partition 8 0 -2\n",
    "some avg10=1.50 avg60=0.00 avg300=0.10 total=2500000\nfull avg10=0.00 avg60=0.00\n",
    "     |-- 10.0.0.7\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host LOCAL\n",
    "Iface\neth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t1500\t0\t0\n",
    "fe800000000000000000000000000007 02 40 20 80 eth0\n",
    f"{'0' * 32} 00 {'0' * 32} 00 fe80{'0' * 27}1 00000400 00000001 00000000 00000003 eth0\n",
    "nameserver 10.0.0.1\nsearch a.b c\noptions ndots:2\n",
    "//u:p@host/a /mnt/a\\040b cifs rw,password=x,vers=3 0 0\n/dev/vda / ext4 rw 0 0\n",
    "kubelet\0--token=abc\0--auth-key\0x\0",
    "1.00 0.50 0.25 1/2 3\nbtime 1700000000\n0-3,8-11\n0xff\nY\n",
)
TOKENS = ("\n", "\0", " ", "\t", ":", "=", "\\", '"', "-", ",", "@", "[", "9" * 30, "nan", "1e999")
TOKENS += (
    "\ud800",
    "\ufffd",
    "\x1b[31m",
    "٣",
    "-1",
    "0x",
    "18446744073709551616",
    "kB",
    "password=",
)
PARTS = {
    "os": parsers.os_release,
    "cpu": parsers.cpu,
    "memory": parsers.memory,
    "swaps": parsers.swaps,
    "load": parsers.load,
    "mounts": lambda text: parsers.mounts(text)[0],
}
NETWORK = {
    "ipv4_addresses": parsers.ipv4_addresses,
    "ipv6_addresses": parsers.ipv6_addresses,
    "ipv4_routes": parsers.ipv4_routes,
    "ipv6_routes": parsers.ipv6_routes,
    "resolver": parsers.resolver,
}
NUMBERS = (whole, decimal, hexadecimal, truth, count, short, parsers.boot_time)


def mutations(seed: int, how_many: int) -> Iterator[str]:
    """Files with one to four cuts, copies, foreign characters or tokens each."""
    dice = random.Random(seed)
    for _ in range(how_many):
        text = dice.choice(SEEDS)
        for _ in range(dice.randint(1, 4)):
            at, size = dice.randint(0, len(text)), dice.randint(1, 8)
            inserted = dice.choice(
                (dice.choice(TOKENS), chr(dice.randrange(1, 0x3000)), text[: size * 2], "")
            )
            text = text[:at] + inserted + text[at + dice.choice((0, size)) :]
        yield text


def facts_of(text: str) -> dict[str, object]:
    """Return facts in which every source of a list or an object was this text."""
    for number in NUMBERS:
        number(text)
    return {
        "api_version": "v1",
        "collected_at": "now",
        "collector": "test",
        **{name: parse(text) for name, parse in PARTS.items()},
        "network": {name: parse(text) for name, parse in NETWORK.items()},
        "kernel": {
            "command_line": parsers.arguments(text),
            "file_systems": parsers.filesystems(text),
        },
        "modules": parsers.modules(text),
        "container_runtimes": words(text),
        "pressure": {"cpu": parsers.pressure(text)},
        "virtualisation": parsers.virtualisation({"system_vendor": text}, [], text) or "none",
    }


def check(text: str, *, by_schema: bool) -> None:
    """Fail unless the facts of such a machine are JSON of the published schema."""
    facts = facts_of(text)
    json.dumps(facts, allow_nan=False, ensure_ascii=False).encode()
    if by_schema:
        assert all(isinstance(value, str) for value in lines(facts).values())
        assert [] == list(schema.violations("facts.v1", facts)), text
