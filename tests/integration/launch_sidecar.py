"""The launcher of the sidecar, with the API server's address from the environment.

With `--modules` first among the arguments the names of all loaded modules go to stderr at the end.
"""

import os
import sys

from reporter.runtime.lifecycle import install

stop = install()

from reporter.kube.api import KubeApi  # noqa: E402
from reporter.sidecar.main import main  # noqa: E402


def connect(*, relax_x509_strict: bool) -> KubeApi:
    """Return the API of the fake."""
    return KubeApi.connect(
        os.environ["SERVER"],
        ca_file=os.environ["CA_FILE"],
        token_file=os.environ["TOKEN_FILE"],
        relax_x509_strict=relax_x509_strict,
    )


arguments = sys.argv[1:]
show_modules = arguments[:1] == ["--modules"]
code = main(arguments[show_modules:], os.environ, stop, connect)
if show_modules:
    print(*sorted(sys.modules), sep="\n", file=sys.stderr)
sys.exit(code)
