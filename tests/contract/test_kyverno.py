"""deploy/admission/kyverno.yaml, applied by Kyverno's own command-line tool."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.labelled_jobs import ADMISSION, IMAGE, changed, injected, left_alone


@pytest.mark.skipif(not shutil.which("kyverno"), reason="needs Kyverno's CLI, kyverno")
def test_the_policy_does_what_inject_does(tmp_path: Path) -> None:
    """The same Jobs as through the policy that the API server applies itself."""
    policy = ADMISSION / "kyverno.yaml"
    assert IMAGE in policy.read_text()
    wanted: dict[str, Any] = {}
    given = []
    for at, value in enumerate([*changed(), *left_alone()]):
        value["metadata"] |= {"name": f"job-{at}", "namespace": "default"}
        given.append(value)
        wanted[f"job-{at}"] = injected(value, tmp_path) if at < len(changed()) else value
    jobs, made = tmp_path / "jobs.yaml", tmp_path / "made"
    jobs.write_text(yaml.safe_dump_all(given))
    made.mkdir()
    done = subprocess.run(
        ["kyverno", "apply", str(policy), "--resource", str(jobs), "-o", str(made)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert 0 == done.returncode, done.stdout + done.stderr
    files = [path for path in made.rglob("*") if path.is_file()]
    written = [each for path in files for each in yaml.safe_load_all(path.read_text()) if each]
    assert wanted == {each["metadata"]["name"]: each for each in written}
    assert len(wanted) == len(written)
