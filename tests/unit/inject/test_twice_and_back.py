"""A Job that is given its reporter again, and how it gets rid of it."""

import pytest

from reporter.inject.container import Wishes
from reporter.inject.transform import ANNOTATION, Refused, covers
from reporter.jobs.setting import LABEL
from reporter.verdict.facts import Form
from tests.unit.inject.scene import CRON, changes, job, made, pod, reporter, said, without

BEFORE = [
    job(),
    job(metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}}),
    job(metadata={"labels": {LABEL: "native"}}),
    job({"volumes": [], "initContainers": []}),
    job({"volumes": [{"name": "own", "emptyDir": {}}], "initContainers": [{"name": "init"}]}),
    job({"containers": [{"name": "main", "volumeMounts": []}]}),
    {key: value for key, value in job().items() if key != "metadata"},
    CRON,
    {"kind": "List", "items": [CRON]},
]


class TestTwiceAndBack:
    @pytest.mark.parametrize("value", BEFORE)
    @pytest.mark.parametrize("form", list(Form))
    def test_twice_is_once_and_back_is_the_original(self, value, form):
        """Whatever was there before, empty lists too."""
        wishes = Wishes("i", form)
        once = made(value, wishes)

        assert once != value
        assert not changes(once, wishes)
        assert value == without(once)

    def test_other_options_replace_what_was_put_in(self):
        """As if it had been the first time."""
        once = made(job())

        assert made(job(), Wishes("other", Form.CLASSIC)) == made(
            once, Wishes("other", Form.CLASSIC)
        )

    @pytest.mark.parametrize("value", [*BEFORE, job({"automountServiceAccountToken": False})])
    def test_a_token_for_the_reporter_alone_can_be_taken_back(self, value):
        """By removing the reporter, and by injecting without the option."""
        once = made(value, Wishes("image", own_token_only=True))

        assert value == without(once)
        assert made(value) == made(once)

    def test_what_the_server_has_added_is_no_change(self):
        """Its defaults are not ours."""
        once = made(job())
        reporter(once)["terminationMessagePath"] = "/dev/termination-log"

        assert not changes(once)

    def test_what_is_no_longer_wanted_is_a_change(self):
        """A mount elsewhere than the adapter's shows an empty directory: a wrong verdict."""
        mount, user = {"mountPath": "/results", "subPath": "one"}, {"runAsUser": 7, "runAsGroup": 7}
        adapter = {"name": "main", "volumeMounts": [{"name": "v", **mount}]}
        volumes = [{"name": "v", "emptyDir": {}}]
        once = made(job({"containers": [adapter | {"securityContext": user}], "volumes": volumes}))
        del pod(once)["containers"][0]["volumeMounts"][0]["subPath"]
        again = made(once)
        del pod(again)["containers"][0]["securityContext"]

        assert "subPath" not in reporter(again)["volumeMounts"][0]
        assert {"runAsUser", "runAsGroup"}.isdisjoint(reporter(made(again))["securityContext"])

    def test_what_people_have_added_stays(self):
        """Only our own parts go."""
        once = made(job())
        pod(once)["volumes"].append({"name": "theirs"})

        back = without(once)

        assert [{"name": "theirs"}] == pod(back)["volumes"]

    def test_disabled_afterwards_it_is_taken_out(self):
        """The label is the last word."""
        once = made(job())
        once["metadata"]["labels"][LABEL] = "disabled"
        again = made(once)

        assert job(metadata={"labels": {LABEL: "disabled"}}) == again

    def test_one_that_cannot_be_replaced_stays(self):
        """Options that do not fit must not cost the reporter that is there."""
        once = made(job())
        wishes = Wishes("i", adapter="nobody")

        assert isinstance(said(once, wishes), Refused)
        assert not changes(once, wishes)

    @pytest.mark.parametrize(
        "record", ["?", "[" * 100_000, "[]", '{"added":5}', '{"added":["a",5,["volumes"]]}']
    )
    def test_without_its_record_containers_and_volumes_go_and_lists_stay(self, record):
        """Nothing is known of what was there before."""
        once = made(job())
        once["metadata"]["annotations"][ANNOTATION] = record
        back = without(once)

        assert ([], []) == (pod(back)["volumes"], pod(back)["initContainers"])
        assert {LABEL: "native"} == back["metadata"]["labels"]

    def test_a_record_that_is_no_text_is_none(self):
        value = job(metadata={"annotations": {ANNOTATION: 5}})

        assert value == without(value)

    @pytest.mark.parametrize(
        ("shown", "wanted", "expected"),
        [
            ({"a": 1, "b": 2}, {"a": 1}, True),
            ({"b": 2}, {"a": 1}, False),
            ([{"a": 1, "b": 2}], [{"a": 1}], True),
            ({"a": 1, "subPath": "x"}, {"a": 1}, False),
            ([1, 2], [1], False),
            (1, [1], False),
            ({"a": 1}, 1, False),
        ],
    )
    def test_what_covers_what(self, shown, wanted, expected):
        """More of an object is the same, more of a list is not."""
        assert expected == covers(shown, wanted)


def test_the_record_is_compact():
    """It is shown to people on every Job."""
    value = job({"volumes": []}, metadata={"labels": {LABEL: "native"}, "annotations": {}})

    assert {ANNOTATION: '{"added":["initContainers","volumeMounts"]}'} == made(value)["metadata"][
        "annotations"
    ]
