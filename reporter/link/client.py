"""A worker's client of its aggregator: results, progress, heartbeats. Synchronous, thread-safe.

Which answers are tried again and when is in `policy.py`, how one exchange goes in `connection.py`,
who is trusted in `trust.py`. Nothing here logs: what happens on the way goes to `on_event`.
"""

import json
import math
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any, Self

from reporter.common.certificate import not_after
from reporter.link.answers import AggregatorAnswer, Beat, Delivery, Reply
from reporter.link.config import WorkerConfig
from reporter.link.delivery import Event, Left, Parcel, Patience, Stop, deliver
from reporter.link.exchange import AggregatorConnection, KeptConnection, NoAnswer
from reporter.link.request import (
    Request,
    digest_header,
    disposition,
    encode_progress,
    request,
    type_of_unreadable,
)
from reporter.link.sockets import TimeLimits
from reporter.link.source import Content, ResultSource
from reporter.link.trust import Trust
from reporter.run.progress import Progress

EXPIRY_WARNING_SECONDS = 3600.0
_KEPT_FOR = 2.0
"""Heartbeat intervals that a connection is kept idle; our aggregators keep it for three."""


class AggregatorClient:
    """Talks to the aggregator of one run for one plugin on one node.

    `stop` ends a wait between tries: the next try is made at once, and all that is under way must
    be over within `config.grace_seconds` from then. Who knows better gives `ends`, which returns
    until when a delivery may go on, stop or not. `clock` gives monotonic seconds, `rng` numbers in
    [0, 1), `wall` gives Unix seconds. `sleep` waits once `stop` is set; a true answer ends the wait
    that it is part of. `on_event` is called with a word and its facts, from any thread that uses
    the client:

    - `retry`: a try of a delivery failed (`attempt`, `status`, `trouble`, `delay` in seconds);
    - `another_result_held`: the aggregator has one of this worker already (`ours`, `held`: hex);
    - `checked_by_hand`: the aggregator's certificate has Sonobuoy's shape;
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
    ) -> None:
        self.config = config
        self._rng, self._wall = rng, wall
        self._patience = Patience(
            config.grace_seconds, clock=clock, stop=stop, sleep=sleep, ends=ends
        )
        self._on_event = on_event
        self._limits = limits or TimeLimits()
        self._trust = Trust(config, wall=wall)
        self._kept = KeptConnection(self._limits.idle)
        self._in_order = threading.Lock()
        self._epoch, self._seq = os.urandom(8).hex(), 0
        self._told_expiry = False
        # The features that Sonobuoy's aggregator does not have; None before it has answered a
        # heartbeat.
        self._features: frozenset[str] | None = None
        self._told_by_hand = False
        self._warn_of_expiry()  # hours before a delivery fails for it

    def close(self) -> None:
        """Close idle connections and give up deliveries in other threads."""
        self._patience.end()
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def put_result(
        self, source: ResultSource, *, result_format: str = "", budget: float | None = None
    ) -> Delivery:
        """Deliver the result, trying again while the aggregator waits for it.

        `result_format` names a format that the aggregator may know, so that it can tell whether the
        result is a success (`ADAPTER_RESULT`). `budget` is the most seconds it may take. Raises
        `TrustError`, and `SourceError` when the source cannot be read.
        """
        with source.open() as content:

            def put(left: Left) -> AggregatorAnswer:
                content.measure()
                headers = {
                    "Content-Type": content.content_type,
                    "Content-Disposition": disposition(source.name),
                    **_named(result_format),
                }
                return self._put(content, headers, left)

            return self._deliver(put, lambda: content.digest, budget)

    def report_error(
        self,
        text: str,
        cause: str,
        partial: ResultSource | None = None,
        *,
        evidence: Mapping[str, Any] | None = None,
        unreadable: str = "",
        result_format: str = "",
        budget: float | None = None,
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
        named = ResultSource.from_bytes(document, "error.json", "application/json")
        bare = ResultSource.from_bytes(
            json.dumps({"error": text}).encode(), "", type_of_unreadable(unreadable)
        )
        source = partial.carrying(named.name, document) if partial else named
        with source.open() as content, bare.open() as for_sonobuoy:
            sent = [content]

            def put(left: Left) -> AggregatorAnswer:
                if self._features is None:
                    answer = self._beat(left)
                    if answer.status not in {200, 404}:
                        return answer
                if "outcome" in (self._features or ()):
                    content.measure()
                    headers = {
                        "Content-Type": content.content_type,
                        "Content-Disposition": disposition(source.name),
                        "Result-Outcome": "error",
                        **_named(result_format),
                    }
                    return self._put(content, headers, left)
                if not unreadable:
                    return AggregatorAnswer(404, {}, b"the aggregator takes no error reports")
                sent[0] = for_sonobuoy
                return self._put(for_sonobuoy, {"Content-Type": for_sonobuoy.content_type}, left)

            return self._deliver(put, lambda: sent[0].digest, budget)

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
                request(self.config, "POST", "progress", headers, body),
                _for_seconds(self._limits.progress),
            )
        return Reply(answer.status, answer.body, answer.headers.get("content-type", ""))

    def heartbeat(self) -> Beat:
        """Tell the aggregator that this worker is alive, once. Raises `NoAnswer`, `TrustError`."""
        answer = self._beat(_for_seconds(self._limits.heartbeat))
        return Beat(answer.status, answer.interval, answer.features)

    def _beat(self, left: Left) -> AggregatorAnswer:
        within = _for_seconds(self._limits.heartbeat)
        answer = self._exchange(
            request(self.config, "GET", "health"), lambda: min(left(), within())
        )
        if answer.status == 200:
            self._features = answer.features
            if answer.interval is not None:
                self._kept.seconds = max(self._limits.idle, _KEPT_FOR * answer.interval)
        elif answer.status == 404:
            self._features = frozenset()
        return answer

    def _put(self, content: Content, headers: Mapping[str, str], left: Left) -> AggregatorAnswer:
        framing = {
            "Content-Length": str(content.length),
            "Content-Digest": digest_header(content.digest),
        }
        said = request(self.config, "PUT", "results", {**headers, **framing}, content.pieces())
        # Aggregators close the connection with the answer; a new one is never stale.
        with closing(self._connection()) as connection:
            return self._converse(connection, said, left)

    def _deliver(
        self,
        put: Callable[[Left], AggregatorAnswer],
        digest: Callable[[], str],
        budget: float | None,
    ) -> Delivery:
        self._warn_of_expiry()
        return deliver(
            Parcel(put, digest),
            self._patience,
            window=self.config.upload_window_seconds,
            budget=budget,
            rng=self._rng,
            on_event=self._on_event,
        )

    def _connection(self) -> AggregatorConnection:
        return AggregatorConnection(self.config.host, self.config.port, self._trust, self._limits)

    def _exchange(self, said: Request, left: Left) -> AggregatorAnswer:
        """Make one exchange on a kept connection, or on a new one."""
        if connection := self._kept.take():
            try:
                answer = self._converse(connection, said, left)
            except NoAnswer as error:
                # The aggregator may have closed it just when we began to speak.
                if not error.stale:
                    raise
            else:
                self._kept.give(connection)
                return answer
        connection = self._connection()
        answer = self._converse(connection, said, left)
        self._kept.give(connection)
        return answer

    def _converse(
        self, connection: AggregatorConnection, said: Request, left: Left
    ) -> AggregatorAnswer:
        answer = connection.exchange(said, left)
        if self._trust.pinned and not self._told_by_hand:
            self._told_by_hand = True
            self._on_event("checked_by_hand", {})
        return answer

    def _warn_of_expiry(self) -> None:
        left = math.inf
        with suppress(ValueError):  # a warning only: OpenSSL has accepted it
            left = not_after(self.config.client_cert) - self._wall()
        if left < EXPIRY_WARNING_SECONDS and not self._told_expiry:
            self._told_expiry = True
            self._on_event("certificate_expires", {"seconds": left})


def _named(result_format: str) -> dict[str, str]:
    return {"Result-Format": result_format} if result_format else {}


def _for_seconds(seconds: float) -> Left:
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()
