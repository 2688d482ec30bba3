"""The product's client of the Kubernetes API, for the fake API server."""

from reporter.kube.api import KubeApi
from tests.fakekube import FakeKube


def connect(fake: FakeKube, *, relax_x509_strict: bool = False) -> KubeApi:
    """Return the API as a program in a Pod would have it."""
    return KubeApi.connect(
        fake.server,
        ca_file=fake.ca_file,
        token_file=fake.token_file,
        relax_x509_strict=relax_x509_strict,
    )
