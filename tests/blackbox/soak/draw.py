"""What is drawn from the seed: a Job, what its adapter does, and what happens to it.

The same seed and number give the same draw, whatever else is drawn or happens.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Literal, get_args

Text = Literal["success", "failure", "wrong", "cut", "empty", "large"]
End = Literal["exit 0", "exit 3", "oom", "stay", "ignore TERM", "SEGV", "KILL"]
Fault = Literal["", "kill", "term", "stop", "delete", "evict", "force", "drain", "suspend"]
Role = Literal["shipped", "go", "service-named-metrics"]
Trouble = Literal["", "image", "config", "command"]

RESULT = "/results/adapter-result.json"
PROGRESS = "/results/progress.json"
GRACE = 20
ROLES: tuple[Role, ...] = get_args(Role)
REMOVALS = {"delete", "evict", "drain", "suspend"}
VALID = {"success": "True", "failure": "False"}
_TEXTS: dict[Text, str] = {
    "success": """printf '{"status": "success", "reason": "%s"}' $reason""",
    "failure": """printf '{"status": "failure", "reason": "%s", "message": "drawn"}' $reason""",
    "wrong": """printf '{"status": "perhaps"}'""",
    "cut": """printf '{"status": "succ'""",
    "empty": "true",
    "large": "head -c 1100000 /dev/zero",
}


@dataclass(frozen=True)
class Write:
    """A result that is written so many seconds after the step before; by a rename or in place."""

    after: float
    text: Text
    renamed: bool


@dataclass(frozen=True)
class Life:
    """What one run of the adapter does; `end` comes `rest` seconds after the last write."""

    progress: Literal["", "good", "bad"]
    writes: tuple[Write, ...]
    rest: float
    end: End


@dataclass(frozen=True)
class Plan:
    """A Job. The adapter's n-th run in a Pod lives the n-th of `lives`, further ones the last."""

    number: int
    role: Role
    form: Literal["native", "classic"]
    made: Literal["shipped", "injected"]
    by: Literal["person", "cron by hand", "cron"]
    volume: Literal["emptyDir", "claim", "claim with an old result"]
    policy: Literal["Never", "OnFailure"]
    backoff: int
    replaced: Literal["TerminatingOrFailed", "Failed"]  # when a removed Pod is
    deadline: int  # activeDeadlineSeconds; 0: none
    suspended: float  # seconds, from its creation
    wait: int
    required: bool
    at_exit: bool
    exit_policy: Literal["infrastructure", "failure", "never"]
    trouble: Trouble
    lives: tuple[Life, ...]
    fault: Fault
    fault_after: float  # seconds after the adapter's first start
    fault_for: float  # seconds, of a stopped reporter

    @property
    def name(self) -> str:
        """The name of the Job, or of its CronJob."""
        return f"drawn-{self.number}"

    @property
    def settings(self) -> dict[str, str]:
        """The reporter's settings."""
        return {
            "MAX_WAIT_TIME_SECONDS": str(self.wait),
            "POLL_INTERVAL_SECONDS": "1",
            "RESULT_REQUIRED": str(self.required).lower(),
            "RESULT_TRUST": "at-exit" if self.at_exit else "at-once",
            "EXIT_POLICY": self.exit_policy,
        }

    @property
    def script(self) -> str:
        """The adapter in sh. It says what it is about to do, and what it has done."""
        lives = [_life(life) for life in self.lives]
        cases = "\n".join(f"{n}) {script} ;;" for n, script in enumerate(lives[:-1]))
        return f"""\
n=$(cat /results/runs-$HOSTNAME 2>/dev/null || echo 0)
echo $((n + 1)) >/results/runs-$HOSTNAME
echo "begin $n"
case $n in
{cases}
*) {lives[-1]} ;;
esac
"""

    @property
    def signalled(self) -> bool:
        """Whether a signal ends a run; the first process of a namespace would not be hit."""
        return any(life.end in {"SEGV", "KILL"} for life in self.lives)


def draw(seed: str, number: int) -> Plan:
    """Draw one Job."""
    rng = random.Random(f"{seed}/job/{number}")
    policy: Literal["Never", "OnFailure"] = rng.choice(("Never", "Never", "OnFailure"))
    lives = tuple(_draw_life(rng) for _ in range(1 if policy == "Never" else rng.choice((1, 2, 3))))
    trouble: Trouble = rng.choice((*[""] * 12, "image", "config", "command"))
    fault: Fault = rng.choice(
        ("", "", "", "", "kill", "kill", "term", "stop", "stop", "delete", "delete", "evict")
        + ("evict", "force", "suspend")
        + (("drain",) if rng.random() < 0.5 else ())
    )
    backoff = rng.choice((0, 0, 1) if policy == "Never" else (1, 2, 2))
    wait = rng.choice((8, 15, 60, 120))
    fault_after = rng.choice((rng.uniform(0.0, 6.0), rng.uniform(0.0, 20.0)))
    replaced: Literal["TerminatingOrFailed", "Failed"] = "TerminatingOrFailed"
    if fault in REMOVALS and rng.random() < 0.6:
        # Two Pods of the Job meet, and nothing but the removal ends the first.
        ends: tuple[End, ...] = ("stay", "ignore TERM", "ignore TERM")
        lives, backoff = tuple(replace(each, end=rng.choice(ends)) for each in lives), 1
        if rng.random() < 0.4:
            # Long after the start, with nothing to say but that it was removed, and time to say it.
            lives = (replace(lives[0], writes=(), rest=0.0, end="stay"),)
            policy, fault = "Never", rng.choice(("delete", "suspend", "evict"))
            wait, fault_after, replaced = 25, rng.uniform(12.0, 18.0), "Failed"
    form: Literal["native", "classic"] = rng.choice(("native", "classic"))
    if not fault and rng.random() < 0.3:
        # Its end is all that there is to see, and nobody asks the reporter to end.
        lives, form, wait = (
            (replace(lives[0], writes=(), rest=rng.uniform(15, 30)),),
            "classic",
            120,
        )
    stuck = trouble in {"image", "config"}
    return Plan(
        number=number,
        role=rng.choice((*ROLES, "shipped", "shipped")),
        form=form,
        made=rng.choice(("shipped", "shipped", "injected")),
        by=rng.choice((*["person"] * 8, "cron by hand", "cron")),
        volume=rng.choice((*["emptyDir"] * 5, "claim", "claim with an old result")),
        policy=policy,
        backoff=backoff,
        replaced=replaced,
        deadline=rng.randint(25, 40) if stuck else rng.choice((0, 0, 0, 0, rng.randint(5, 30))),
        suspended=rng.choice((*[0.0] * 9, rng.uniform(1, 4))),
        wait=wait,
        required=rng.random() < 0.8,
        at_exit=rng.random() < 0.5,
        exit_policy=rng.choice(("infrastructure", "infrastructure", "failure", "never")),
        trouble=trouble,
        lives=lives,
        fault="" if trouble else fault,
        fault_after=fault_after,
        fault_for=rng.choice((rng.uniform(0.5, 8.0), rng.uniform(8.0, 60.0))),
    )


def _draw_life(rng: random.Random) -> Life:
    texts: list[Text] = [*["success"] * 4, "failure", "failure", "wrong", "cut", "cut"]
    texts += ["empty", "large"]
    writes = tuple(
        Write(rng.choice((0.0, 0.05, rng.uniform(0, 4))), rng.choice(texts), rng.random() < 0.6)
        for _ in range(rng.choice((0, 1, 1, 1, 2)))
    )
    ends: tuple[End, ...] = get_args(End)
    end = rng.choice((*ends, "exit 0", "exit 3"))
    progress: Literal["", "good", "bad"] = rng.choice(("", "", "good", "bad"))
    rest = rng.choice((0.0, rng.uniform(0, 5), rng.uniform(10, 30)))
    return Life(progress, writes, rest, end)


def _life(life: Life) -> str:
    parts: list[str] = []
    if life.progress:
        text = '{"msg": "half", "total": 2, "completed": 1}' if life.progress == "good" else '{"msg'
        parts.append(f"printf %s '{text}' >{PROGRESS}")
    for place, write in enumerate(life.writes):
        # No two writes of one Job give the same reason.
        parts.append(f"sleep {write.after:.2f}; reason={write.text}-$n-{place}-$HOSTNAME")
        parts.append(f'echo "write {write.text} $reason"')
        if write.renamed:
            parts.append(f"{_TEXTS[write.text]} >{RESULT}.new && mv {RESULT}.new {RESULT}")
        else:
            parts.append(f"{_TEXTS[write.text]} >{RESULT}")
        parts.append("echo wrote")
    parts.append(f"sleep {life.rest:.2f}; echo 'end {life.end}'")
    match life.end:
        case "oom":
            # On some nodes only the child is killed.
            parts.append("tail /dev/zero; exit 137")
        case "stay":
            parts.append("trap 'exit 143' TERM; while :; do sleep 0.1; done")
        case "ignore TERM":
            parts.append("trap '' TERM; while :; do sleep 0.1; done")
        case "SEGV" | "KILL":
            parts.append(f"kill -{life.end} $$")
        case end:
            parts.append(end)
    return "\n".join(parts)
