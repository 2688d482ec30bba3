"""docs/plugins.md has every variable and every mount that a plugin is given."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reporter.run.definition import Contract, Definition, Driver
from tests.plugin_launches import launch_of
from tests.unit.launch.job_parts import container, environ, made_of, mounts, pod_of

PAGE = Path(__file__).parents[3] / "docs" / "plugins.md"
TABLE = re.search(r"<!-- given -->\n(.*?)<!-- /given -->", PAGE.read_text(), re.DOTALL)
WHEN = {"": set(), "yes": {"yes"}, "driver `Node`": {"Node"}, "with `config`": {"config"}}


def documented(contract: str, holds: set[str]) -> set[str]:
    """Return the first column of the rows whose cell for the contract holds."""
    assert TABLE is not None
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in TABLE[1].splitlines()
    ]
    column = head.index(f"`{contract}`")
    given = [row[0] for row in rows if WHEN[row[column]] & holds]
    return {name for cell in given for name in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize("contract", ["result-file", "done-file", "link"])
@pytest.mark.parametrize("driver", ["Job", "Node"])
@pytest.mark.parametrize("config", [False, True])
def test_the_table_is_what_the_container_has(
    contract: Contract, driver: Driver, config: bool
) -> None:
    """Of a plugin that brings nothing of its own."""
    template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    found = Definition("checks", driver, contract, template)
    launch = launch_of(found)
    if config:
        launch = replace(launch, config_keys={"checks": {"a.txt": "config.0.0"}})
    plugin = container(pod_of(made_of(found, launch)), "main")
    holds = {"yes", driver, *(["config"] if config else [])}

    assert documented(contract, holds) == {*environ(plugin), *mounts(plugin)}
