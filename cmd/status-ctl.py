#!/usr/bin/python3
"""Launcher of the command-line tool."""

import sys

from reporter.status_ctl import main

sys.exit(main())
