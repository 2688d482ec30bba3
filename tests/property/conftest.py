"""Properties are about what holds, not about how fast: no time limit for one example."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
