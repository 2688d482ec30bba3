#!/bin/sh
# An adapter that allocates memory without end and never reports: run it with a memory limit.
exec tail /dev/zero
