"""``python -m tests.mutation --package reporter/run --count 40 --seed 7``: do the tests notice?

Draws small faults in the packages, in numbers by their lines of code, and plays the tests that
execute the changed lines, the most concerned first. Which test modules execute which lines is
recorded first, and kept in .mutation/ until the product changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from tests.mutation.operators import Mutant, mutants
from tests.mutation.playing import PRODUCT, enter_copy, play, record

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / ".mutation"
TESTS = ["tests/unit", "tests/property", "tests/integration"]
SEED = "1"
FLOOR = 10
"""At least so many mutants of each package, if it has them and the count allows it."""
BUDGET = 60.0
"""Seconds of tests, as recorded, for one mutant."""

Drawn = tuple[str, str, Mutant]
"""A package, a file in it and what is changed there."""
Recorded = dict[str, tuple[float, dict[str, list[int]]]]
"""Seconds and executed lines by file, for each test module."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--package", nargs="+", help="folders or files; a file counts for one")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", default=SEED)
    parser.add_argument("--tests", nargs="+", default=TESTS, help="folders or files of tests")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no mutant later")
    parser.add_argument("--out", type=Path, default=KEPT / "result.json")
    options = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    product = {
        str(path.relative_to(ROOT)): path for path in sorted(ROOT.glob(f"{PRODUCT}/**/*.py"))
    }
    packages = options.package or sorted({"/".join(name.split("/")[:2]) for name in product})
    drawn = draw(product, [each.rstrip("/") for each in packages], options.count, options.seed)
    KEPT.mkdir(exist_ok=True)
    played = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as copy:
        Path(copy).chmod(0o755)  # some tests import the product as another user
        enter_copy(ROOT, Path(copy))
        known = record_all(product, options.tests)
        start = min(seconds for seconds, _ in known.values())
        recorded = {
            name: (seconds - start, lines) for name, (seconds, lines) in known.items() if lines
        }
        left_out = sorted(known.keys() - recorded.keys())
        for package, file, mutant in drawn:
            if time.monotonic() > end:
                break
            was = Path(file).read_bytes()[mutant.start : mutant.end].decode()
            change = f"{file}:{mutant.line}: {mutant.operator}: {was} -> {mutant.now}"
            by = play(file, mutant.apply, tests_for(file, mutant, product, recorded))
            played.append((package, " ".join(change.split()), by))
            print(len(played), *played[-1][1:], sep="  ", flush=True)
    report = {"seed": options.seed, "tests": options.tests, "left out": left_out}
    report |= summary(played, drawn)
    (ROOT / options.out).write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    for name, score in report["packages"].items():
        print(f"{name:32}", *(f"{word} {number}" for word, number in score.items()), sep="  ")
    print(*report["survivors"], sep="\n")


def draw(product: dict[str, Path], packages: list[str], count: int, seed: str) -> list[Drawn]:
    """Return the mutants; any first part of them is a fair sample too."""
    files: dict[str, list[str]] = {package: [] for package in packages}
    for name in product:
        above = [each for each in packages if Path(name).is_relative_to(each)]
        if above:
            files[max(above, key=len)].append(name)
    if empty := [package for package, names in files.items() if not names]:
        sys.exit(f"nothing in {', '.join(empty)}")
    size = {each: sum(_lines(product[name]) for name in names) for each, names in files.items()}
    places = []
    for package, quota in quotas(size, count).items():
        every = [
            (name, each) for name in files[package] for each in mutants(product[name].read_bytes())
        ]
        Random(f"{seed} {package}").shuffle(every)
        # One for a line.
        apart = {(name, each.line): (package, name, each) for name, each in every}
        # Each operator as often as the others, not as often as there are places for it.
        turns: Counter[str] = Counter()

        def turn(each: Drawn, turns: Counter[str] = turns) -> int:
            turns[each[2].operator] += 1
            return turns[each[2].operator]

        chosen = sorted(apart.values(), key=turn)[:quota]
        places += [((number + 0.5) / quota, each) for number, each in enumerate(chosen)]
    return [each for _, each in sorted(places, key=lambda place: place[0])]


def quotas(sizes: dict[str, int], count: int) -> dict[str, int]:
    """Divide the count by size, with a floor for the small ones."""
    floor, left, found = min(FLOOR, count // len(sizes)), sum(sizes.values()), {}
    for package, size in sorted(sizes.items(), key=lambda each: each[1]):
        found[package] = max(floor, round(count * size / left))
        count, left = count - found[package], left - size
    return found


def _lines(path: Path) -> int:
    return sum(1 for line in path.read_text().splitlines() if line.strip())


def record_all(product: dict[str, Path], folders: list[str]) -> Recorded:
    """Return what each test module executes; what is known of the same product is not run again."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in product.values())).hexdigest()
    kept = KEPT / "recorded.json"
    known = json.loads(kept.read_text()) if kept.exists() else {}
    if known.get("product") != digest:
        known = {"product": digest, "modules": {}}
    paths = [ROOT / each for each in folders]
    found = [
        path
        for each in paths
        for path in ([each] if each.is_file() else sorted(each.rglob("test_*.py")))
    ]
    names = [str(path.relative_to(ROOT)) for path in found]
    for name in [name for name in names if name not in known["modules"]]:
        seconds, lines = record(name)
        known["modules"][name] = seconds, lines
        print(f"{name} {seconds:.1f} s" if lines else f"{name} left out", flush=True)
        kept.write_text(json.dumps(known))
    return {name: known["modules"][name] for name in names}


def tests_for(
    file: str, mutant: Mutant, product: dict[str, Path], recorded: Recorded
) -> list[tuple[str, float]]:
    """Return the test modules for a mutant: first those whose subject the file is."""
    related = {file} if mutant.lines is not None else {file, *importers(file, product)}

    def share(lines: dict[str, list[int]]) -> float:
        own = lines.get(file, [])
        if mutant.lines is not None and not set(mutant.lines).intersection(own):
            return 0.0
        return sum(len(lines.get(each, ())) for each in related) / sum(map(len, lines.values()))

    shares = {name: share(lines) for name, (_, lines) in recorded.items()}
    chosen: list[tuple[str, float]] = []
    for name in sorted(filter(shares.get, shares), key=lambda name: -shares[name]):
        seconds = recorded[name][0]
        if not chosen or seconds + sum(each for _, each in chosen) <= BUDGET:
            chosen.append((name, seconds))
    return chosen


def importers(file: str, product: dict[str, Path]) -> list[str]:
    """The modules that import a module: what it does on import no test is seen to execute."""
    package, _, name = (
        file.removesuffix(".py").removesuffix("/__init__").replace("/", ".").rpartition(".")
    )
    wanted = re.compile(rf"\b{package}\.{name}\b|from {package} import [^#]*?\b{name}\b")
    return [each for each, path in product.items() if wanted.search(path.read_text())]


def summary(played: list[tuple[str, str, str]], drawn: list[Drawn]) -> dict[str, Any]:
    """Return the score of each package and of all, and what no test has noticed."""
    counts = {}
    for package in [*sorted({package for package, _, _ in drawn}), "all"]:
        own = [by for each, _, by in played if package in (each, "all")]
        counts[package] = {
            "drawn": sum(package in (each, "all") for each, _, _ in drawn),
            "played": len(own),
            "killed": len(own) - own.count(""),
            "survived": own.count(""),
            "score": round(100 - 100 * own.count("") / len(own), 1) if own else None,
        }
    return {"packages": counts, "survivors": [change for _, change, by in played if not by]}


if __name__ == "__main__":
    main()
