#!/usr/bin/env python3
"""Launcher of the aggregator: signals first, everything heavy after."""

import os
import sys

from reporter.lifecycle import install

stop = install()  # a SIGTERM during the imports below must not be lost

from reporter.aggregator.main import main  # noqa: E402

sys.exit(main(sys.argv[1:], os.environ, stop))
