#!/usr/bin/python3
"""Launcher of the gatherer of a node's facts."""

import os
import sys

from reporter.collect.host.facts import main

sys.exit(main(os.environ))
