"""The small faults of the mutation sample: what is changed, and what is left alone."""

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from tests.mutation.operators import mutants


def changed(text: str) -> set[str]:
    """Return the module in all its changed forms."""
    source = dedent(text).encode()
    return {mutant.apply(source).decode() for mutant in mutants(source)}


def test_a_limit_is_moved_and_turned_round() -> None:
    found = changed("def f(a, b):\n    print(a < b)\n")
    assert {"def f(a, b):\n    print((a <= b))\n", "def f(a, b):\n    print((a >= b))\n"} < found


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("return x and y", "return (x or y)"),
        ("return not x", "return (x)"),
        ("return x + y", "return (x - y)"),
        ("return x", "return None"),
        ("x += 1", "x -= 1"),
        ("x += 1", "pass"),
        ("x.y = z", "pass"),
        ("call(x)", "pass"),
        ("call(x, y=z)", "(call(x))"),
        ("raise Wrong(x)", "pass"),
        ("z = 1", "z = 2"),
        ("z = 1", "z = 0"),
        ("z = True", "z = False"),
        ("z = 'word'", "z = ''"),
        ("while x: break", "while x: continue"),
        ("while x: break", "while (not x): break"),
        ("z = 1 if x else y", "z = 1 if (not x) else y"),
    ],
)
def test_a_statement_is_changed(was: str, now: str) -> None:
    assert f"def f(x, y):\n    {now}\n" in changed(f"def f(x, y):\n    {was}\n")


def test_the_other_text_of_a_module_stays() -> None:
    text = "def f(a):  # why\n    return g(  a,   'ü',  b = 2)   # more\n"
    assert text.replace("2", "3") in changed(text)


@pytest.mark.parametrize(
    "text",
    [
        '"""A docstring."""\n',
        "def f() -> None:\n    '''word'''\n",
        "import this\n",
        "__all__ = ['word']\n",
        "Kind = Literal['word']\n",
        "Either = int | str\n",
        "def f(a: 'word'): ...\n",
        "@decorated(frozen=True)\nclass A:\n    a: 'word'\n",
        "def f(log):\n    log.info('word', a=1)\n",
        "z = 'a message'\n",
        "z = f'a {message} of 1'\n",
    ],
)
def test_what_is_never_changed(text: str) -> None:
    assert set() == changed(text)


def test_what_is_raised_is_not_changed_only_that_it_is_raised() -> None:
    assert {"def f():\n    pass\n"} == changed("def f():\n    raise Wrong('word', 1)\n")


def test_a_change_is_noticed_by_who_executes_its_statement() -> None:
    source = (
        b"def f(x):\n    if (x or\n            1):\n        return g(\n            2,\n        )\n"
    )
    lines = {(source[each.start : each.end], each.lines) for each in mutants(source)}
    assert {(b"1", range(2, 4)), (b"2", range(4, 7))} < lines


def test_a_change_of_what_runs_on_import_is_noticed_by_any_test_of_the_module() -> None:
    source = b"LIMIT = 2\ndef f():\n    call()\n"
    assert [(1, None), (1, None)] == [(each.line, each.lines) for each in mutants(source)][:2]


def test_every_changed_module_can_be_compiled() -> None:
    source = Path(ast.__file__).read_bytes()
    for mutant in mutants(source)[::20]:
        compile(mutant.apply(source), "ast.py", "exec")
