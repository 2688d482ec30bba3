#!/usr/bin/python3 -I
"""Launcher of the worker that stands in for `/sonobuoy`: signals first, everything heavy after."""

import os
import sys

if not sys.flags.isolated:
    # The plugin's environment is merged into ours: its PYTHON* variables are not meant for us.
    os.execv(sys.executable, [sys.executable, "-I", os.path.realpath(__file__), *sys.argv[1:]])  # noqa: S606

# Isolated, Python looks for nothing beside this file. In the image the packages are in `site`.
home = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120
sys.path[:0] = [path for path in (home, f"{home}/site") if os.path.isdir(path)]  # noqa: PTH112

from reporter.common.lifecycle import install  # noqa: E402

stop = install()  # a SIGTERM during the imports below must not be lost

for name in list(os.environ):
    # OpenSSL reads its variables while `ssl` is imported; these are the plugin's.
    if name.upper().startswith(("OPENSSL_", "SSL")) or name.upper().endswith("_PROXY"):
        del os.environ[name]

from reporter.worker.main import main  # noqa: E402

sys.exit(main(sys.argv[1:], os.environ, stop))
