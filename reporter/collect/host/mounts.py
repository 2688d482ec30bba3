"""What is mounted on a machine, without what its containers mount, and its control groups."""

import re
from typing import Any, Final

from reporter.collect.host.numbers import known, short
from reporter.collect.host.system import BLANKED, without_user

Facts = dict[str, Any]

_MOST: Final = 1_024  # entries of a list
_ESCAPED = re.compile(r"\\([0-3][0-7]{2})")
_SECRET = re.compile(r"^(user(name)?|pass(word)?|secret|key|token|cred)")
_OF_CONTAINERS = re.compile(
    r"/kubelet/pods/|/kubelet/plugins/|/run/(?:containerd|crio|netns|docker)/|"
    r"/containers/storage/|/docker/overlay2/|/containerd/"
)


def mounts(text: str) -> tuple[list[Facts], int]:
    """Read /proc/mounts: the host's own mounts, and how many there are of Pods and containers."""
    found: list[Facts] = []
    others = 0
    for line in text.splitlines():
        match line.split(" "):
            case [device, path, kind, options, *_]:
                at = _plain(path)
                if _OF_CONTAINERS.search(at):
                    others += 1
                elif len(found) < _MOST:
                    found.append(
                        known(
                            path=short(at),
                            device=short(without_user(_plain(device))),
                            type=short(kind),
                            options=_options(options),
                        )
                    )
    return found, others


def cgroup_version(found: list[Facts]) -> int | None:
    """Return 2 where the unified hierarchy stands at /sys/fs/cgroup, 1 where another does."""
    kinds = {each.get("path"): each.get("type") for each in found}
    if kinds.get("/sys/fs/cgroup") == "cgroup2":
        return 2
    return 1 if "cgroup" in kinds.values() else None


def _plain(text: str) -> str:
    """Undo the escapes: three octal digits, which stand for bytes."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def _options(text: str) -> list[str]:
    said = []
    for option in text.split(",")[:_MOST]:
        name, equals, _ = option.partition("=")
        blank = equals and _SECRET.match(name)
        said.append(short(f"{name}={BLANKED}" if blank else option))
    return [each for each in said if each]
