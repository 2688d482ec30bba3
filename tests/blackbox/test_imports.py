"""This suite survives any change inside the product: nothing that it reaches imports it.

What a module reaches: what it imports, the conftest.py files that pytest loads for it, and modules
and files of tests/ that it names to start them as programs.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
PRODUCT = ("reporter", "cmd")
IMPORTERS = ("import_module", "__import__", "importorskip")
DOTTED = re.compile(r"(?<![\w./-])reporter\.(\w+)")
IMPORTED = re.compile(r"\b(?:import|from) reporter\b")
FILES = [path for path in TESTS.rglob("*.py") if "__pycache__" not in path.parts]
NAMES = Counter(path.name for path in FILES)
SUITE = [path for path in FILES if path.is_relative_to(TESTS / "blackbox")]


def file_of(name: str) -> Path | None:
    """The file of a dotted name below tests, be it a module, a package or something in one."""
    while name.startswith("tests."):
        path = ROOT / name.replace(".", "/")
        for found in (path.with_suffix(".py"), path / "__init__.py"):
            if found.exists():
                return found
        name = name.rpartition(".")[0]
    return None


def imported(tree: ast.AST) -> Iterator[str]:
    """The dotted names that are imported anywhere in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed"
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(IMPORTERS):
            first = node.args[0] if node.args else None
            yield str(first.value) if isinstance(first, ast.Constant) else ""


def texts(tree: ast.AST) -> Iterator[str]:
    """The strings of a module that are not its documentation."""
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


@cache
def read(path: Path) -> tuple[frozenset[Path], tuple[str, ...]]:
    """The files that a module leads to, and what it says that only the product's modules know."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names, strings = set(imported(tree)), set(texts(tree))
    wrong = [f"imports {name}" for name in names if name.split(".")[0] in PRODUCT]
    for text in strings:
        modules = DOTTED.findall(text)
        known = any(
            (ROOT / "reporter" / name).with_suffix(end).exists()
            for name in modules
            for end in ("", ".py")
        )
        if known or IMPORTED.search(text):
            wrong.append(f"says {text!r}")
    leads = {file_of(name) for name in names | strings}
    leads |= {each for each in FILES if each.name in strings and NAMES[each.name] == 1}
    for folder in path.relative_to(ROOT).parents:
        leads |= {ROOT / folder / name for name in ("conftest.py", "__init__.py")}
    return frozenset(each for each in leads if each and each.exists()), tuple(sorted(wrong))


def offences(*paths: Path) -> list[str]:
    """What these modules, and those that come with them, know of the product's modules."""
    found, left = set(paths), list(paths)
    while left:
        new = read(left.pop())[0] - found
        found |= new
        left += new
    return [f"{path.relative_to(TESTS)} {wrong}" for path in found for wrong in read(path)[1]]


def test_nothing_of_the_product_is_imported() -> None:
    assert [] == sorted(offences(*SUITE))


def test_what_is_imported_elsewhere_is_found() -> None:
    """Directly, by way of another module, and in a program that is started."""
    for name, importing in {
        "integration/scene.py": "integration/scene.py",
        "integration/sidecar/conftest.py": "integration/conftest.py",
        "long/test_aggregator_crowds.py": "aggregators/link_worker.py",
        "long/test_aggregator_crash_points.py": "aggregators/launch_trapped.py",
    }.items():
        assert any(said.startswith(f"{importing} ") for said in offences(TESTS / name)), name
