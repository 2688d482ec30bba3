"""Properties are about what holds, not about how fast: no time limit for one example.

PROPERTY_EXAMPLES=NUMBER in the environment says how many examples a property is tried with.
`make test` tries a few on each version of Python, `make test-long` and `make test-coverage` many.
"""

import os

from hypothesis import settings

EXAMPLES = int(os.environ.get("PROPERTY_EXAMPLES", "25"))

settings.register_profile("untimed", deadline=None, max_examples=EXAMPLES)
settings.load_profile("untimed")
