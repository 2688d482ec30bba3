"""Ctrl-C while the objects of a run are created: nothing that was made stays."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from reporter.errors import AlreadyExists, Conflict, Denied, Forbidden, NotFound, Unavailable
from reporter.runctl.create import Creation, NotCreated, start
from reporter.runctl.expose import Access
from reporter.runctl.spec import CREATION
from tests.plugin_launches import NAMESPACE, RUN, definition, options_of

PLAN = {"kind": "ConfigMap", "metadata": {"name": RUN}}


class World:
    """An API server that gives these answers to POST, and a person with a key.

    An answer with `made` is lost: the object is there all the same.
    """

    def __init__(self, *answers: Exception, made: bool, token: str = "ours") -> None:
        self._answers, self._made, self._token = iter(answers), made, token
        self.found: dict[str, Any] | None = None
        self.looks: Iterator[Exception] = iter(())
        self.deleted = list[str]()

    def create(self, kind: str, _: Any, body: Any, **__: Any) -> Any:
        if self._made and self.found is None:
            metadata = body["metadata"] | {"uid": "u", "annotations": {CREATION: self._token}}
            self.found = {"kind": kind, "metadata": metadata}
        raise next(self._answers)

    def get(self, kind: str, _: Any, name: str, **__: Any) -> Any:
        for trouble in self.looks:
            raise trouble
        if self.found is None:
            raise NotFound(f"no such {kind}")
        return self.found

    def delete(self, kind: str, _: Any, name: str, *, uid: str, **__: Any) -> None:
        self.deleted.append(f"{kind} {name} {uid}")

    def creation(self, sleep: Callable[[float], None]) -> Creation:
        return Creation(cast("Any", self), NAMESPACE, "ours", sleep=sleep)


def interrupt(_: float) -> None:
    raise KeyboardInterrupt


def interrupted(world: World, sleep: Callable[[float], None] = interrupt) -> list[str]:
    """Return what is deleted after Ctrl-C."""
    creation = world.creation(sleep)
    with pytest.raises(KeyboardInterrupt):
        creation.create([PLAN])
    assert [] == creation.undo()
    return world.deleted


@pytest.mark.parametrize(
    "answers",
    [(KeyboardInterrupt(),), (Unavailable("timed out"),)],
    ids=["before an answer", "in the pause before another try"],
)
@pytest.mark.parametrize(
    ("made", "token", "deleted"),
    [
        (True, "ours", [f"ConfigMap {RUN} u"]),
        (True, "theirs", []),
        (False, "ours", []),
    ],
    ids=["made", "somebody else's", "not made"],
)
def test_ctrl_c_takes_back_what_was_made_without_a_word(
    answers: tuple[Exception, ...], made: bool, token: str, deleted: list[str]
) -> None:
    assert deleted == interrupted(World(*answers, made=made, token=token))


def test_ctrl_c_while_a_conflict_is_looked_into() -> None:
    """It was made by the try before, whose answer was lost."""
    world = World(Unavailable("timed out"), AlreadyExists("exists"), made=True)
    world.looks = iter([cast("Exception", KeyboardInterrupt())])

    assert [f"ConfigMap {RUN} u"] == interrupted(world, lambda _: None)


def test_what_nobody_can_tell_is_said() -> None:
    world = World(KeyboardInterrupt(), made=True)  # type: ignore[arg-type]
    world.looks = iter([Unavailable("timed out")])
    creation = world.creation(interrupt)
    with pytest.raises(KeyboardInterrupt):
        creation.create([PLAN])

    assert [f"configmap/{RUN}: it may have been created"] == creation.undo()
    assert [] == world.deleted


def test_ctrl_c_in_the_pause_after_a_conflict_with_nothing() -> None:
    """It was not seen at first: the API server had not said that it was made."""
    world = World(Conflict("a writer of the same quota"), made=True)
    world.looks = iter([NotFound("no such configmap")])

    assert [f"ConfigMap {RUN} u"] == interrupted(world)


def test_ctrl_c_while_a_namespace_that_goes_is_waited_for() -> None:
    """It is not this command's, and it goes anyway."""
    world = World(AlreadyExists("exists"), made=True, token="theirs")
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    create = world.create

    def creates(*arguments: Any, **more: Any) -> Any:
        try:
            return create(*arguments, **more)
        finally:
            assert world.found is not None
            world.found["metadata"] |= going

    world.create = creates  # type: ignore[method-assign]

    assert [] == interrupted(world)


@pytest.mark.parametrize("looks", [3, 10**6])
def test_the_account_of_a_new_namespace_takes_its_time(looks: int) -> None:
    """Before, every Pod is refused; one that never comes is not waited for without end."""
    world = World(made=False)
    world.looks = iter([NotFound("no such serviceaccount")] * looks)
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    creation = Creation(cast("Any", world), NAMESPACE, "ours", sleep=sleep, clock=lambda: now)
    world.found = {}
    with pytest.raises(NotFound) if looks > 3 else nullcontext():
        creation.wait_for_account()

    assert (0 < now < 1) == (looks == 3)


class Refusing:
    """An API server that creates all and shows nothing; the namespace's account never comes."""

    def __init__(self) -> None:
        self.deleted = list[str]()

    def create(self, _: str, __: Any, body: Any, **___: Any) -> Any:
        return {**body, "metadata": {**body["metadata"], "uid": "u"}}

    def get(self, *_: Any, **__: Any) -> Any:
        raise Forbidden("may not get serviceaccounts")

    def delete(self, kind: str, *_: Any, **__: Any) -> None:
        self.deleted.append(kind)


def refused(api: Refusing, kept: Access) -> None:
    """Start a run that cannot be."""
    chosen = replace(options_of(definition("adapter that mounts nothing")), create_namespace=True)
    options = argparse.Namespace(namespace="", context="", kubeconfig="")
    assert start(cast("Any", api), chosen, options, kept) is None


def test_ctrl_c_again_while_the_connection_file_is_removed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is left in the cluster is not passed over in silence."""

    class Interrupted:
        def unlink(self, **_: Any) -> None:
            raise KeyboardInterrupt

    nothing = cast("Any", None)
    with pytest.raises(KeyboardInterrupt):
        refused(Refusing(), Access(nothing, cast("Path", Interrupted()), nothing))

    assert f"to remove the rest: status-ctl delete {RUN}\n" in capsys.readouterr().err


def test_a_connection_file_that_cannot_be_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a disk with errors, here a directory: what is in the cluster goes all the same."""
    api, nothing = Refusing(), cast("Any", None)
    refused(api, Access(nothing, tmp_path, nothing))

    assert ["Namespace"] == api.deleted
    told = capsys.readouterr().err
    assert f"not removed: {tmp_path}: " in told
    assert "to remove the rest" not in told


def test_what_stays_can_be_removed_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Unreachable(Refusing):
        def delete(self, kind: str, *_: Any, **__: Any) -> None:
            raise Unavailable("timed out")

    nothing = cast("Any", None)
    refused(Unreachable(), Access(nothing, tmp_path / "none", nothing))

    assert capsys.readouterr().err.endswith(
        f"status-ctl: not removed: namespace/{NAMESPACE}: timed out\n"
        f"status-ctl: to remove the rest: status-ctl delete {RUN}\n"
    )


NO_LOOK = Forbidden("may not get configmaps")
LOST = Unavailable("timed out")
EXISTS = AlreadyExists("exists")


@pytest.mark.parametrize(
    ("answers", "looks"),
    [
        ([LOST, EXISTS], []),
        ([LOST, EXISTS, EXISTS], [LOST]),
        ([LOST, Denied("exceeded quota")], []),
        ([LOST] * 5, []),
    ],
    ids=["it exists", "it is not seen at first", "it uses up a quota", "no answer ever comes"],
)
def test_what_was_made_without_an_answer_counts(
    answers: list[Exception], looks: list[Exception]
) -> None:
    """It is there, and this command's own."""
    world = World(*answers, made=True)
    world.looks = iter(looks)
    creation = world.creation(lambda _: None)
    creation.create([PLAN])

    assert [] == creation.undo()
    assert [f"ConfigMap {RUN} u"] == world.deleted


@pytest.mark.parametrize(
    ("answers", "looks", "left"),
    [
        ([LOST, EXISTS], [NO_LOOK], True),
        ([LOST, Denied("no")], [NO_LOOK], True),
        ([EXISTS], [NO_LOOK], False),
        ([EXISTS] * 5, [LOST] * 5, False),
        ([Denied("no")], [], False),
    ],
    ids=["a conflict", "a refusal", "not ours", "never seen, not ours", "refused at once"],
)
def test_what_exists_and_cannot_be_seen(
    answers: list[Exception], looks: list[Exception], *, left: bool
) -> None:
    """Whether an earlier try has made it, whose answer was lost, cannot be told; that is said."""
    world = World(*answers, made=False)
    world.looks = iter([*looks, *([NO_LOOK] if left else [])])
    creation = world.creation(lambda _: None)
    with pytest.raises(NotCreated):
        creation.create([PLAN])

    assert ([f"configmap/{RUN}: it may have been created"] if left else []) == creation.undo()
