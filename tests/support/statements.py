"""Read the headers of the `.sql` files, and what their callers do with the statements."""

import ast
import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

RESULTS = ("none", "count", "one", "optional", "many")
TYPES = ("blob", "integer", "real", "text")

_TITLE = re.compile(r"-- (?P<name>[a-z][a-z0-9_]*): (?P<purpose>\S.*\.)")
_PARAMETER = re.compile(r"--   :(?P<name>[a-z_]+) +(?P<type>[a-z]+)  +(?P<meaning>\S.*)")
_FIELD = re.compile(r"-- (?P<name>Result|Called by|Plan) +(?P<value>\S.*)")
_MORE = re.compile(r"--            (?P<value>\S.*)")
_SCAN = re.compile(r"scan \((?P<why>\S.*)\)")
_ITEM = re.compile(r"[a-z]+(_[a-z0-9]+)+|PRIMARY KEY")

# Where a FROM ends, at its own depth of parentheses.
_AFTER_FROM = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "RETURNING", "WINDOW", "SET", "ON"}
_AFTER_FROM |= {"UNION", "EXCEPT", "INTERSECT", "SELECT", ";"}

# What may stand between a statement and the call of its method: a choice among several.
_CHOICE = (ast.Dict, ast.IfExp, ast.List, ast.Name, ast.Subscript, ast.Tuple)


class Parameter(NamedTuple):
    """One line of the block of parameters."""

    name: str
    type: str
    meaning: str


class Header(NamedTuple):
    """What a file says about its statement."""

    name: str
    purpose: str
    parameters: tuple[Parameter, ...]
    result: str
    columns: tuple[str, ...]
    callers: tuple[str, ...]
    plan: str

    @property
    def scans(self) -> bool:
        """Whether reading a whole table is declared."""
        return _SCAN.fullmatch(self.plan) is not None

    @property
    def indexes(self) -> tuple[str, ...]:
        """The indexes that are named."""
        return () if self.scans or self.plan in ("-", "none") else _items(self.plan)


def split(text: str) -> tuple[list[str], str]:
    """Return the leading comment lines and the statement behind them."""
    lines = text.splitlines()
    size = next((at for at, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return lines[:size], "\n".join(lines[size:])


def header(text: str) -> Header:
    """Read a file's header; an AssertionError says what it lacks."""
    lines, _ = split(text)
    title = _TITLE.fullmatch(lines[0]) if lines else None
    assert title, "the first line is not `-- name: purpose.`"
    assert lines[1:3] == ["--", "-- Parameters"], "no block of parameters after the first line"
    rest = lines[3:]
    parameters = _parameters(rest)
    values = {name: _field(rest, name) for name in ("Result", "Called by", "Plan")}
    assert not rest or rest[0] == "--", f"{rest[0]!r} belongs to no part of the header"
    result, _, columns = values["Result"].partition("; ")
    assert result in RESULTS, f"the result {result!r} is none of {RESULTS}"
    plan = values["Plan"]
    assert (
        plan in ("-", "none") or _SCAN.fullmatch(plan) or all(map(_ITEM.fullmatch, _items(plan)))
    ), f"the plan {plan!r} is neither a list of indexes nor `scan (why)` nor `-`"
    return Header(
        name=title["name"],
        purpose=title["purpose"],
        parameters=parameters,
        result=result,
        columns=_items(columns),
        callers=_items(values["Called by"]),
        plan=plan,
    )


def _items(value: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in value.split(",") if item.strip())


def _parameters(rest: list[str]) -> tuple[Parameter, ...]:
    """Take the lines of the parameters off the rest."""
    if rest[:1] == ["--   none"]:
        del rest[0]
        return ()
    found = []
    while rest and (line := _PARAMETER.fullmatch(rest[0])):
        assert line["type"] in TYPES, f":{line['name']} has the type {line['type']!r}"
        found.append(Parameter(**line.groupdict()))
        del rest[0]
    assert found, "neither a parameter nor `none` in the block of parameters"
    return tuple(found)


def _field(rest: list[str], name: str) -> str:
    """Take one field and the lines that go on with it off the rest."""
    line = _FIELD.fullmatch(rest.pop(0)) if rest else None
    assert line, f"no `{name}` where it belongs"
    assert line["name"] == name, f"`{line['name']}` stands where `{name}` belongs"
    value = line["value"]
    while rest and (more := _MORE.fullmatch(rest[0])):
        value += " " + more["value"]
        del rest[0]
    return value


def bare(sql: str) -> str:
    """Return a statement without its comments and with its texts emptied."""
    return re.sub(
        r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'",
        lambda found: "''" if found[0].startswith("'") else " ",
        sql,
        flags=re.DOTALL,
    )


def parameters(sql: str) -> set[str]:
    """Name the `:parameters` of a statement."""
    return set(re.findall(r":([A-Za-z_][A-Za-z0-9_]*)", bare(sql)))


def has_positional(sql: str) -> bool:
    """Tell whether a statement has a parameter of any kind but `:name`."""
    return re.search(r"\?|[@$][A-Za-z_]", bare(sql)) is not None


def has_star(sql: str) -> bool:
    """Tell whether a statement asks for all columns, whatever they are."""
    starred = r"(?:\b(?:SELECT|DISTINCT|ALL|RETURNING)|,|\.)\s*\*"
    return re.search(starred, bare(sql), re.IGNORECASE) is not None


def has_comma_join(sql: str) -> bool:
    """Tell whether tables are joined by a comma, without a word about how."""
    inside = [False]
    for token in re.findall(r"\w+|[(),;]", bare(sql).upper()):
        if token == "(":
            inside.append(False)
        elif token == ")":
            inside.pop()
        elif token == "FROM":
            inside[-1] = True
        elif token in _AFTER_FROM:
            inside[-1] = False
        elif token == "," and inside[-1]:
            return True
    return False


def resolve(path: str) -> tuple[ModuleType, object]:
    """Import the module of a dotted path and return it with the object that the path names."""
    module_name, _, name = path.rpartition(".")
    module = import_module(module_name)
    return module, getattr(module, name)


def fetched(file: Path) -> set[str]:
    """Name the statements that a module fetches at its import."""
    return {
        node.args[0].value
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if _is_fetch(node)
    }


def methods(module: ModuleType, name: str) -> set[str]:
    """Name the methods of a statement that a module calls, itself or by handing it on."""
    tree = ast.parse(inspect.getsource(module))
    names = _assigned(tree, lambda value: _is_fetch(value, name))
    assert names, f"{module.__name__} does not fetch {name}"
    chosen = _assigned(tree, lambda value: isinstance(value, _CHOICE) and _mentions(value, names))
    found = _methods_on(tree, names | chosen)
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        for at, argument in enumerate(call.args):
            if isinstance(argument, ast.Name) and argument.id in names:
                found |= _methods_of_parameter(getattr(module, call.func.id), at)
    return found


def _assigned(tree: ast.AST, fits: Callable[[ast.AST], bool]) -> set[str]:
    return {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and fits(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _is_fetch(node: ast.AST, name: str | None = None) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "statement"
        and isinstance(node.args[0], ast.Constant)
        and name in (None, node.args[0].value)
    )


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def _methods_on(tree: ast.AST, names: set[str]) -> set[str]:
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in RESULTS and _mentions(node.value, names)
    }


def _methods_of_parameter(function: object, at: int) -> set[str]:
    name = list(inspect.signature(function).parameters)[at]
    return _methods_on(ast.parse(inspect.getsource(function)), {name})
