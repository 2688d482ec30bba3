"""What `status-aggregator run --help` says."""

from pathlib import Path

from reporter.run.settings import Settings
from tests.blackbox.aggregator.process import site


def test_help_lists_every_setting(tmp_path: Path):
    """As flag and variable, with its default and rule."""
    with site(tmp_path) as here:
        done = here.run("run", "--help")
    text = " ".join(done.stdout.split())

    assert 0 == done.returncode
    for name, default, rule, meaning in Settings.described():
        assert f"--{name.lower().replace('_', '-')} " in text
        words = f"{name} (default: {default}): {meaning}; {rule}"
        # argparse breaks words at their hyphens.
        assert words.replace(" ", "") in text.replace(" ", "")
