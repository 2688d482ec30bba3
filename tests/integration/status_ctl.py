"""Fixtures of the tests of status-ctl."""

from tests.blackbox.ctl.conftest import at_home, controllers, fake, home

__all__ = ["at_home", "controllers", "fake", "home"]
