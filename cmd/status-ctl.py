#!/usr/bin/env python3
"""Launcher of the command for people."""

import sys

from reporter.ctl.main import main

sys.exit(main(sys.argv[1:]))
