"""The Jobs of a soak: created, disturbed, watched from outside, and judged when they are over."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from tests.bed.api import ApiError
from tests.bed.node import Node
from tests.blackbox.scenarios.actions import MERGE, STRATEGIC, kill_reporter
from tests.blackbox.scenarios.jobs import ADAPTER, REPORTER, Object
from tests.blackbox.scenarios.recorder import Seen
from tests.blackbox.scenarios.run import Run, Shown, condition, container_status, state
from tests.blackbox.scenarios.stage import Stage
from tests.blackbox.soak.draw import GRACE, ROLES, VALID, Plan, draw
from tests.blackbox.soak.faults import Faults
from tests.blackbox.soak.found import Contradiction
from tests.blackbox.soak.making import LABEL, PRODUCT_ENV, STATUS_CTL, Made
from tests.blackbox.soak.model import (
    INVALID,
    NEVER,
    OLD,
    AdapterRun,
    Attempt,
    Verdict,
    Written,
    exit_code,
    finals,
    owes,
    reaped,
)
from tests.blackbox.soak.witness import (
    LINES_A_MINUTE,
    MARK,
    Audit,
    busiest_minute,
    check_events,
    check_others,
    check_shown,
    delay,
)

START_SECONDS = 300.0
PROMPT_SECONDS = 15.0
"""After the adapter's end, on a busy machine; a watch that was cut is tried again every 10 s."""
CALM_SECONDS = 15.0
"""Before its last verdict nothing was done that an ending reporter may still have to do with."""
END_SECONDS = 420.0
REAP = ["reap", "--watch", "-A", "-l", f"{LABEL}=job", "--settle", "6s", "--interval", "3s"]
REAPED_SECONDS = 40.0
LOOK_SECONDS = 5.0
MOST_BYTES = 56_000_000
REQUESTS, REQUESTS_FURTHER, REQUESTS_CONFLICT, REQUESTS_FAULT = 8, 4, 2, 8
REQUESTS_A_SECOND_STOPPING = 2.0
"""A reporter that is asked to end asks for the adapter's end until it is shown."""
STAYS = {"stay", "ignore TERM"}
REFUSALS = {"403", "403 pods", "rights"}
RESTART_SECONDS = 15.0
"""The kubelet does not start a killed reporter again sooner."""
LAST_LOOK_SECONDS = 30.0
"""So long a reporter that was asked to end looks on."""
LOG_SECONDS = 3.0
"""Until what a container has written is in its log, and until a watch has shown what is known."""


@dataclass(frozen=True)
class Hit:
    """What was done to a Pod or its reporter, until it could be as before (Unix seconds)."""

    kind: str
    at: float
    until: float


class Reaper:
    """`status-ctl reap --watch` beside the Jobs."""

    def __init__(self, node: Node) -> None:
        self._log = node.folder / "reaper.log"
        self._output = self._log.open("w")
        command = [*STATUS_CTL, *REAP, "--kubeconfig", str(node.controlplane.kubeconfig)]
        self._process = subprocess.Popen(
            command, env=PRODUCT_ENV, stdout=self._output, stderr=subprocess.STDOUT
        )

    def said(self, job: str) -> str:
        """What it has said of a Job."""
        lines = self._log.read_text().splitlines()
        return "\n".join(["-- the reaper", *(line for line in lines if job in line.split())])

    def stop(self) -> int | None:
        """End it; return its exit code where it was not the one of a polite end."""
        self._process.terminate()
        code = self._process.wait(30)
        self._output.close()
        return code or None


class Jobs:
    """Single Jobs with a reporter each."""

    def __init__(self, node: Node, faults: Faults, seed: str, at_once: int) -> None:
        self._seed, self._faults, self.at_once = seed, faults, at_once
        self._stage = Stage(node)
        self._audit = Audit(node.controlplane.folder / "audit.log")
        self._hits: dict[str, list[Hit]] = defaultdict(list)  # by Pod
        self._peaks: Counter[str] = Counter()  # bytes by Pod
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._stage.__enter__()
        for role in ROLES:
            self._stage.namespace(role)
        self._reaper = Reaper(self._stage.node)
        return self

    def __exit__(self, *details: object) -> None:
        code = self._reaper.stop()
        self._stage.__exit__(*details)
        if code is not None:
            raise Contradiction(f"the reaper ended with {code}")

    def stop(self) -> None:
        """Wait for nothing any more."""
        self._stage.recorder.close()

    def play(self, number: int) -> None:
        """Create a Job, disturb it, wait for its end and judge it."""
        plan, began = draw(self._seed, number), time.time()
        made = Made(self._stage, self._faults, plan)
        try:
            self._play(plan, made.run)
        except (Contradiction, TimeoutError) as error:
            pods = [pod[-1].object["metadata"]["name"] for pod in made.run.pods()]
            faults = [*self._faults.between(began, time.time())]
            hits = [hit for pod in pods for hit in self._hits[pod]]
            now = self._faults.asking(lambda: made.run.controlplane.api.get_or_none(made.run.path))
            now = now and {"status": now["status"], "annotations": now["metadata"]["annotations"]}
            told = [error, plan, faults, hits, made.run.report(), f"-- the API now\n{now}"]
            raise Contradiction("\n".join(map(str, told))) from None
        finally:
            made.delete()
        self.counts.update((plan.form, plan.made, f"with {plan.fault or 'no fault'}"))
        self.counts.update((f"by {plan.by}", f"on {plan.volume}", f"role {plan.role}"))

    def _play(self, plan: Plan, run: Run) -> None:
        self._ask(run, "PATCH", f"{run.path}/status", MARK, STRATEGIC)
        if plan.suspended:
            time.sleep(plan.suspended)
            self._ask(run, "PATCH", run.path, {"spec": {"suspend": False}}, MERGE)
        if plan.fault:
            with suppress(LookupError, ProcessLookupError, ApiError, TimeoutError):  # it is over
                self._disturb(plan, run)
        self._wait_over(plan, run)
        time.sleep(LOG_SECONDS)
        self._judge(plan, run)

    def _ask(self, run: Run, method: str, path: str, *body: object) -> None:
        self._faults.asking(lambda: run.controlplane.request(method, path, *body))

    def _disturb(self, plan: Plan, run: Run) -> None:
        """Do what was drawn, so many seconds after the adapter's start."""

        def started() -> bool:
            return run.ended() or "containerID" in container_status(run.pod(), ADAPTER)

        run.wait(started, "the adapter has started", START_SECONDS)
        time.sleep(plan.fault_after)
        if not run.pods() or run.pods()[-1][-1].gone:
            return
        pod = run.pod()
        name, at = pod["metadata"]["name"], time.time()
        path, hits = run.pod_path(name), self._hits[name]
        again = at + RESTART_SECONDS if plan.form == "native" else NEVER
        match plan.fault:
            case "kill":
                self._faults.asking(lambda: kill_reporter(run, name))
                hits.append(Hit("kill", at, again))
            case "term":
                self._faults.asking(lambda: kill_reporter(run, name, signal.SIGTERM))
                hits.append(Hit("term", at, again + LAST_LOOK_SECONDS))
            case "stop":
                self._stop(plan, run, name)
                hits.append(Hit("stop", at, time.time()))
            case "delete":
                self._ask(run, "DELETE", path)
                hits.append(Hit("delete", at, at))
            case "force":
                self._ask(run, "DELETE", f"{path}?gracePeriodSeconds=0")
                hits.append(Hit("force", at, NEVER))
            case "suspend":
                self._ask(run, "PATCH", run.path, {"spec": {"suspend": True}}, MERGE)
                hits.append(Hit("delete", at, at))
                run.wait(lambda: run.ended() or run.pods()[-1][-1].gone, "no Pod", START_SECONDS)
                self._ask(run, "PATCH", run.path, {"spec": {"suspend": False}}, MERGE)
            case "evict":
                self._evict(run, name)
            case _:
                pods = f"/api/v1/namespaces/{run.namespace}/pods"
                found = self._faults.asking(lambda: run.controlplane.request("GET", pods))
                for each in found["items"]:
                    with suppress(ApiError):
                        self._evict(run, each["metadata"]["name"])

    def _stop(self, plan: Plan, run: Run, pod: str) -> None:
        pid = self._faults.asking(lambda: run.node.container_pid(run.namespace, pod, REPORTER))
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(plan.fault_for)
        finally:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _evict(self, run: Run, name: str) -> None:
        # Before it is done: perhaps somebody else judges this Pod.
        self._hits[name].append(Hit("evict", time.time(), time.time()))
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": run.namespace},
        }
        self._ask(run, "POST", f"{run.pod_path(name)}/eviction", body)

    def _wait_over(self, plan: Plan, run: Run) -> None:
        """Wait until the Job has ended and says so, or nothing more can come."""

        def over() -> bool:
            shown, pod = run.history(), run.pod()
            if run.ended():
                return True
            if not STAYS & {life.end for life in plan.lives}:
                return False
            if not run.pods() or run.pods()[-1][-1].gone:
                return False  # another one comes, or the Job's end
            # A classic reporter that was killed is not started again, and the adapter stays.
            hits = {hit.kind for hit in self._hits[pod["metadata"]["name"]]}
            if "terminated" in state(pod, REPORTER) and hits & {"kill", "term"}:
                return True
            if not shown:
                return False
            said = shown[-1]
            # A result may be replaced by a later run's for as long as there may be one.
            last = said.final or (said.note["rule"] == "R" and plan.policy == "OnFailure")
            return bool(last and said.note["attempt"]["pod"] == pod["metadata"]["name"])

        end = time.monotonic() + END_SECONDS
        while True:
            try:
                run.wait(over, "the end of the Job, or a final verdict", LOOK_SECONDS)
                break
            except TimeoutError:
                if time.monotonic() > end:
                    raise
                self._sample(run)
        if run.ended():
            self._wait_final(run)

    def _wait_final(self, run: Run) -> None:
        """Wait for the last word on a Job that has ended, of the reaper at the latest."""
        began, what = time.time(), "a final verdict"

        def final() -> bool:
            shown = run.history()
            return bool(shown) and shown[-1].final

        try:
            run.wait(final, what, REAPED_SECONDS)
        except TimeoutError:
            if not self._faults.between(began, time.time()):
                raise
            run.wait(final, what, START_SECONDS)

    def _sample(self, run: Run) -> None:
        """Note how much memory the newest reporter has had."""
        pod = run.pod()
        if "running" in state(pod, REPORTER):
            name = pod["metadata"]["name"]
            with suppress(LookupError, ApiError, TimeoutError, RuntimeError):
                look = run.node.usage
                usage = self._faults.asking(lambda: look(run.namespace, name, REPORTER))
                self._peaks[name] = max(self._peaks[name], usage.peak_bytes)

    def _judge(self, plan: Plan, run: Run) -> None:
        events = f"/api/v1/namespaces/{run.namespace}/events?fieldSelector=involvedObject.name="
        found = self._faults.asking(lambda: run.controlplane.request("GET", events + run.name))
        shown = run.history()
        check_others(run.versions())
        check_shown(shown)
        check_events(found["items"], shown)
        pods = run.pods()
        attempts = [self._attempt(plan, run, seen) for seen in pods]
        for place, seen in enumerate(pods):
            name, last = seen[-1].object["metadata"]["name"], place == len(pods) - 1
            own = [each for each in shown if each.note["attempt"]["pod"] == name]
            attempt = replace(attempts[place], others=_others(plan, attempts, place))
            try:
                self._judge_verdicts(plan, attempt, own, must=last and run.ended())
                self._judge_ends(plan, run, attempt, own, seen[-1].object, last=last)
                self._judge_costs(plan, run, attempt, own, seen)
            except Contradiction as error:
                raise Contradiction(f"{error}\n{attempt}") from None
            if last and own:
                self.counts[own[-1].reason.partition("-")[0]] += 1

    def _judge_verdicts(
        self, plan: Plan, attempt: Attempt, own: list[Shown], *, must: bool
    ) -> None:
        written = {each.verdict: each.begun for run in attempt.runs for each in run.writes}
        written |= dict.fromkeys(attempt.others, 0.0)
        for each in own:
            verdict = each.condition["status"], each.reason
            if each.note["rule"] == "R" and written.get(verdict, NEVER) > each.at + 1:
                raise Contradiction(f"a result that nobody has written: {each}")
            if verdict[0] == "True" and each.note["rule"] not in {"R", "S"}:
                raise Contradiction(f"a success without a cause: {each}")
        final = next((each for each in own if each.final), None)
        allowed = finals(plan, attempt)
        if final and "reaper" in final.note["evidence"]:
            if owes(attempt):
                raise Contradiction(f"the reaper wrote what the reporter should have: {final}")
            before = {(each.condition["status"], each.reason) for each in own}
            allowed = reaped(plan, attempt, before)
        elif final and plan.role != "go" and (late := delay(attempt, final.at)) > PROMPT_SECONDS:
            raise Contradiction(f"{late:.0f} s after the adapter's end: {final}")
        if final and (final.condition["status"], final.reason) not in allowed:
            raise Contradiction(f"{final}\nallowed: {sorted(allowed)}")
        if must and not final and owes(attempt):
            raise Contradiction(f"no final verdict; allowed: {sorted(allowed)}")

    def _judge_ends(
        self, plan: Plan, run: Run, attempt: Attempt, own: list[Shown], pod: Object, *, last: bool
    ) -> None:
        """How the classic reporter and the Job have ended, where nothing was done to them then."""
        if attempt.removed is not None or not own or not own[-1].final:
            return
        if "reaper" in own[-1].note["evidence"]:
            return
        gone = state(pod, REPORTER).get("terminated", {}).get("finishedAt")
        since, until = own[-1].at - CALM_SECONDS, _unix(gone) if gone else NEVER
        if any(began <= until and ended >= since for began, ended in attempt.downs):
            return
        wanted = 0
        if plan.form == "classic":
            wanted = exit_code(plan, own[-1].note["rule"], own[-1].condition["status"])
            code = state(pod, REPORTER).get("terminated", {}).get("exitCode", wanted)
            if code != wanted:
                raise Contradiction(f"the reporter ended with {code} after {own[-1]}")
        if last and run.ended() and attempt.runs and attempt.runs[-1].code is not None:
            complete = condition(run.versions()[-1].object, "Complete").get("status") == "True"
            if complete != (attempt.runs[-1].code == 0 and wanted == 0):
                raise Contradiction("the Job's end is not the one of its containers")

    def _judge_costs(
        self, plan: Plan, run: Run, attempt: Attempt, own: list[Shown], seen: list[Seen]
    ) -> None:
        """Memory, log and requests of one reporter."""
        name = seen[-1].object["metadata"]["name"]
        if self._peaks[name] >= MOST_BYTES:
            raise Contradiction(f"the reporter took {self._peaks[name]} bytes")
        lines = run.recorder.log(seen[-1].object, REPORTER)
        most = busiest_minute(_unix(line.split(" ", 1)[0]) for line in lines)
        if most > LINES_A_MINUTE:
            raise Contradiction(f"the reporter wrote {most} lines in a minute")
        faults = self._faults.between(attempt.created, time.time())
        # Without a watch it has to ask, and after a conflict, which the API server has not seen.
        if plan.role == "go" or any(each.kind == "409" for each in faults):
            return
        asked = self._audit.requests_of(name)
        conflicts = sum(n for what, n in asked.items() if what.endswith(" 409"))
        # A Pod that says nothing new may have been disturbed since.
        disturbed = {*attempt.downs, *((each.began, each.ended) for each in faults)}
        if disturbed:
            # Refused ones have a pace of their own.
            asked = Counter({what: n for what, n in asked.items() if what[-3:] in {"200", "201"}})
        further = max(0, len({each.reason for each in own}) - 2)
        progress = int((seen[-1].at - attempt.created) / 30) + 1
        budget = REQUESTS + REQUESTS_FURTHER * further + REQUESTS_CONFLICT * conflicts
        # What was answered and then cut off is asked again, and counts twice.
        cut = sum(each.kind == "cut" for each in faults)
        budget += REQUESTS_FAULT * (len(disturbed) + cut)
        if any(life.progress == "good" for life in plan.lives):
            budget += progress
        stopping = LAST_LOOK_SECONDS * sum(hit.kind == "term" for hit in self._hits[name])
        # The kubelet ends a native reporter after its adapter.
        ended = attempt.runs[-1].ended if attempt.runs and plan.form == "native" else None
        asked_to_end = [at for at in (attempt.removed, ended) if at is not None]
        if asked_to_end:
            stopping += max(seen[-1].at - min(asked_to_end), GRACE)
        if stopping:
            budget += int(REQUESTS_A_SECOND_STOPPING * stopping) + 1
        if asked.total() > budget:
            raise Contradiction(f"{asked.total()} requests where {budget} are enough: {asked}")

    def _attempt(self, plan: Plan, run: Run, seen: list[Seen]) -> Attempt:
        versions = [each.object for each in seen]
        metadata = versions[-1]["metadata"]
        created, until = _unix(metadata["creationTimestamp"]), seen[-1].at
        hits = self._hits[metadata["name"]]
        asked = [hit.at for hit in hits if hit.kind == "force"]
        for each in (version["metadata"] for version in versions):
            if "deletionTimestamp" in each:
                grace = each.get("deletionGracePeriodSeconds", 0)
                asked.append(_unix(each["deletionTimestamp"]) - grace)
        shown = [moment for each in versions for moment in state(each, REPORTER).values()]
        ups = [_unix(moment["startedAt"]) for moment in shown if moment.get("startedAt")]
        jobs = [version.object.get("status", {}) for version in run.versions()]
        starts = [_unix(job["startTime"]) for job in jobs if "startTime" in job]
        start = max((each for each in starts if each <= created + 1), default=created)
        gone = [(h.at, h.until) for h in hits if h.kind in {"stop", "kill", "term", "force"}]
        faults = self._faults.between(created - GRACE, until + GRACE)
        away = [(each.began, each.ended) for each in faults]
        held = sum(hit.until - hit.at for hit in hits if hit.until < NEVER)
        held += sum(
            min(each.ended, until + GRACE) - max(each.began, created - GRACE) for each in faults
        )
        kinds = {hit.kind for hit in hits}
        return Attempt(
            created=created,
            up=min(ups, default=NEVER),
            runs=tuple(_adapter_runs(run.recorder.log(versions[-1], ADAPTER), versions)),
            removed=min(asked, default=None),
            deadline=start + plan.deadline if plan.deadline else NEVER,
            evicted="evict" in kinds,
            deleted=not kinds.isdisjoint({"delete", "force"}),
            thrown=any("BackoffLimitExceeded" in str(job.get("conditions")) for job in jobs),
            downs=(*gone, *away),
            delayed=held + (10.0 if plan.role == "go" else 0.0),
            refused=not REFUSALS.isdisjoint(each.kind for each in faults),
        )


def _others(plan: Plan, attempts: list[Attempt], place: int) -> frozenset[Verdict]:
    """What others have left at the path, or write there, and this attempt takes for its own."""
    said = [
        {each.verdict for run in attempt.runs for each in run.writes} - {INVALID}
        for attempt in attempts
    ]
    found = {OLD} if plan.volume == "claim with an old result" else set[Verdict]()
    found = found.union(*said[:place]) if attempts[place].refused else set()
    if attempts[place].removed is not None:  # the next Pod comes meanwhile
        found = found.union(*said[place + 1 :])
    return frozenset() if plan.volume == "emptyDir" else frozenset(found)


def _adapter_runs(lines: list[str], versions: list[Object]) -> Iterator[AdapterRun]:
    """Read the adapter's own words, and the ends of its runs as the API has shown them."""
    ends: dict[int, Object] = {}
    for version in versions:
        status = container_status(version, ADAPTER)
        count = status.get("restartCount", 0)
        if ended := status.get("state", {}).get("terminated"):
            ends[count] = ended
        if ended := status.get("lastState", {}).get("terminated"):
            ends[count - 1] = ended
    # By their numbers: the log of an earlier run may be gone.
    runs: dict[int, list[tuple[float, list[str]]]] = {}
    for line in lines:
        stamp, _, _, text = line.split(" ", 3)
        if text.startswith("begin "):
            runs[int(text.split()[1])] = []
        if runs:
            runs[max(runs)].append((_unix(stamp), text.split()))
    for number, said in runs.items():
        writes: list[Written] = []
        stays = False
        for at, (kind, *words) in said:
            if kind == "write":
                text, reason = words
                valid: Verdict = VALID.get(text, ""), reason
                writes.append(Written(at, None, valid if valid[0] else INVALID))
            elif kind == "wrote":
                writes[-1] = Written(writes[-1].begun, at, writes[-1].verdict)
            elif kind == "end":
                stays = " ".join(words) in STAYS
        end = ends.get(number, {})
        yield AdapterRun(
            began=said[0][0],
            writes=tuple(writes),
            ended=_unix(end["finishedAt"]) if end.get("finishedAt") else None,
            code=end.get("exitCode"),
            out_of_memory=end.get("reason") == "OOMKilled",
            stays=stays,
        )


def _unix(stamp: str) -> float:
    whole, _, fraction = stamp.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{fraction or 0}")
