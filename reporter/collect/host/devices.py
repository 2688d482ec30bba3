"""Devices as /sys shows them: disks, network interfaces, PCI, firmware."""

from typing import Final

from reporter.collect.host.parsers import LARGEST, Facts, known, natural, short, truth
from reporter.collect.rooted import Sources

_MOST: Final = 512  # of a kind
_SECTOR: Final = 512  # bytes, in which the kernel counts whatever the disk has
_FIRMWARE: Final = (
    "product_name",
    "product_version",
    "board_name",
    "bios_vendor",
    "bios_version",
    "bios_date",
)


def disks(sources: Sources) -> list[Facts]:
    """Return the block devices that have a size."""
    read, found = sources.parsed, []
    for name in sources.names("sys/block")[:_MOST]:
        at = f"sys/block/{name}"
        if not (sectors := read(f"{at}/size", natural)):
            continue
        schedulers = read(f"{at}/queue/scheduler", str) or ""
        found.append(
            known(
                name=short(name),
                size_bytes=min(sectors * _SECTOR, LARGEST),
                model=read(f"{at}/device/model", short),
                vendor=read(f"{at}/device/vendor", short),
                rotational=read(f"{at}/queue/rotational", truth),
                removable=read(f"{at}/removable", truth),
                read_only=read(f"{at}/ro", truth),
                logical_block_bytes=read(f"{at}/queue/logical_block_size", natural),
                physical_block_bytes=read(f"{at}/queue/physical_block_size", natural),
                scheduler=short(schedulers.partition("[")[2].partition("]")[0]),
                partitions=[
                    known(
                        name=short(part),
                        size_bytes=(read(f"{at}/{part}/size", natural) or 0) * _SECTOR,
                    )
                    for part in sources.names(at)
                    if part.startswith(name) and sources.exists(f"{at}/{part}/partition")
                ],
            )
        )
    return found


def interfaces(sources: Sources) -> list[Facts]:
    """Return the network interfaces of the host, without the ends of its containers' cables."""
    read = sources.parsed
    found: list[Facts] = []
    for name in sources.names("sys/class/net", needed=True):
        at = f"sys/class/net/{name}"
        place = sources.target(at)
        if place is None or len(found) == _MOST:
            continue
        virtual = "/devices/virtual/" in f"/{place}"
        own, peer = (read(f"{at}/{each}", natural) for each in ("ifindex", "iflink"))
        # The other end is in another network namespace: a number that says nothing here. A VLAN or
        # a tunnel has a type, and so more lines here.
        cable = f"INTERFACE={name}\nIFINDEX={own}\n"
        if virtual and own != peer and read(f"{at}/uevent", str) == cable:
            continue
        found.append(
            known(
                name=short(name),
                mac_address=read(f"{at}/address", short),
                state=read(f"{at}/operstate", short),
                mtu_bytes=read(f"{at}/mtu", natural),
                speed_mbit_per_second=read(f"{at}/speed", natural) or None,
                virtual=virtual,
                driver=_last(sources.target(f"{at}/device/driver")),
                master=_last(sources.target(f"{at}/master")),
            )
        )
    return found


def pci(sources: Sources) -> list[Facts]:
    """Return the devices of the PCI bus, by the numbers of their makers."""
    home, kinds = "sys/bus/pci/devices", ("vendor", "device", "class")
    return [
        known(
            address=short(name),
            **{kind: sources.parsed(f"{home}/{name}/{kind}", short) for kind in kinds},
            driver=_last(sources.target(f"{home}/{name}/driver")),
        )
        for name in sources.names(home)[:_MOST]
    ]


def firmware(sources: Sources) -> Facts:
    """Return what the firmware says about the machine, without serial numbers."""
    read, at = sources.parsed, "sys/class/dmi/id"
    return known(
        kind="uefi" if sources.exists("sys/firmware/efi") else None,
        system_vendor=read(f"{at}/sys_vendor", short),
        **{name: read(f"{at}/{name}", short) for name in _FIRMWARE},
    )


def _last(path: str | None) -> str | None:
    return None if path is None else short(path.rpartition("/")[2])
