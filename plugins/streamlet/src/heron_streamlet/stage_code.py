"""Generates the function of a stage: source text that calls the authors' functions one after the other.

A chain of objects would pay a call for each operator and element. The text for ``map``, ``filter`` and an outlet:

    def process(tup):
        try:
            (v0,) = tup.values
            v1 = f1(v0)
            if f2(v1):
                component.emit((v1,))
        except OperatorError:
            raise
        except Exception as error:
            raise located(error) from error

Each line belongs to one operator, so a failure names the operator: `StageCode.operator_of` finds it by the line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from heron.errors import UserCodeError
from heron_streamlet.graph import LATE, RESULTS, Input, Node
from heron_streamlet.operators import (
    AssignEventTime,
    Consume,
    FilterBy,
    FlatMap,
    KeyBy,
    Log,
    Map,
    Pass,
    Repartition,
    Transform,
    Write,
)
from heron_streamlet.stages import Form, Outlet, Stage

__all__ = ["OperatorError", "StageCode", "StageHost"]


class OperatorError(UserCodeError):
    """An author's function failed; the message names its operator and the line that added it."""


class StageHost(ABC):
    """What the code of a stage calls of the engine.

    Attributes:
        component: the object that the text calls `component`. Its `times` has, by the number of a node, the function
            that gives event time and bound of the next element.
    """

    component: object

    @abstractmethod
    def row(self, outlet: Outlet, values: str) -> str:
        """An expression that sends a row. `values` is the text of a tuple."""

    @abstractmethod
    def assignment(self, outlet: Outlet) -> Callable[[Any, Any, int, int], int]:
        """Assigns ``(key, value, time, bound)`` to windows; returns for how many it is late."""

    @abstractmethod
    def late(self, count: int) -> None:
        """Counts windows that elements missed."""


@dataclass(slots=True)
class StageCode:
    """The generated text of a stage, and the names that it uses.

    `host` sends rows. Elements enter by the head: a head that reads rows of elements is called by ``process``, any
    other gives its results to ``follow(value, time, bound)``.
    """

    stage: Stage
    host: StageHost
    names: dict[str, Any] = field(default_factory=dict)
    _lines: list[str] = field(default_factory=list)
    _nodes: list[int] = field(default_factory=list)

    def follow(self) -> Callable[[Any, int, int], None]:
        """The function that takes the results of the head, or the elements of a source."""
        return self._made("follow", "v{0}, t, b", [])

    def process(self, parameters: str, prologue: Sequence[str], epilogue: Sequence[str] = ()) -> Callable[..., None]:
        """A function that takes rows of elements. The prologue sets ``v{0}``, and ``t`` and ``b`` if rows are timed."""
        return self._made("process", parameters, prologue, epilogue)

    def operator_of(self, trace: TracebackType | None) -> Node:
        """The operator in which an exception was raised."""
        number = self.stage.head.number
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._filename:
                number = self._nodes[trace.tb_lineno - 1]
            trace = trace.tb_next
        return next(node for node in self.stage.nodes if node.number == number)

    def located(self, error: Exception) -> OperatorError:
        """The error of an author's function, with its operator and the author's own traceback."""
        node = self.operator_of(error.__traceback__)
        found = OperatorError(f"operator {node}: {type(error).__name__}: {error}")
        return found.with_traceback(error.__traceback__)

    @property
    def _filename(self) -> str:
        return f"<stage {self.stage.name}>"

    def _made(
        self, name: str, parameters: str, prologue: Sequence[str], epilogue: Sequence[str] = ()
    ) -> Callable[..., None]:
        head = self.stage.head
        self._lines, self._nodes = [], []
        self._add(0, head.number, f"def {name}({parameters.format(head.number)}):")
        self._add(1, head.number, "try:")
        for line in prologue:
            self._add(2, head.number, line.format(head.number))
        if isinstance(head.operator, _STEPS):
            self._step(2, head, f"v{head.number}")
        else:
            self._continue(2, head, f"v{head.number}")
        for line in (*epilogue, "pass"):
            self._add(2, head.number, line)
        for line in _HANDLERS:
            self._add(1, head.number, line)
        self.names |= {"located": self.located, "OperatorError": OperatorError, "component": self.host.component}
        # Parameters of an enclosing function are faster than globals.
        text = f"def make({', '.join(self.names)}):\n" + "".join(f" {line}\n" for line in self._lines)
        self._nodes = [head.number, *self._nodes]  # of each line, that of `make` included
        namespace: dict[str, Any] = {}
        exec(compile(f"{text} return {name}\n", self._filename, "exec"), namespace)  # noqa: S102  # our own text only
        made: Callable[..., None] = namespace["make"](**self.names)
        return made

    def _add(self, depth: int, node: int, line: str) -> None:
        self._lines.append(" " * depth + line)
        self._nodes.append(node)

    def _continue(self, depth: int, node: Node, value: str) -> None:
        """What happens with a result of a node: each operator behind it in the stage, and each outlet."""
        for other in self.stage.nodes:
            if other is not self.stage.head and other.inputs[0] == Input(node.number):
                self._step(depth, other, value)
        for outlet in self.stage.outlets:
            if outlet.source == node.number and outlet.output == RESULTS:
                self._leave(depth, node, outlet, value)

    def _step(self, depth: int, node: Node, value: str) -> None:
        number, operator = node.number, node.operator
        result, function = f"v{number}", f"f{number}"
        if isinstance(operator, (Pass, Repartition)):
            self._continue(depth, node, value)
            return
        if isinstance(operator, AssignEventTime):
            self._add(depth, number, f"t, b = component.times[{number}]({value})")
            self._continue(depth, node, value)
            return
        if isinstance(operator, KeyBy):
            self.names[function] = operator.key
            second = value
            if operator.value is not None:
                self.names[f"g{number}"] = operator.value
                second = f"g{number}({value})"
            self._add(depth, number, f"{result} = ({function}({value}), {second})")
            self._continue(depth, node, result)
            return
        self.names[function] = _function(operator)
        if isinstance(operator, Map):
            self._add(depth, number, f"{result} = {function}({value})")
            self._continue(depth, node, result)
        elif isinstance(operator, (FlatMap, Transform)):
            self._add(depth, number, f"for {result} in {function}({value}):")
            self._continue(depth + 1, node, result)
            self._add(depth + 1, number, "pass")
        elif isinstance(operator, FilterBy):
            self._add(depth, number, f"if {function}({value}):")
            self._continue(depth + 1, node, value)
            self._add(depth + 1, number, "pass")
        else:
            self._add(depth, number, f"{function}({value})")

    def _leave(self, depth: int, node: Node, outlet: Outlet, value: str) -> None:
        number, host = node.number, self.host
        key, second = f"k{number}", f"x{number}"
        if outlet.form in (Form.ELEMENT, Form.ITSELF):
            values = [value] if outlet.form is Form.ELEMENT else [value, value]
        else:
            values = [key, second]
            pair = f"None, {value}" if outlet.whole else value
            self._add(depth, number, f"{key}, {second} = {pair}")
        if outlet.form.assigned:
            self._assign(depth, outlet, key, second, value)
            return
        if outlet.timed:
            values += ["t", "b"]
        self._add(depth, number, host.row(outlet, f"({', '.join(values)},)"))

    def _assign(self, depth: int, outlet: Outlet, key: str, second: str, value: str) -> None:
        number = outlet.source
        name = f"assign{outlet.number}"
        self.names[name] = self.host.assignment(outlet)
        self.names["late"] = self.host.late
        self._add(depth, number, f"n = {name}({key}, {second}, t, b)")
        self._add(depth, number, "if n:")
        self._add(depth + 1, number, "late(n)")
        for other in self.stage.outlets:
            if other.output == LATE and other.source == outlet.target:
                values = f"({value}, t, b)" if other.timed else f"({value},)"
                self._add(depth + 1, number, self.host.row(other, values))


_HANDLERS = ("except OperatorError:", " raise", "except Exception as error:", " raise located(error) from error")
_STEPS = (Pass, Repartition, AssignEventTime, KeyBy, Map, FlatMap, Transform, FilterBy, Consume, Log, Write)


def _function(operator: object) -> Callable[..., Any]:
    if isinstance(operator, (Map, FlatMap, FilterBy, Consume)):
        return operator.function
    if isinstance(operator, Transform):
        return operator.transformer.transform
    if isinstance(operator, Write):
        return operator.sink.put
    return _print


def _print(element: object) -> None:
    print(element, flush=True)  # noqa: T201  # what `log` is for: the log of the task
