"""The API server that a launcher of tests finds in its environment."""

import os

from reporter.kube.api import KubeApi


def connect(*, relax_x509_strict: bool) -> KubeApi:
    """Return the API of the fake."""
    return KubeApi.connect(
        os.environ["SERVER"],
        ca_file=os.environ["CA_FILE"],
        token_file=os.environ["TOKEN_FILE"],
        relax_x509_strict=relax_x509_strict,
    )
