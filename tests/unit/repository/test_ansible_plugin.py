"""deploy/plugins/ansible: its definition, its gatherer, and what its Dockerfile says of itself."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from reporter.collect.gatherers import gatherers
from reporter.runctl.definitions import load

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "plugins" / "ansible"
GATHERER = "10-ansible"
ANSIBLE = """\
#!/bin/sh
env >{told}
printf '%s\\n' "$@" >>{told}
echo '[WARNING]: something' >&2
printf '{answer}'
exit {code}
"""


def test_the_folder_is_one_valid_definition():
    """`run -f` takes it as it is: what else lies in it is left alone."""
    loaded = load([str(FOLDER)])

    assert () == loaded.problems
    ((_, made),) = loaded.definitions
    assert ("ansible", "Node", "link") == (made.name, made.driver, made.contract)
    assert {"r.example:5000/a:1", "r.example:5000/a:1-ansible"} >= made.images("r.example:5000/a:1")


def test_the_pod_has_the_nodes_network_and_processes_and_no_more():
    """No user of the node's, no capability, no token, nothing of the node that it may write to."""
    spec = yaml.safe_load((FOLDER / "definition.yaml").read_text())["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    host = {each["name"] for each in spec["volumes"] if "hostPath" in each}
    writable = {each["name"] for each in container["volumeMounts"] if not each.get("readOnly")}

    assert (True, True, False) == (
        spec["hostNetwork"],
        spec["hostPID"],
        spec["automountServiceAccountToken"],
    )
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == container["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert {"os-release", "etc"} == host
    assert not host & writable
    # Without it a missing path would be made on the node.
    assert all(each["hostPath"].get("type") for each in spec["volumes"] if "hostPath" in each)


@pytest.fixture
def called(tmp_path):
    """Run the gatherer with something in place of Ansible: code, errors, output, what that got."""
    out, programs, told = tmp_path / "out", tmp_path / "programs", tmp_path / "told"

    def call(answer: str, code: int = 0, **environ: str):
        out.mkdir(exist_ok=True)
        programs.mkdir(exist_ok=True)
        (programs / "python3").write_text(ANSIBLE.format(told=told, answer=answer, code=code))
        (programs / "python3").chmod(0o755)
        script = (FOLDER / GATHERER).read_text()
        assert 1 == script.count("PATH=/usr/local/sbin:")
        gatherer = tmp_path / GATHERER
        gatherer.write_text(script.replace("PATH=/usr/local/sbin:", f"PATH={programs}:"))
        gatherer.chmod(0o755)
        done = subprocess.run(
            [gatherer],
            env={"PATH": os.environ["PATH"], "GATHER_OUT": str(out), "SECRET": "s3", **environ},
            capture_output=True,
            text=True,
            check=False,
        )
        found = {path.name: path.read_text() for path in out.iterdir()}
        return done.returncode, done.stderr, found, told.read_text()

    return call


def test_the_gatherer_writes_the_document_that_ansible_says(called):
    """The line before it is cut off; warnings stay what they are."""
    code, err, found, told = called('localhost | SUCCESS => {\\n    "changed": false\\n}\\n')

    assert (0, "[WARNING]: something\n") == (code, err)
    assert {"ansible-facts.json"} == set(found)
    assert {"changed": False} == json.loads(found["ansible-facts.json"])
    assert "PYTHONPATH=/opt/ansible\n" in told
    assert "SECRET" not in told
    assert "gather_subset=all,!" in told


def test_the_choice_of_facts_can_be_replaced(called):
    """`--plugin-env ansible.ANSIBLE_GATHER_SUBSET=...` ends here."""
    *_, told = called("localhost | SUCCESS => {}\\n", ANSIBLE_GATHER_SUBSET="!all,network")

    assert "gather_subset=!all,network\n" in told


def test_a_failure_of_ansible_is_one_and_is_told(called):
    """No half a document is left, and the code is none of those that mean something else."""
    code, err, found, _ = called('localhost | FAILED! => {\\n    "msg": "no"\\n}\\n', code=2)

    assert (3, {}) == (code, found)
    assert '"msg": "no"' in err


@pytest.mark.parametrize("answer", ["", "[DEPRECATED]\\nlocalhost | SUCCESS => {}\\n"])
def test_what_does_not_begin_as_expected_is_no_document(called, answer):
    """Another version may say more before it."""
    code, err, found, _ = called(answer)

    assert (3, {}) == (code, found)
    assert answer.partition("\\")[0] in err


def test_the_gatherer_is_found_by_the_agent(tmp_path):
    """It is executable, and its output is named `ansible`."""
    (tmp_path / GATHERER).symlink_to(FOLDER / GATHERER)
    (found,) = gatherers(tmp_path, tmp_path / "host")

    assert "ansible" == found.name
    assert os.access(found.command[0], os.X_OK)
