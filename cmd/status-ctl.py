#!/usr/bin/python3
"""Launcher of the command-line tool."""

import sys

from reporter.ctl.main import main

sys.exit(main())
