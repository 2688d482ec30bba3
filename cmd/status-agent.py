#!/usr/bin/python3
"""Launcher of the agent."""

import sys

from reporter.collect.__main__ import main

sys.exit(main())
