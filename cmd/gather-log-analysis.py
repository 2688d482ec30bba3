#!/usr/bin/python3
"""Launcher of the gatherer of what a node's logs say."""

import os
import sys

from reporter.collect.log_analysis import main

sys.exit(main(os.environ))
