"""Devices as /sys shows them: disks, network interfaces, PCI, firmware."""

from typing import Any, Final

from reporter.collect.host.numbers import LARGEST, known, natural, short, truth
from reporter.collect.host.sources import Sources

Facts = dict[str, Any]

_MOST: Final = 512  # of a kind
_SECTOR: Final = 512  # bytes, in which the kernel counts whatever the disk has
_FIRMWARE: Final = {
    "sys_vendor": "system_vendor",
    "product_name": "product_name",
    "product_version": "product_version",
    "board_name": "board_name",
    "bios_vendor": "bios_vendor",
    "bios_version": "bios_version",
    "bios_date": "bios_date",
}


def disks(sources: Sources) -> list[Facts]:
    """Return the block devices that have a size."""
    found = []
    for name in sources.names("sys/block")[:_MOST]:
        at = f"sys/block/{name}"
        sectors = sources.parsed(f"{at}/size", natural)
        if not sectors:
            continue
        found.append(
            known(
                name=short(name),
                size_bytes=min(sectors * _SECTOR, LARGEST),
                model=sources.parsed(f"{at}/device/model", short),
                vendor=sources.parsed(f"{at}/device/vendor", short),
                rotational=sources.parsed(f"{at}/queue/rotational", truth),
                removable=sources.parsed(f"{at}/removable", truth),
                read_only=sources.parsed(f"{at}/ro", truth),
                logical_block_bytes=sources.parsed(f"{at}/queue/logical_block_size", natural),
                physical_block_bytes=sources.parsed(f"{at}/queue/physical_block_size", natural),
                scheduler=_chosen(sources.text(f"{at}/queue/scheduler") or ""),
                partitions=[
                    known(
                        name=short(part),
                        size_bytes=(sources.parsed(f"{at}/{part}/size", natural) or 0) * _SECTOR,
                    )
                    for part in sources.names(at)
                    if part.startswith(name) and sources.exists(f"{at}/{part}/partition")
                ],
            )
        )
    return found


def _chosen(schedulers: str) -> str | None:
    return short(schedulers.partition("[")[2].partition("]")[0])


def interfaces(sources: Sources) -> list[Facts]:
    """Return the network interfaces of the host, without the ends of its containers' cables."""
    found: list[Facts] = []
    for name in sources.names("sys/class/net", needed=True):
        at = f"sys/class/net/{name}"
        place = sources.target(at)
        if place is None or len(found) == _MOST:
            continue
        virtual = "/devices/virtual/" in f"/{place}"
        own, peer = (sources.parsed(f"{at}/{each}", natural) for each in ("ifindex", "iflink"))
        # The other end is in another network namespace: a number that says nothing here.
        if virtual and own != peer and sources.text(f"{at}/uevent") == _veth(name, own):
            continue
        speed = sources.parsed(f"{at}/speed", natural)
        found.append(
            known(
                name=short(name),
                mac_address=sources.parsed(f"{at}/address", short),
                state=sources.parsed(f"{at}/operstate", short),
                mtu_bytes=sources.parsed(f"{at}/mtu", natural),
                speed_mbit_per_second=speed or None,
                virtual=virtual,
                driver=_last(sources.target(f"{at}/device/driver")),
                master=_last(sources.target(f"{at}/master")),
            )
        )
    return found


def _veth(name: str, index: int | None) -> str:
    """Return the uevent of an interface of no type of its own; a VLAN, a tunnel has DEVTYPE."""
    return f"INTERFACE={name}\nIFINDEX={index}\n"


def pci(sources: Sources) -> list[Facts]:
    """Return the devices of the PCI bus, by the numbers of their makers."""
    found = []
    for name in sources.names("sys/bus/pci/devices")[:_MOST]:
        at = f"sys/bus/pci/devices/{name}"
        found.append(
            known(
                address=short(name),
                **{
                    kind: sources.parsed(f"{at}/{kind}", short)
                    for kind in ("vendor", "device", "class")
                },
                driver=_last(sources.target(f"{at}/driver")),
            )
        )
    return found


def firmware(sources: Sources) -> Facts:
    """Return what the firmware says about the machine, without serial numbers."""
    kind = None
    if sources.exists("sys/firmware"):
        kind = "uefi" if sources.exists("sys/firmware/efi") else None
    said = {
        ours: sources.parsed(f"sys/class/dmi/id/{name}", short) for name, ours in _FIRMWARE.items()
    }
    return known(kind=kind, **said)


def _last(path: str | None) -> str | None:
    return None if path is None else short(path.rpartition("/")[2])
