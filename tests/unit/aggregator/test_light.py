"""An aggregator that neither launches nor uploads does not load what only these need: 7 MB."""

import subprocess
import sys

PROGRAM = """
import sys
import reporter.aggregator.service
heavy = {"kubernetes", "urllib3", "yaml"}
print(*sorted(heavy & {name.split(".")[0] for name in sys.modules}))
"""


def test_a_run_that_only_collects():
    """No client of the API server, no other HTTP client, no YAML."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert "\n" == done.stdout
