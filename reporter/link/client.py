"""A worker's client of its aggregator: results, progress, heartbeats. Synchronous, thread-safe.

Which answers are tried again and when is in `delivery.py`, how one exchange goes in
`connection.py`, who is trusted in `trust.py`. Nothing here logs: what happens on the way goes to
`on_event`.
"""

import json
import math
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from types import MappingProxyType
from typing import Any, Self

from reporter import __version__
from reporter.common.certificate import not_after
from reporter.common.objects import stamp
from reporter.link.config import WorkerConfig
from reporter.link.connection import Connection, Left, NoAnswer, TimeLimits
from reporter.link.delivery import UNTRUSTED_TRIES, Event, Patience, Stop, Tries, outcome_of
from reporter.link.messages import (
    Answer,
    Beat,
    Delivery,
    Outcome,
    Reply,
    Request,
    digest_header,
    disposition,
    encode_progress,
    metadata_header,
    request,
    type_of_unreadable,
)
from reporter.link.source import Content, ResultSource, SourceChanged
from reporter.link.trust import Trust, TrustError
from reporter.run.progress import Progress

EXPIRY_WARNING_SECONDS = 3600.0


class AggregatorClient:
    """Talks to the aggregator of one run for one plugin on one node.

    `metadata` is kept with the result: facts, which become texts, beside `reporter.version`,
    `reporter.started_at` and `reporter.ended_at`. It may have 4 KiB as JSON, else ValueError.

    `stop` ends a wait between tries: the next try is made at once, and all that is under way must
    be over within `config.grace_seconds` from then. Who knows better gives `ends`, which returns
    until when a delivery may go on, stop or not. `clock` gives monotonic seconds, `rng` numbers in
    [0, 1), `wall` gives Unix seconds. `sleep` waits once `stop` is set; a true answer ends the wait
    that it is part of. `on_event` is called with a word and its facts, from any thread that uses
    the client:

    - `unreachable`: a step on the way to the aggregator, which has never answered, failed
      (`error`); said again when it is another one;
    - `reached`: that is over;
    - `retry`: a try of a delivery failed (`attempt`, `status`, `trouble`, `delay` in seconds);
    - `another_result_held`: the aggregator has one of this worker already (`ours`, `held`: hex);
    - `checked_by_hand`: the aggregator's certificate has Sonobuoy's shape; said once;
    - `certificate_expires`: within the hour, or has already (`seconds`); said once.
    """

    def __init__(
        self,
        config: WorkerConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
        stop: Stop | None = None,
        sleep: Callable[[float], object] = time.sleep,
        ends: Callable[[], float] | None = None,
        wall: Callable[[], float] = time.time,
        on_event: Event = lambda _event, _facts: None,
        limits: TimeLimits | None = None,
        metadata: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self.config = config
        self._rng, self._wall, self._on_event = rng, wall, on_event
        self._patience = Patience(
            config.grace_seconds, clock=clock, stop=stop, sleep=sleep, ends=ends
        )
        self._limits = limits or TimeLimits()
        self._trust = Trust(config, wall=wall)
        self._key = config.plugin, config.node
        self._idle: list[Connection] = []  # without a lock: append, then see `_closed`; or pop
        self._closed = False
        self._in_order = threading.Lock()
        self._epoch, self._seq = os.urandom(8).hex(), 0
        self._said: set[str] = set()
        self._obstacle: str | None = ""  # on the way to the first answer; None once that is there
        # What the aggregator can do beyond Sonobuoy's; None before it has answered a heartbeat.
        self._features: frozenset[str] | None = None
        self._warn_of_expiry()  # hours before a delivery fails for it
        began = wall()
        own = {"reporter.version": __version__, "reporter.started_at": stamp(began)}
        self._metadata = {name: str(value) for name, value in metadata.items()} | own
        metadata_header(self._metadata, ended_at=began)

    def left(self) -> float:
        """Return the seconds until all deliveries must be over; infinite before a stop."""
        return self._patience.left()

    def close(self) -> None:
        """Close idle connections and give up deliveries in other threads."""
        self._patience.end()
        self._closed = True
        self._close_idle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put_result(self, source: ResultSource, *, result_format: str = "") -> Delivery:
        """Deliver the result, trying again while the aggregator waits for it.

        `result_format` names a format that the aggregator may know, so that it can tell whether the
        result is a success (`ADAPTER_RESULT`). Raises `TrustError`, and `SourceError` when the
        source cannot be read.
        """
        with source.open() as content:
            headers = self._headers(source.name, result_format)
            return self._deliver(lambda: self._upload(content, headers), lambda: content.digest)

    def report_error(
        self,
        text: str,
        cause: str,
        partial: ResultSource | None = None,
        *,
        evidence: Mapping[str, Any] | None = None,
        unreadable: str = "",
        result_format: str = "",
    ) -> Delivery:
        """Deliver an error report instead of a result: words for people, a token for programs.

        `evidence` are further JSON members beside them. `result_format` as in `put_result`: a
        report in it whose `status` is `unknown` is neither a success nor a failure. `partial` is
        the output so far: a directory, sent with the words beside it as `error.json`, or an archive
        with such a file. `unreadable` is the name of a result that is there and cannot be read.

        An aggregator of Sonobuoy would count a report as a good result. So it is sent one only for
        an unreadable result, as its own worker does; otherwise the outcome is `REFUSED` with status
        404, the answer to the heartbeat that identified it. Raises like `put_result`.
        """
        facts = {**(evidence or {}), "error": text, "cause": cause}
        document = json.dumps(facts, ensure_ascii=False).encode("utf-8", "replace")
        words = ResultSource.from_bytes(document, "error.json", "application/json")
        source = partial.carrying(words.name, document) if partial else words
        bare = ResultSource.from_bytes(
            json.dumps({"error": text}).encode(), "", type_of_unreadable(unreadable)
        )
        headers = {**self._headers(source.name, result_format), "Result-Outcome": "error"}
        with source.open() as content, bare.open() as for_sonobuoy:
            sent = content

            def put() -> Answer:
                nonlocal sent
                if self._features is None:
                    answer = self._beat(self.left)
                    if answer.status not in {200, 404}:
                        return answer
                if "outcome" in (self._features or ()):
                    return self._upload(content, headers)
                if not unreadable:
                    return Answer(404, {}, b"the aggregator takes no error reports")
                sent = for_sonobuoy
                return self._upload(sent, {})

            return self._deliver(put, lambda: sent.digest)

    def post_progress(self, update: Progress | bytes) -> Reply:
        """Send one progress update, once; bytes are sent unchanged.

        Concurrent calls wait for each other, so that no update overtakes another. Raises `NoAnswer`
        and `TrustError`.
        """
        body = update if isinstance(update, bytes) else encode_progress(update)
        with self._in_order:
            self._seq += 1
            headers = {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                "Progress-Id": f"{self._epoch}/{self._seq}",
            }
            answer = self._exchange(
                request("POST", "progress", self._key, headers, body),
                _for_seconds(self._limits.progress),
            )
        return Reply(answer.status, answer.body, answer.headers.get("content-type", ""))

    def heartbeat(self) -> Beat:
        """Tell the aggregator that this worker is alive, once. Raises `NoAnswer`, `TrustError`."""
        answer = self._beat(lambda: math.inf)
        return Beat(answer.status, answer.interval, answer.features)

    def _beat(self, left: Left) -> Answer:
        limit = _for_seconds(self._limits.heartbeat)
        answer = self._exchange(request("GET", "health", self._key), lambda: min(left(), limit()))
        if answer.status == 200:
            self._features = answer.features
        elif answer.status == 404:
            self._features = frozenset()
        return answer

    def _deliver(self, put: Callable[[], Answer], digest: Callable[[], str]) -> Delivery:
        """Try until the delivery is settled, or until another try cannot help.

        The time that a busy aggregator takes counts only for the end of all deliveries. Raises
        `TrustError` once the aggregator has failed to prove itself often enough, and what `put`
        raises beside `NoAnswer`.
        """
        self._warn_of_expiry()
        clock = self._patience.clock
        tries = Tries(clock())
        while True:
            answer, began = None, clock()
            try:
                answer = put()
            except TrustError as error:
                tries, trouble = tries.mistrusted(), str(error)
                if tries.untrusted >= UNTRUSTED_TRIES:
                    raise
            except (NoAnswer, SourceChanged) as error:
                tries, trouble = tries.unanswered(clock() - began), str(error)
            else:
                busy, now, trouble = answer.busy, clock(), answer.line
                tries = tries.turned_away(now) if busy else tries.answered(answer.status, now)
                if outcome := outcome_of(answer.status):
                    return self._settled(outcome, answer, tries.attempts, digest())
            status = answer.status if answer else 0
            delay = tries.delay(
                clock(),
                self._rng,
                window=self.config.upload_window_seconds,
                retry_after=answer.retry_after if answer else None,
                left=self.left(),
            )
            if delay is None:
                return Delivery(Outcome.GAVE_UP, status, tries.attempts, digest(), trouble)
            facts = {"attempt": tries.attempts, "status": status}
            self._on_event("retry", {**facts, "trouble": trouble, "delay": delay})
            self._patience.pause(delay)

    def _settled(self, outcome: Outcome, answer: Answer, attempts: int, ours: str) -> Delivery:
        held = answer.digest
        if outcome is Outcome.DUPLICATE and held not in {"", ours}:
            self._on_event("another_result_held", {"ours": ours, "held": held})
        text = "" if outcome is Outcome.ACCEPTED else answer.line
        return Delivery(outcome, answer.status, attempts, ours, text, held)

    def _headers(self, name: str, result_format: str) -> dict[str, str]:
        """Return what is said of a result that has just been made."""
        told = metadata_header(self._metadata, ended_at=self._wall())
        form = {"Result-Format": result_format} if result_format else {}
        return {"Content-Disposition": disposition(name), "Result-Metadata": told, **form}

    def _upload(self, content: Content, headers: Mapping[str, str]) -> Answer:
        """Make one try with what the source holds now."""
        content.measure()
        framing = {
            "Content-Type": content.content_type,
            "Content-Length": str(content.length),
            "Content-Digest": digest_header(content.digest),
        }
        put = request("PUT", "results", self._key, {**headers, **framing}, content.pieces())
        # Aggregators close the connection with the answer; a new one is never stale.
        with closing(self._connection()) as connection:
            return self._converse(connection, put, self.left)

    def _exchange(self, message: Request, left: Left) -> Answer:
        """Make one exchange on a kept connection, or on a new one."""
        while True:
            connection = self._kept() or self._connection()
            try:
                answer = self._converse(connection, message, left)
            except NoAnswer as error:
                # The aggregator may have closed it just when we began to speak.
                if not error.stale:
                    raise
            else:
                self._idle.append(connection)
                if self._closed:
                    self._close_idle()
                return answer

    def _kept(self) -> Connection | None:
        """Return an idle connection that was still open a moment ago."""
        with suppress(IndexError):
            while not (connection := self._idle.pop()).is_connected:
                connection.close()
            return connection
        return None

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _connection(self) -> Connection:
        return Connection(self.config.host, self.config.port, self._trust.secure, self._limits)

    def _converse(self, connection: Connection, message: Request, left: Left) -> Answer:
        try:
            answer = connection.exchange(message, left)
        except (NoAnswer, TrustError) as error:
            if self._obstacle not in {None, str(error)}:
                self._obstacle = str(error)
                self._on_event("unreachable", {"error": str(error)})
            raise
        if self._obstacle:
            self._on_event("reached", {})
        self._obstacle = None
        if self._trust.by_hand:
            self._say_once("checked_by_hand", {})
        return answer

    def _warn_of_expiry(self) -> None:
        left = math.inf
        with suppress(ValueError):  # a warning only: OpenSSL has accepted it
            left = not_after(self.config.client_cert) - self._wall()
        if left < EXPIRY_WARNING_SECONDS:
            self._say_once("certificate_expires", {"seconds": left})

    def _say_once(self, event: str, facts: dict[str, Any]) -> None:
        if event not in self._said:
            self._said.add(event)
            self._on_event(event, facts)


def _for_seconds(seconds: float) -> Left:
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()
