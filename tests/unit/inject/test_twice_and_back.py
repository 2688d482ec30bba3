"""A Job that is given its reporter again, and how it gets rid of it."""

import json

import pytest

from reporter.inject.decide import covers, decide
from reporter.inject.edits import apply
from reporter.inject.options import Wishes
from reporter.inject.record import ANNOTATION, InjectionRecord, read
from reporter.inject.transform import Refused, uninject
from reporter.jobs.setting import LABEL
from reporter.verdict.facts import Form
from tests.unit.inject.scene import CRON, WISHES, job, made, one, pod, reporter

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
    """decide.py and record.py."""

    @pytest.mark.parametrize("value", BEFORE)
    @pytest.mark.parametrize("form", list(Form))
    def test_twice_is_once_and_back_is_the_original(self, value, form):
        """Whatever was there before, empty lists too."""
        wishes = Wishes("i", form)
        once = made(value, wishes)

        assert once != value
        assert not decide(once, one(once), wishes).changes
        assert value == apply(once, uninject(once, one(once)))

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

        assert value == apply(once, uninject(once, one(once)))
        assert made(value) == made(once)

    def test_what_the_server_has_added_is_no_change(self):
        """Its defaults are not ours."""
        once = made(job())
        reporter(once)["terminationMessagePath"] = "/dev/termination-log"

        assert not decide(once, one(once), WISHES).changes

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

        back = apply(once, uninject(once, one(once)))

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
        decision = decide(once, one(once), Wishes("i", adapter="nobody"))

        assert isinstance(decision.said, Refused)
        assert not decision.changes

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            (None, None),
            ("rights", InjectionRecord()),
            ("[" * 100_000, InjectionRecord()),
            ("[]", InjectionRecord()),
            ('{"added":5}', InjectionRecord()),
            ('{"added":["a",5]}', InjectionRecord(("a",))),
        ],
    )
    def test_a_record_that_somebody_has_changed(self, value, expected):
        """Names nothing that would be removed."""
        assert expected == read({ANNOTATION: value})

    def test_without_its_record_containers_and_volumes_go_and_lists_stay(self):
        """Nothing is known of what was there before."""
        once = made(job())
        once["metadata"]["annotations"][ANNOTATION] = "?"
        back = apply(once, uninject(once, one(once)))

        assert ([], []) == (pod(back)["volumes"], pod(back)["initContainers"])
        assert {LABEL: "native"} == back["metadata"]["labels"]

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
    assert '{"added":["labels"]}' == InjectionRecord(("labels",)).text()
    assert {"added": ["labels"]} == json.loads(InjectionRecord(("labels",)).text())
