"""FakeKube: an API server in memory, over TLS, as far as a status reporter can tell.

It imitates POST, DELETE, GET, list and watch of the kinds in `kinds.py`, PATCH of a Pod's or
ConfigMap's annotations and of a Job's status, logs, Events (POST to events.k8s.io) and reviews of
one's own rights, with authentication, RBAC (of one namespace: it knows no ClusterRoles), merge
patches, resourceVersion, owners and the API's refusals, and fails on script. It has no controllers.
What it imitates is held against the real API server by `tests/contract/test_*_behaviour.py`; what
it does not imitate is answered with 501.
"""

from tests.fakekube.fake import FakeKube
from tests.fakekube.faults import (
    Answer,
    CloseMidStream,
    ErrorEvent,
    Hang,
    Line,
    Reset,
    Silence,
    Slow,
)
from tests.fakekube.journal import Entry
from tests.fakekube.objects import make_job, make_pod, running, terminated, waiting
from tests.fakekube.rbac import ROLES, Rule

__all__ = [
    "ROLES",
    "Answer",
    "CloseMidStream",
    "Entry",
    "ErrorEvent",
    "FakeKube",
    "Hang",
    "Line",
    "Reset",
    "Rule",
    "Silence",
    "Slow",
    "make_job",
    "make_pod",
    "running",
    "terminated",
    "waiting",
]
