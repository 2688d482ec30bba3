"""Where the reporter reads the result: a volume of the Job's own, or one that is added."""

import pytest

from reporter.inject.container import Wishes
from reporter.inject.transform import Injected, Refused
from tests.unit.inject.scene import environment, job, made, pod, reporter, said


def mounted(mount, volume=None, path="/results/adapter-result.json"):
    """Return what is said of a Job whose adapter mounts a volume, and the Job with its reporter."""
    adapter = {"name": "main", "volumeMounts": [{"name": "v", **mount}]}
    volumes = [{"name": "other"}, {"name": "v", **({"emptyDir": {}} if volume is None else volume)}]
    value = job({"containers": [adapter], "volumes": volumes})
    wishes = Wishes("i", results_path=path)
    return said(value, wishes), made(value, wishes)


class TestVolumeOfTheResult:
    def test_one_that_is_there_is_used(self):
        """Nothing is added to the adapter then."""
        answer, value = mounted({"mountPath": "/results/", "subPath": "x"})

        assert isinstance(answer, Injected)
        assert 1 == len(pod(value)["containers"][0]["volumeMounts"])
        assert {
            "name": "v",
            "mountPath": "/results/",
            "subPath": "x",
            "readOnly": True,
        } == reporter(value)["volumeMounts"][0]

    def test_the_nearest_mount_counts(self):
        """A mount above it does not hold the file."""
        adapter = {
            "name": "main",
            "volumeMounts": [
                {"name": "near", "mountPath": "/data/out"},
                {"name": "far", "mountPath": "/work", "readOnly": True},
                {"name": "beside", "mountPath": "/data/o"},
            ],
        }
        value = job({"containers": [adapter]})
        added = made(value, Wishes("i", results_path="/data/out/r.json"))

        assert "near" == reporter(added)["volumeMounts"][0]["name"]
        assert "/data/out/r.json" == environment(added)["RESULTS_PATH"]

    def test_other_volumes_than_an_emptydir_are_remarked_on(self):
        """A result in one may be an old one."""
        answer, _ = mounted(
            {"mountPath": "/results"}, {"persistentVolumeClaim": {"claimName": "c"}}
        )

        assert answer.remarks[0].startswith("/results is not an emptyDir")

    @pytest.mark.parametrize(
        ("mount", "volume", "why"),
        [
            ({"mountPath": "/results", "readOnly": True}, None, "/results is mounted read-only"),
            (
                {"mountPath": "/results/adapter-result.json"},
                None,
                "/results/adapter-result.json is mounted as a single file",
            ),
            (
                {"mountPath": "/results", "subPathExpr": "$(X)"},
                None,
                "/results is mounted with subPathExpr, which the reporter cannot follow",
            ),
            *(
                (
                    {"mountPath": "/results"},
                    {kind: {}},
                    f"/results is {words}, which cannot be written",
                )
                for kind, words in (
                    ("configMap", "a ConfigMap"),
                    ("secret", "a Secret"),
                    ("projected", "a projected volume"),
                    ("downwardAPI", "a downward API volume"),
                    ("image", "an image"),
                )
            ),
            (
                {"mountPath": "/results"},
                {"persistentVolumeClaim": {"readOnly": True}},
                "/results is a read-only claim",
            ),
        ],
    )
    def test_one_that_cannot_be_written_is_refused(self, mount, volume, why):
        """The adapter could leave nothing there."""
        answer, value = mounted(mount, volume)

        assert Refused(f"no volume for results: {why}") == answer
        assert [] == [c for c in pod(value)["containers"] if c["name"] == "status-reporter"]

    @pytest.mark.parametrize("at", ["/", "/app", "/var/run", "/usr/lib"])
    def test_the_reporters_own_files_are_not_hidden(self, at):
        """It sees the same file elsewhere."""
        _, value = mounted({"mountPath": at}, path=f"{at.rstrip('/')}/out/r.json")

        assert "/results" == reporter(value)["volumeMounts"][0]["mountPath"]
        assert "/results/out/r.json" == environment(value)["RESULTS_PATH"]
