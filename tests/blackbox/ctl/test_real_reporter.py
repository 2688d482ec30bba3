"""status-ctl and a real reporter process: what one writes on the Job, the other understands."""

import json
from pathlib import Path

from tests.blackbox.ctl.cluster import kubeconfig
from tests.blackbox.ctl.scripted import Home
from tests.blackbox.sidecar.scene import staged
from tests.fakekube import Rule


def test_a_verdict_from_its_first_condition_to_its_last(home: Home, tmp_path: Path) -> None:
    """With the evidence in its annotation, which is no part of what people see of the API."""
    with staged(tmp_path / "scene") as scene:
        person = Rule(("get", "list"), ("pods", "jobs", "events", "pods/log"))
        scene.fake.tokens.roles["reporter"] = (*scene.fake.tokens.roles["reporter"], person)
        kubeconfig(home.folder / ".kube" / "config", scene.fake)
        scene.create(form="native")
        scene.start()
        scene.wait_condition("AdapterRunning")
        (running,) = json.loads(home.run("jobs", "-o", "json")[1])["items"]
        scene.write_result("failure", "QuotaMissing", "no quota")
        scene.wait_final()
        code, said, _ = home.run("wait", f"job/{scene.job_name}")
        explained = home.run("explain", scene.job_name)[1]

    assert ("AdapterRunning", False) == (
        running["condition"]["reason"],
        running["condition"]["final"],
    )
    assert 1 == code
    assert f"job.batch/{scene.job_name}  Available=False  QuotaMissing: no quota\n" == said
    assert "result file: valid (QuotaMissing)" in explained
