"""What the scheduler's words tell about the one node that a Pod may run on.

The launcher has no permission to read nodes. kube-scheduler counts the reasons of all nodes, sorted
as text: `0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s)
[NodeAffinity]. ...`. It sets aside the nodes that the Pod does not name before it looks at one.
"""

import re
from typing import Final

_COUNTED = re.compile(r"0/(\d+) nodes are available: (.*?)\.(?: |$)", re.DOTALL)
_ASIDE: Final = frozenset(
    {
        "node(s) didn't satisfy plugin(s) [NodeAffinity]",  # since 1.31
        "node is filtered out by the prefilter result",  # 1.29 and 1.30
    }
)
_CORDONED: Final = "node(s) were unschedulable"
_NO_NODES: Final = "no nodes available to schedule pods"


def node_is_away(message: str) -> bool:
    """Return whether the only node that a Pod may run on is gone or cordoned."""
    if message.startswith(_NO_NODES):
        return True
    found = _COUNTED.match(message)
    if found is None:
        return False
    aside = 0
    for part in found[2].split(", "):
        count, _, reason = part.partition(" ")
        if reason in _ASIDE and count.isdecimal():
            aside += int(count)
        elif reason != _CORDONED:
            return False
    # Where others were looked at too, nobody knows which of them is the cordoned one.
    return aside >= int(found[1]) - 1
