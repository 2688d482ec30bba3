"""The documents say what the code does: tables and wordings are compared, examples are run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reporter.sidecar.command_line import help_text
from reporter.sidecar.metrics import Metrics
from reporter.sidecar.settings import Settings
from reporter.verdict.adapter_files import decode_progress, decode_result
from reporter.verdict.rows import Row
from tests.blackbox.cluster import printed_pages
from tests.blackbox.cluster.printed_pages import NAMES, PAGES, commands

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ADDING = (ROOT / "docs" / "add-to-jobs.md").read_text(encoding="utf-8")
QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
CONTRACT = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
AUTHORS = (ROOT / "docs" / "adapter-authors.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
METRICS = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
OWN_REASONS = {row.reason for row in Row if row.reason} | {
    "AdapterExitedWithError",
    "AdapterMissingResults",
}


def section(text: str, name: str) -> str:
    """Return what stands between two markers of a document."""
    return text.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->", maxsplit=1)[0]


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks of one language."""
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)


def test_document_help_and_class_know_the_same_variables():
    """One list of settings: docs/settings.md, --help and the class."""
    in_document = re.findall(r"^\| `([A-Z_0-9]+)` \|", section(SETTINGS, "settings"), re.M)
    in_help = re.findall(r"^  ([A-Z_0-9]+) \(default", help_text(), re.MULTILINE)
    in_class = [found.name for found in Settings.described()]

    assert in_class == in_document
    assert in_class == in_help


def test_the_settings_table_is_made_from_the_code():
    """`make fmt` has been run after the last change of a setting."""
    command = [sys.executable, str(ROOT / "scripts" / "docs_tables.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stdout)


def test_every_reason_is_in_the_contract():
    """A reason that is written can be looked up."""
    assert [] == [reason for reason in OWN_REASONS if f"`{reason}`" not in CONTRACT]


def test_the_runbook_has_one_entry_per_reason():
    """No reason without an entry, no entry for a reason that does not exist."""
    entries = set(re.findall(r"^## ((?:Adapter|Reporter|Invalid|NoReason)\w+)$", RUNBOOK, re.M))

    assert {*OWN_REASONS, "NoReasonProvided"} == entries


def full_metrics(*, link: bool) -> str:
    """Return the page of a reporter that knows everything it can know."""
    metrics = Metrics("1")
    metrics.set_condition("True", "x", from_file=True, final=True)
    metrics.set_adapter(0, 1)
    metrics.set_progress(completed=1, total=1, failures=0, errors=0)
    metrics.observe_publish("written", seconds=0.1, now=1.0)
    metrics.observed(1.0)
    if link:
        metrics.set_link(up=True)
    return metrics.render().body.decode()


def test_the_number_of_series_is_documented():
    """Two numbers: without and with a link to an aggregator."""
    counts = [len(re.findall("^[^#]", full_metrics(link=link), re.M)) for link in (False, True)]

    assert counts == [int(n) for n in re.findall(r"\b(\d+) series", METRICS)]


def test_every_metric_is_documented():
    """The table names exactly the families that are served."""
    page = full_metrics(link=True)
    served = set(re.findall(r"^# TYPE (\S+)", page, re.MULTILINE))
    table = section(METRICS, "metrics").replace(
        "`status_reporter_progress_completed`, `_expected`, `_failures`, `_errors`",
        " ".join(
            f"`status_reporter_progress_{name}`"
            for name in ("completed", "expected", "failures", "errors")
        ),
    )
    named = set(re.findall(r"`(status_reporter_\w+)", table))

    assert served == named


@pytest.mark.parametrize("answer", ["True", "False"])
def test_the_documented_kubectl_wait_ends_with_either_answer(tmp_path, answer):
    """A `kubectl wait` for the other answer ends with its time limit, never by itself."""
    (snippet,) = blocks(ADDING, "sh")
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        f'"wait job/JOB "*=Available={answer}" "*) echo met ;;\n'
        '"wait job/JOB "*" --timeout=5s") exit 1 ;;\n'
        "wait*) exec sleep 600 ;;\n"
        '"get job JOB "*) echo Checked ;;\n'
        "esac\n"
    )
    kubectl.chmod(0o755)
    environ = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", snippet], env=environ, capture_output=True, text=True, check=True, timeout=60
    )

    assert "met\nChecked\n" == done.stdout


def status_ctl(given: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command with this on its standard input."""
    command = [sys.executable, "cmd/status-ctl.py", *words]
    return subprocess.run(
        command, cwd=ROOT, input=given, capture_output=True, text=True, check=False, timeout=60
    )


def injected(page: str, job: str) -> str:
    """What the page's own command makes of a Job."""
    (options,) = re.findall(r"^status-ctl inject -f job\.yaml (.*) \| kubectl apply", page, re.M)
    done = status_ctl(job, "inject", "-f", "-", *options.split())
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_the_readmes_job_after_is_what_inject_makes_of_the_job_before():
    before, after = blocks(README, "yaml")

    assert after == injected(README, before).rpartition("---\n")[2]


def test_the_quickstarts_job_gets_a_reporter_without_a_remark():
    """What a newcomer copies has none of the mistakes that the commands know."""
    (job,) = blocks(QUICKSTART, "yaml")
    checked = status_ctl(injected(QUICKSTART, job), "lint", "--strict", "-f", "-")

    assert (0, "") == (checked.returncode, checked.stdout)


def test_json_examples_are_valid():
    """What an author copies is accepted."""
    results = [text for text in blocks(README + AUTHORS, "json") if '"status"' in text]
    progress = [text for text in blocks(AUTHORS, "json") if '"completed"' in text]

    assert len(results) == 2
    assert all(decode_result(text.encode()).reason for text in results)
    assert [4] == [decode_progress(text.encode()).completed for text in progress]


@pytest.mark.parametrize(
    ("language", "command", "success"), [("sh", ["sh"], True), ("python", [sys.executable], False)]
)
def test_the_authors_examples_write_a_valid_result(tmp_path, language, command, success):
    """The examples run as they stand."""
    (example,) = blocks(AUTHORS, language)
    script, result = tmp_path / "example", tmp_path / "adapter-result.json"
    script.write_text(example)
    environ = os.environ | {"RESULTS_PATH": str(result)}
    subprocess.run([*command, str(script)], env=environ, check=True, timeout=60)

    assert success is decode_result(result.read_bytes()).success
    assert ["adapter-result.json", "example"] == sorted(os.listdir(tmp_path))


@pytest.mark.skipif(not shutil.which("go"), reason="needs Go to run the Go example")
def test_the_go_example_writes_a_valid_result(tmp_path):
    """The Go example compiles and runs as it stands."""
    (example,) = blocks(AUTHORS, "go")
    (tmp_path / "main.go").write_text(example)
    result = tmp_path / "adapter-result.json"
    environ = os.environ | {
        "RESULTS_PATH": str(result),
        "GOFLAGS": "-mod=mod",
        "GO111MODULE": "off",
    }
    command = ["go", "run", str(tmp_path / "main.go")]
    subprocess.run(command, env=environ, check=True, timeout=110, cwd=tmp_path)

    assert decode_result(result.read_bytes()).success


def test_every_block_of_commands_is_run_or_has_a_reason_not_to_be():
    """Also one that is added; and no reason outlives its command."""
    every = [block for name in NAMES for block in printed_pages.all_blocks(name)]
    shells = [text for language, text in every if language not in printed_pages.NO_COMMANDS]
    printing = {name: commands(name) for name in NAMES if commands(name)}
    unknown = [
        start
        for name, page in PAGES.items()
        for start in (*page.before, *page.codes, *page.left_out)
        if start not in map(printed_pages.first_line, printing[name])
    ]
    known = printed_pages.PROGRAMS | printed_pages.SHOWN | printed_pages.OUTPUT

    assert {*map(printed_pages.first_word, shells)} <= known | {printed_pages.PROMPT}
    assert {language for language, _ in every} <= {
        "",
        *printed_pages.SHELLS,
        *printed_pages.NO_COMMANDS,
    }
    assert [*PAGES] == [*printing]
    assert [] == unknown


@pytest.mark.parametrize(
    ("page", "added"),
    [
        ("docs/plugins.md", "curl https://example.org/x"),
        ("docs/reaper.md", "kubectl apply -k deploy/reaper/more"),
        ("docs/helm.md", "helm upgrade other"),
    ],
)
def test_a_reason_is_for_one_command(page, added):
    """Not for every one that begins like it."""
    assert printed_pages.for_command(PAGES[page].left_out, added) is None


def test_the_kubectl_output_in_the_contract_has_all_six_fields():
    """The example condition shows what is always there."""
    (example,) = (text for text in blocks(CONTRACT, "yaml") if "conditions" in text)
    fields = re.findall(r"^[ -]{2,4}(\w+): ", example.split("conditions:")[1], re.MULTILINE)
    wanted = ["type", "status", "reason", "message", "lastProbeTime", "lastTransitionTime"]

    assert wanted == fields
    assert json.loads(re.search(r"'(\{.*\})'", example)[1].replace("{...}", "{}"))["version"] == 1
