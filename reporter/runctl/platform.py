"""Whether the cluster gives Pods their users and groups, as OpenShift does.

Its default constraints refuse fixed ones that are not of the namespace's range.
"""

from contextlib import closing
from typing import TYPE_CHECKING, Final

from reporter.cli.cluster import TIMEOUT, asking
from reporter.common.objects import items, text
from reporter.errors import Forbidden

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_CONSTRAINTS: Final = "security.openshift.io"


def gives_users(api: "KubeApi") -> bool:
    """Return whether it does; no without permission to ask. Raises CannotTell."""
    with closing(api.reading()) as reading, asking():
        try:
            found = reading.document("/apis", timeout=TIMEOUT)
        except Forbidden:
            return False
    return any(text(each, "name") == _CONSTRAINTS for each in items(found, "groups"))
