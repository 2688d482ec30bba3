"""The launcher of the sidecar, with the API server's address from the environment.

With `--modules` first among the arguments the names of all loaded modules go to stderr at the end.
"""

import os
import sys

from reporter.runtime.lifecycle import install
from reporter.sidecar.__main__ import noted

results = noted(os.environ)
stop = install()

from reporter.sidecar.main import main  # noqa: E402
from tests.integration.given_api import connect  # noqa: E402

arguments = sys.argv[1:]
show_modules = arguments[:1] == ["--modules"]
code = main(arguments[show_modules:], os.environ, stop, connect, results=results)
if show_modules:
    print(*sorted(sys.modules), sep="\n", file=sys.stderr)
sys.exit(code)
