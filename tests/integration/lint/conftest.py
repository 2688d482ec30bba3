"""The fixtures of status-ctl."""

from tests.integration.status_ctl import at_home, controllers, fake, home

__all__ = ["at_home", "controllers", "fake", "home"]
