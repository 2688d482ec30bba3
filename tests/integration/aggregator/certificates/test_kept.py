"""What is kept of the certificates of a run: over restarts, kills and damage."""

import base64
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from reporter.aggregator.certificates.export import (
    export_files,
    export_secrets,
)
from reporter.aggregator.certificates.run import Authority, Issued, validity
from reporter.aggregator.certificates.tls import worker_context
from reporter.pki.issuing import CertificateError
from reporter.run.plan import Plan
from tests.integration.aggregator.certificates.world import (
    E2E,
    NAMES,
    PLAN,
    RUN,
    URL,
    Handshake,
    client_context,
    leaves,
    read,
)


def open_run(
    state: Path,
    hand_out: Callable[[Issued], None] = lambda _: None,
    *,
    plan: Plan = PLAN,
    names: tuple[str, ...] = NAMES,
    now: float | None = None,
) -> Authority:
    at = time.time() if now is None else now
    return Authority.open(
        state / "tls", plan, names, now=at, seconds=validity(plan, None), hand_out=hand_out
    )


def test_a_restart_keeps_everything_and_hands_out_nothing(tmp_path: Path) -> None:
    """Workers that trusted the old process trust the new one."""
    handed: list[Issued] = []
    first = open_run(tmp_path, handed.append)
    second = open_run(tmp_path, handed.append)

    assert 1 == len(handed)
    assert (True, False) == (first.fresh, second.fresh)
    assert (first.ca, first.server) == (second.ca, second.server)
    assert first.expires_at == second.expires_at
    client = client_context(handed[0].ca, handed[0].clients[E2E], tmp_path / "client")
    assert {} == Handshake(worker_context(second.ca, second.server), client).refusals


def test_the_key_of_the_ca_is_nowhere(tmp_path: Path) -> None:
    """Every key on the disk after a first start is a leaf's: state, files, manifests."""
    handed: list[Issued] = []

    def hand_out(issued: Issued) -> None:
        handed.append(issued)
        export_files(issued, tmp_path / "certs", url=URL)
        export_secrets(issued, tmp_path / "secrets.yaml")

    open_run(tmp_path / "state", hand_out)
    found = list(keys_below(tmp_path))
    (issued,) = handed
    known = {point(read(pair.certificate).public_key()) for pair in leaves(issued)}

    # One in the state; of each of the four clients two in files and one in the manifests.
    assert 13 == len(found)
    assert known == set(map(point, found))
    assert point(read(issued.ca).public_key()) not in known


def keys_below(folder: Path) -> Iterator[Any]:
    """Every private key in every file, also in base64."""
    for path in folder.rglob("*"):
        if path.is_file():
            texts = [path.read_bytes()]
            if path.suffix == ".yaml":
                documents = yaml.safe_load_all(texts[0])
                texts = [base64.b64decode(v) for d in documents for v in d["data"].values()]
            elif path.suffix == ".json":
                texts = [value.encode() for value in json.loads(texts[0]).values()]
            for text in texts:
                pieces = text.split(b"-----BEGIN EC PRIVATE KEY-----")[1:]
                assert text.count(b"PRIVATE KEY-----") == 2 * len(pieces)
                for piece in pieces:
                    yield serialization.load_pem_private_key(
                        b"-----BEGIN EC PRIVATE KEY-----" + piece, None
                    ).public_key()


def point(key: Any) -> bytes:
    found: bytes = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return found


def test_what_is_kept_is_ours_alone(tmp_path: Path) -> None:
    """0600, also with an open umask; the directory 0700."""
    before = os.umask(0)
    try:
        open_run(tmp_path)
    finally:
        os.umask(before)
    (kept,) = (tmp_path / "tls").iterdir()

    assert 0o600 == stat.S_IMODE(kept.stat().st_mode)
    assert 0o700 == stat.S_IMODE(kept.parent.stat().st_mode)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_a_first_start_that_ends_while_handing_out_is_one_again(
    tmp_path: Path, stop: type[BaseException]
) -> None:
    """Nothing is kept that nobody has got a client for; the next start makes all anew."""

    def broken(_: Issued) -> None:
        raise stop("broken")

    with pytest.raises(stop):
        open_run(tmp_path, broken)
    handed: list[Issued] = []
    second = open_run(tmp_path, handed.append)

    assert second.fresh
    assert handed[0].ca == second.ca


def test_debris_of_a_killed_start_is_no_hindrance(tmp_path: Path) -> None:
    """A half-written temporary file, readable by everybody."""
    (tmp_path / "tls").mkdir()
    debris = tmp_path / "tls" / ".server.pem.x1y2z3_4.new"
    debris.write_text("-----BEGIN")
    debris.chmod(0o666)
    os.utime(debris, (1, 1))

    assert open_run(tmp_path).fresh
    assert ["server.pem"] == [path.name for path in (tmp_path / "tls").iterdir()]
    assert 0o600 == stat.S_IMODE((tmp_path / "tls" / "server.pem").stat().st_mode)


def without_key(kept: bytes) -> bytes:
    return kept.partition(b"-----END EC PRIVATE KEY-----\n")[2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda kept, other: b"", "not the original key and certificates"),
        (lambda kept, other: b"\xff\x00", "not the original key and certificates"),
        (lambda kept, other: kept[:700], "not the original key and certificates"),
        (lambda kept, other: kept[:900], "not the original key and"),
        (lambda kept, other: without_key(kept), "not the original key and certificates"),
        (lambda kept, other: kept + other, "not the original key and two certificates"),
        (
            lambda kept, other: kept[: -len(without_key(kept))] + without_key(other),
            "the key is not the certificate's",
        ),
        (
            lambda kept, other: kept.replace(first_certificate(kept), first_certificate(other)),
            "the server certificate was not issued by this CA",
        ),
    ],
    ids=[
        "empty",
        "no PEM",
        "cut in the certificate",
        "cut after it",
        "no key",
        "too many",
        "another key",
        "another certificate",
    ],
)
def test_what_is_kept_but_broken(
    tmp_path: Path, change: Callable[[bytes, bytes], bytes], said: str
) -> None:
    """The start ends with the file, the reason and the way out; nothing is made in its place."""
    open_run(tmp_path)
    open_run(tmp_path / "other")
    kept = tmp_path / "tls" / "server.pem"
    broken = change(kept.read_bytes(), (tmp_path / "other" / "tls" / "server.pem").read_bytes())
    kept.write_bytes(broken)
    with pytest.raises(CertificateError) as caught:
        open_run(tmp_path, lambda _: pytest.fail("handed out"))

    assert said in str(caught.value)
    assert str(kept) in str(caught.value)
    assert "restore the original file, or delete the run and start a new one" in str(caught.value)
    assert broken == kept.read_bytes()


def first_certificate(kept: bytes) -> bytes:
    begin, end = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
    start = kept.index(begin)
    return kept[start : kept.index(end, start)]


def test_certificates_of_another_run(tmp_path: Path) -> None:
    """A state directory of somebody else is said to be so."""
    open_run(tmp_path)
    with pytest.raises(CertificateError, match=f"belongs to run {RUN}, not to second"):
        open_run(tmp_path, plan=Plan("second", PLAN.plugins))


def no_directory(state: Path) -> None:
    (state / "tls").write_bytes(b"")


def link_to_itself(state: Path) -> None:
    (state / "tls").mkdir(parents=True)
    (state / "tls" / "server.pem").symlink_to("server.pem")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda state: (state / "tls" / "server.pem").mkdir(parents=True), "Is a directory"),
        (no_directory, "Not a directory"),
        (link_to_itself, "Too many levels of symbolic links"),
    ],
    ids=["a directory", "a file in the directory's place", "a link to itself"],
)
def test_what_is_kept_cannot_be_read(
    tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    """Said with the file's name; it is no first start, which would take workers their access."""
    damage(tmp_path)
    with pytest.raises(CertificateError, match=rf"server\.pem: {said}"):
        open_run(tmp_path, lambda _: pytest.fail("handed out"))


def test_names_that_came_later_are_told(tmp_path: Path) -> None:
    """Nothing can be added without the CA's key: who uses the new name will not trust us."""
    open_run(tmp_path)
    again = open_run(tmp_path, names=("LOCALHOST", "[::1]", "10.0.0.7", "new.example"))

    assert ("10.0.0.7", "new.example") == again.uncovered
    assert () == open_run(tmp_path).uncovered


def test_a_name_that_cannot_be_one_after_a_restart(tmp_path: Path) -> None:
    """The setting is wrong, not the file."""
    open_run(tmp_path)
    with pytest.raises(CertificateError, match="neither IP addresses nor DNS names: 'a b'"):
        open_run(tmp_path, names=("a b",))


@pytest.mark.parametrize(
    ("left", "said", "expired"),
    [
        (3601, None, False),
        (3600, "expire at ", False),
        (1, "expire at ", False),
        (0, "expired at ", True),
        (-5, "expired at ", True),
    ],
)
def test_the_end_is_warned_of(tmp_path: Path, left: float, said: str | None, expired: bool) -> None:
    """An hour before; a start after the end is still one, for the status."""
    held = open_run(tmp_path, now=1_900_000_000.0)
    warning = held.warning(held.expires_at - left)

    assert 1_900_000_000.0 + validity(PLAN, None) == held.expires_at
    assert (said is None) == (warning is None)
    assert (said or "") in (warning or "")
    assert expired == held.expired(held.expires_at - left)
