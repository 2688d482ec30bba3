"""What the sidecar says when it is asked by hand: `--help`, `--check`, `--version`."""

import sys
from collections.abc import Mapping

from reporter import __version__
from reporter.errors import SettingsError
from reporter.sidecar.ending import BAD_SETTINGS, GOOD
from reporter.sidecar.settings import Settings

USAGE = "usage: status-reporter [--help | --check | --version]"


def answer(arguments: list[str], environ: Mapping[str, str]) -> int:
    """Answer one option and return the exit code; without any the sidecar runs."""
    match arguments:
        case ["--help" | "-h"]:
            print(help_text())
            return GOOD
        case ["--version"]:
            print(__version__)
            return GOOD
        case ["--check"]:
            return _check(environ)
        case _:
            print(USAGE, file=sys.stderr)
            return BAD_SETTINGS


def help_text() -> str:
    """Return the help: every variable with its default and rule, from the settings class itself."""
    lines = [
        USAGE,
        "",
        "Watches the adapter container of a Job's Pod and writes its outcome as one",
        "condition on the Job. Runs without arguments, configured by environment variables:",
        "",
    ]
    for name, default, rule, meaning in Settings.described():
        lines += [f"  {name} (default: {default})", f"      {meaning}; {rule}"]
    lines += [
        "",
        "With AGGREGATOR_URL it also forwards progress and the result to a status-aggregator:",
        "see docs/settings.md.",
        "",
        "  --check    validate the variables, print the effective settings, exit 2 on errors",
        "  --version  print the version",
    ]
    return "\n".join(lines)


def _check(environ: Mapping[str, str]) -> int:
    try:
        chosen = Settings.read(environ)
    except SettingsError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        return BAD_SETTINGS
    for warning in chosen.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for line in chosen.ignored:
        print(f"note: {line}", file=sys.stderr)
    for variable, value in chosen.in_force():
        print(f"{variable}={value}")
    return _check_link(environ) if environ.get("AGGREGATOR_URL", "").strip() else GOOD


def _check_link(environ: Mapping[str, str]) -> int:
    from reporter.link import ConfigError
    from reporter.sidecar.link import link_config

    try:
        config = link_config(environ)
    except ConfigError as error:
        for problem in error.problems:
            print(f"no link to the aggregator: {problem}", file=sys.stderr)
        return BAD_SETTINGS
    for warning in config.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for line in config.ignored:
        print(f"note: {line}", file=sys.stderr)
    print(f"AGGREGATOR_URL={config.aggregator_url} ({config.plugin}/{config.node})")
    return GOOD
