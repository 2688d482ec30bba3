#!/usr/bin/python3
"""Launcher of the aggregator."""

import sys

from reporter.aggregator.__main__ import main

sys.exit(main())
