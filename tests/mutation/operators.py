"""The small faults that are made: one expression or statement is replaced, all other text stays.

What only people read is left alone (docstrings, messages, log calls, what is raised), and so are
annotations and decorators.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

SWAPPED = [(ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)]
NEGATED = [*SWAPPED, (ast.Lt, ast.GtE), (ast.Gt, ast.LtE)]
BOUNDARY = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE)]
LOGIC = [(ast.And, ast.Or)]
ARITHMETIC = [(ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.BitAnd, ast.BitOr)]
LOGGED = {"debug", "info", "warning", "error", "exception", "critical"}
UNTOUCHED = (ast.JoinedStr, ast.Assert, ast.Raise)
NOT_RUN = {"decorator_list", "annotation", "returns", "bases"}


@dataclass(frozen=True)
class Mutant:
    """One change of a module; `lines` are those of its statement, none if it runs on import."""

    operator: str
    line: int
    lines: range | None
    start: int
    end: int
    now: str

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.now.encode() + source[self.end :]


def mutants(source: bytes) -> list[Mutant]:
    """Return every change of a module, in the order of its text."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, lines in _places(ast.parse(source), None):
        for operator, old, new in _changes(node, lines is not None):
            now = ast.unparse(ast.fix_missing_locations(new))
            if isinstance(new, ast.expr) and not isinstance(new, ast.Constant):
                now = f"({now})"
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            found.append(Mutant(operator, old.lineno, lines, start, end, now))
    return sorted(found, key=lambda each: (each.start, each.end, each.now))


def _places(node: ast.AST, lines: range | None) -> Iterator[tuple[ast.AST, range | None]]:
    """Every node that may be changed, with the lines of its statement if it is in a function."""
    if isinstance(node, ast.stmt) and lines is not None:
        inner = getattr(node, "body", None) or getattr(node, "cases", None)
        last = getattr(inner[0], "lineno", 0) - 1 if inner else node.end_lineno or 0
        lines = range(node.lineno, max(node.lineno, last) + 1)
    call = node.value if isinstance(node, ast.Expr) else node
    if isinstance(call, ast.Call) and getattr(call.func, "attr", "") in LOGGED:
        return
    yield node, lines
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Assign(targets=[ast.Name(id="__all__")]):
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Subscript(value=ast.Name(id=name)) if name[:1].isupper():
            return  # a type: Literal["a", "b"]
    for name, value in () if isinstance(node, UNTOUCHED) else ast.iter_fields(node):
        if name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = range(0)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in NOT_RUN:
                yield from _places(child, lines)


def _changes(node: Any, in_function: bool) -> Iterator[tuple[str, Any, ast.AST]]:
    """What is changed of a node: the name of the operator, the old part and the new one."""
    match node:
        case ast.Compare():
            for name, pairs in (("comparison", NEGATED), ("boundary", BOUNDARY)):
                for place, op in enumerate(node.ops):
                    for new in _swapped(op, pairs):
                        yield (
                            name,
                            node,
                            _with(node, ops=[*node.ops[:place], new, *node.ops[place + 1 :]]),
                        )
        case ast.BoolOp():
            for new in _swapped(node.op, LOGIC):
                yield "and/or", node, _with(node, op=new)
        case ast.UnaryOp(op=ast.Not()):
            yield "not dropped", node, node.operand
        case ast.BinOp() | ast.AugAssign() if in_function:  # on import `A | B` is a type
            for new in _swapped(node.op, ARITHMETIC):
                yield "arithmetic", node, _with(node, op=new)
        case ast.Constant(value=bool(value)):
            yield "constant", node, ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", node, ast.Constant(value + 1)
            yield "constant", node, ast.Constant(value - 1)
        case ast.Constant(value=str(value) | bytes(value)) if len(value.split()) == 1:
            yield "constant", node, ast.Constant(value[:0])
        case ast.Call():
            for each in node.keywords:
                if each.arg:
                    rest = [other for other in node.keywords if other is not each]
                    yield "argument dropped", node, _with(node, keywords=rest)
        case ast.Return(value=ast.expr() as value) if getattr(value, "value", ...) is not None:
            yield "return", node, ast.Return(ast.Constant(None))
        case ast.Break() | ast.Continue():
            for new in _swapped(node, [(ast.Break, ast.Continue)]):
                yield "break/continue", node, new
        case ast.If() | ast.While() | ast.IfExp():
            if not isinstance(node.test, ast.Compare | ast.UnaryOp | ast.Constant):
                yield "condition", node.test, ast.UnaryOp(ast.Not(), node.test)
    match node:
        case (
            ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete() | ast.Raise()
        ):
            yield "statement removed", node, ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement removed", node, ast.Pass()


def _swapped(old: Any, pairs: list[tuple[Any, Any]]) -> list[Any]:
    both = [*pairs, *((new, old) for old, new in pairs)]
    return [new() for kind, new in both if isinstance(old, kind)]


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    changed = copy(node)
    vars(changed).update(fields)
    return changed
