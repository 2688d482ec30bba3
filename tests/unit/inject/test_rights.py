"""The Role and RoleBinding that a reporter needs, and whether there is one that does."""

import pytest

from reporter.inject.rights import gives, role_and_binding
from reporter.inject.transform import account_of
from tests.unit.repository.manifests import load


def role(namespace, account):
    return role_and_binding(namespace, account, hook=False)[0]


def role_binding(namespace, account):
    return role_and_binding(namespace, account, hook=False)[1]


class TestRights:
    def test_the_role_is_that_of_the_base_for_another_account(self):
        """Nothing more, and no other account depends on it."""
        wanted = load("base/role.yaml")
        wanted["metadata"]["name"] += "-mine"

        assert wanted == role("", "mine")
        assert "n" == role("n", "mine")["metadata"]["namespace"]

    def test_the_binding_is_that_of_the_base_for_another_account(self):
        """The account's namespace is the Job's."""
        wanted = load("base/rolebinding.yaml")
        wanted["metadata"]["name"] += "-mine"
        wanted["roleRef"]["name"] += "-mine"
        wanted["subjects"][0]["name"] = "mine"

        assert wanted == role_binding("", "mine")
        assert "n" == role_binding("n", "mine")["subjects"][0]["namespace"]

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, True),
            ({"rules": []}, False),
            ({"rules": [{}, *role("", "a")["rules"][1:]]}, False),
            ({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}, True),
        ],
    )
    def test_whether_a_role_gives_it(self, changes, expected):
        """One that gives more does too."""
        assert expected == gives(role("", "a") | changes, role("", "a"))

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({}, True),
            ({"roleRef": {"kind": "Role", "name": "view"}}, False),
            ({"subjects": []}, False),
            ({"subjects": [{"kind": "User"}, *role_binding("", "a")["subjects"]]}, True),
        ],
    )
    def test_whether_a_binding_gives_it(self, changes, expected):
        """To this account, among others."""
        assert expected == gives(role_binding("", "a") | changes, role_binding("", "a"))

    @pytest.mark.parametrize(
        ("spec", "account"),
        [({"serviceAccountName": "a"}, "a"), ({"serviceAccount": "b"}, "b"), ({}, "default")],
    )
    def test_whose_rights(self, spec, account):
        """The old name of the field counts too."""
        assert account == account_of(spec)
