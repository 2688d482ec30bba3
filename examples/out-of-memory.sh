#!/bin/sh
# An adapter that wants more and more memory and never reports: run it with a memory limit.
exec tail /dev/zero
