"""How soon a command says its first word: what it imports decides that."""

import json
import os
import subprocess
import sys

import pytest

from reporter import status_ctl as entry

CLUSTER = {"kubernetes", "urllib3", "yaml"}
SCHEMAS = {"jsonschema"}
OTHERS = {"pydantic", "pydantic_settings", "structlog", "prometheus_client", "aiohttp", "asyncio"}
URL = ["--url", "http://127.0.0.1:1"]
IMPORTED = """
import json, sys
from reporter.status_ctl import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["--help"], set()),
        (["status", *URL], set()),
        (["wait", *URL, "--timeout", "0"], set()),
        (["jobs", "--help"], set()),
        (["explain", "--help"], set()),
        (["retrieve", "--help"], set()),
        (["completion", "bash"], set()),
        (["__complete", "run", ""], set()),
        (["validate", "/dev/null"], SCHEMAS),
        (["try", "--help"], SCHEMAS),
        (["try", "--timeout", "9", "--", "true"], SCHEMAS),
    ],
    ids=" ".join,
)
def test_no_heavy_package_is_imported(arguments, allowed):
    """A cluster's client would take a third of a second, and reading settings a tenth."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))

    assert "argparse" in loaded
    assert set() == (CLUSTER | SCHEMAS | OTHERS) & loaded - allowed


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("/usr/bin/status-ctl", "status-ctl"),
        ("/usr/bin/kubectl-job_verdict", "kubectl job-verdict"),
        ("/src/cmd/status-ctl.py", "status-ctl"),
    ],
)
def test_the_name_in_the_help(called, name, capsys):
    """As a plugin of kubectl it is called what people typed."""
    before, sys.argv = sys.argv, [called]
    try:
        with pytest.raises(SystemExit):
            entry.main(["--help"])
    finally:
        sys.argv = before

    assert f"usage: {name} " in capsys.readouterr().out


@pytest.mark.parametrize("words", [["try", "-h"], ["try", "--timeout", "-h"]])
def test_help_of_try(words, capsys):
    """Its own options come first."""
    with pytest.raises(SystemExit) as ended:
        entry.main(words)

    assert (0, True) == (ended.value.code, "exit codes:" in capsys.readouterr().out)


def test_the_tried_command_keeps_its_options():
    """`status-ctl try -- ls -h` is a help of ls. It ends all children of its process."""
    program = "import sys; from reporter.status_ctl import main; sys.exit(main(sys.argv[1:]))"
    tried = [sys.executable, "-c", "import sys; print(sys.argv)", "-h"]
    command = [sys.executable, "-c", program, "try", "--", *tried]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 3 == done.returncode
    assert "['-c', '-h']" in done.stderr


@pytest.mark.parametrize("command", [["jobs"], ["explain", "x"], ["status", "-n", "x"]])
def test_without_the_kubernetes_client(command):
    """The base package has none: one line says which extra is missing."""
    code = "import sys; sys.modules['kubernetes'] = None\n" + IMPORTED.replace(
        "    main(", "    print(main(", 1
    ).replace("argv[1:])", "argv[1:]))", 1)
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
    )

    assert "4" == done.stdout.splitlines()[0]
    assert "requires the extra [sidecar] of the package: kubernetes is not installed" in done.stderr
