"""Write docs/reference.md from paci's docstrings: python docs/reference.py"""

import ast
import importlib
import inspect
from pathlib import Path
from textwrap import dedent

import paci
from paci.pipeline import Pipeline
from paci.schedules import SCHEDULES, theory
from paci.segment import Segment
from paci.simulation.timeline import Timeline

FILE = Path(__file__).with_suffix(".md")
HEAD = """\
# Reference

What `paci` offers, from its docstrings; `make reference` writes this page. [api.md](api.md) tells
the same as a story.
"""
PARTS = {
    "Simulation": ["simulate", "Cost", "Simulation", Timeline],
    "Training": [
        Pipeline,
        "LocalPipeline",
        "DistributedPipeline",
        Segment,
        "Compute",
        "Safeguards",
        "NonFinite",
    ],
    "Schedules": ["Schedule", "FixedOrder", *dict.fromkeys(SCHEDULES.values())],
    "Orders of actions": ["read_orders", "write_orders"],
    "Closed forms": [theory],
}


def reference() -> str:
    """Return the page."""
    parts = [HEAD]
    for title, things in PARTS.items():
        parts.append(f"## {title}\n")
        for thing in things:
            if isinstance(thing, str):
                parts += _described(f"paci.{thing}", getattr(paci, thing))
            elif inspect.ismodule(thing):
                functions = inspect.getmembers(thing, inspect.isfunction)
                own = [f for _, f in functions if f.__module__ == thing.__name__]
                own.sort(key=lambda function: function.__code__.co_firstlineno)
                for function in own:
                    parts += _described(f"{thing.__name__}.{function.__name__}", function)
            else:
                name = getattr(thing, "name", None) if thing in SCHEDULES.values() else None
                parts += _described(name or f"{thing.__module__}.{thing.__name__}", thing)
    return "\n".join(parts)


def _described(name: str, thing: type | object) -> list[str]:
    """Return a heading, the call, the docstring, and the methods of a class."""
    node = _node(thing)
    lines = [f"### `{name}`\n", *_call(name, thing, node)]
    if inspect.isclass(thing) and thing in SCHEDULES.values():
        lines += _text(importlib.import_module(thing.__module__).__doc__)
        own = vars(thing).get("__doc__")
        return lines + (_text(own) if own else [])
    lines += _text(inspect.getdoc(thing))
    if isinstance(node, ast.ClassDef):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                inherited = inspect.getdoc(getattr(thing, method.name))
                is_property = any(
                    ast.unparse(d).endswith("property") for d in method.decorator_list
                )
                call = method.name if is_property else f"{method.name}({_arguments(method)})"
                if inherited:
                    lines += [f"**`.{call}`**\n", *_text(inherited)]
    return lines


def _call(name: str, thing: object, node: ast.AST | None) -> list[str]:
    """Return the call with its arguments as the source has them, if it fits."""
    if isinstance(node, ast.ClassDef):
        init = next((f for f in node.body if getattr(f, "name", "") == "__init__"), None)
        if init is None:
            return []
        node = init
    if not isinstance(node, ast.FunctionDef):
        return []
    called = thing.__name__
    one = f"{called}({_arguments(node)})"
    if len(one) > 90:
        arguments = _arguments(node, ",\n    ")
        one = f"{called}(\n    {arguments},\n)"
    return [f"```text\n{one}\n```\n"]


def _arguments(function: ast.FunctionDef, between: str = ", ") -> str:
    """Return the arguments of a function without `self` and without types, but with defaults."""
    given = function.args
    names = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(names) - len(given.defaults)) + list(given.defaults)
    texts = [
        _argument(a, d)
        for a, d in zip(names, defaults, strict=True)
        if a.arg not in ("self", "cls")
    ]
    if given.vararg:
        texts.append(f"*{given.vararg.arg}")
    elif given.kwonlyargs:
        texts.append("*")
    texts += [_argument(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    if given.kwarg:
        texts.append(f"**{given.kwarg.arg}")
    return between.join(texts)


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    return argument.arg if default is None else f"{argument.arg}={ast.unparse(default)}"


def _node(thing: object) -> ast.AST | None:
    """Return the definition of a class or a function in its file."""
    tree = ast.parse(inspect.getsource(importlib.import_module(thing.__module__)))
    kinds = ast.ClassDef, ast.FunctionDef
    return next(n for n in tree.body if isinstance(n, kinds) and n.name == thing.__name__)


def _text(docstring: str | None) -> list[str]:
    """Return a docstring as Markdown: what its author aligned stays aligned."""
    blocks = []
    for block in inspect.cleandoc(docstring or "").split("\n\n"):
        is_aligned = any(
            "  " in line.strip() or line.startswith(" ") for line in block.splitlines()
        )
        is_example = ">>>" in block
        if is_aligned or is_example:
            # Consecutive blocks of one picture are one.
            if blocks and blocks[-1].endswith("\n```"):
                blocks[-1] = blocks[-1][: -len("\n```")] + f"\n\n{block}\n```"
            else:
                blocks.append(f"```text\n{dedent(block)}\n```")
        else:
            blocks.append(block)
    return [block + "\n" for block in blocks]


if __name__ == "__main__":
    FILE.write_text(reference(), encoding="utf-8")
    print(FILE)
