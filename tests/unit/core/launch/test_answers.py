"""Which refusals of a plugin's object are its own fault, and which are trouble with the API."""

import pytest

from reporter.core.launch.answers import for_good

RBAC = (
    'jobs.batch is forbidden: User "system:serviceaccount:n:r-aggregator" cannot create resource '
    '"jobs" in API group "batch" in the namespace "n"'
)
QUOTA = 'jobs.batch "r-x" is forbidden: exceeded quota: jobs, requested: 1, used: 1, limited: 1'


@pytest.mark.parametrize(
    ("status", "message", "failed"),
    [
        (403, QUOTA, True),
        (403, 'admission webhook "a.b" denied the request: no', True),
        (403, RBAC, False),
        (
            403,
            "forbidden: unable to create new content in namespace n because it is being terminated",
            False,
        ),
        (400, 'admission webhook "a.b" denied the request: no', True),
        (422, 'Job.batch "r-x" is invalid: spec.template', True),
        (413, "Request entity too large", True),
        (401, "Unauthorized", False),
        (404, "namespaces not found", False),
        (409, 'jobs.batch "r-x" already exists', False),
        (429, "too many requests", False),
        (500, "etcdserver: request timed out", False),
        (503, "unavailable", False),
    ],
)
def test_a_refusal_is_for_good(status: int, message: str, failed: bool) -> None:
    assert for_good(status, message) is failed
