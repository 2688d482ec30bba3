#!/usr/bin/python3
"""Launcher of the gatherer of a node's logs."""

import os
import sys

from reporter.collect.logs import main

sys.exit(main(os.environ))
