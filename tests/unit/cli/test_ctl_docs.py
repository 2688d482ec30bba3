"""docs/status-ctl.md names what there is: commands, codes of findings, exit codes."""

import argparse
import importlib
import re
import tomllib
from pathlib import Path

import pytest

from reporter.status_ctl import COMMANDS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "status-ctl.md").read_text()
FINDINGS = tomllib.loads((ROOT / "reporter" / "jobs" / "findings.toml").read_text())
EXITS = PAGE.partition("## Exit codes")[2].partition("\n## ")[0]
ROWS = [line for line in EXITS.splitlines() if line.startswith("| `")]


def test_every_code_of_a_finding_is_listed():
    """Scripts may depend on them."""
    weights = (FINDINGS[each] for each in ("problem", "warning", "info"))
    codes = {name.partition("/")[0] for weight in weights for name in weight}
    listed = set(re.findall(r"`([a-z-]+)`", PAGE.partition("## explain")[2]))

    assert len(codes) > 25
    assert codes <= listed


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_table_of_exit_codes_is_that_of_the_help(command):
    """What 0 and 1 mean is said, and the others are named, where the command's help has them."""
    module = importlib.import_module(f"reporter.{command.module}")
    helped = set(re.findall(r"(?m)^  (\d+) ", module.DESCRIPTION))
    rows = [line for line in ROWS if re.search(rf"`{command.name}[` ]", line.split("|")[1])]
    shown = {"2"}  # every command has it
    for row in rows:
        good, bad, others = row.split("|")[2:-1]
        shown |= {code for code, cell in (("0", good), ("1", bad)) if cell.strip()}
        shown |= set(re.findall(r"\b\d\b", others))

    assert helped - {"130"} == shown - {"130"}
    assert ("143" in module.DESCRIPTION) == any("143: SIGTERM" in row for row in rows)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_the_page_names_the_command(command):
    """With an example."""
    parser = argparse.ArgumentParser()
    importlib.import_module(f"reporter.{command.module}").arguments(parser)

    assert re.search(rf"`status-ctl\s{command.name} ", PAGE.partition("## Exit codes")[0])
