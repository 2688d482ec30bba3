"""What the soak says of how often Pods ask while they are refused."""

from __future__ import annotations

import pytest

from tests.blackbox.soak.faults import MOST, judge_pace
from tests.blackbox.soak.found import Contradiction
from tests.blackbox.soak.proxy import RETRY_AFTER, Asked

STATUS = "/apis/batch/v1/namespaces/n/jobs/j/status"


def asked(*moments: float, status: int = 429, client: str = "n/pod") -> list[Asked]:
    return [Asked(at, client, "GET", STATUS, status) for at in moments]


def test_retry_after_may_be_cut_short_three_times():
    judge_pace(asked(0.0, 1.0, 2.0, 3.0, 3.0 + RETRY_AFTER))


def test_retry_after_is_not_heeded():
    with pytest.raises(Contradiction, match="Retry-After"):
        judge_pace(asked(0.0, 1.0, 2.0, 3.0, 4.0))


def test_a_pod_asks_without_a_pause():
    with pytest.raises(Contradiction, match="without a pause"):
        judge_pace(asked(*(0.01 * number for number in range(MOST + 1)), status=500))


def test_many_pods_ask_at_once():
    requests = [asked(0.01 * number, client=f"n/{number}") for number in range(2 * MOST)]
    judge_pace([each for few in requests for each in few])
