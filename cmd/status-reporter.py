#!/usr/bin/python3
"""Launcher of the sidecar."""

import sys

from reporter.sidecar.__main__ import main

sys.exit(main())
