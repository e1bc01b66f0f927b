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

Each line belongs to one operator, so a failure names the operator: `StageCode.operator_of` finds it by the line. Where
a stream has several readers, or a function gives several elements, each has its own ``try``: a failure of one is passed
to `StageHost.failed`, and costs no other. A ``try`` costs nothing while nothing is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any

from heron_streamlet.failures import DEAD_LETTER, OperatorError, failed_at
from heron_streamlet.plan.graph import LATE, RESULTS, Input, Node
from heron_streamlet.plan.operators import (
    AssignEventTime,
    ColumnStep,
    Consume,
    FilterBy,
    FlatMap,
    Gather,
    KeyBy,
    Log,
    Map,
    Pass,
    Repartition,
    Transform,
    Write,
)
from heron_streamlet.plan.stages import Form, Outlet, Stage
from heron_streamlet.runtime.stage_host import StageHost
from heron_streamlet.windowing.event_time import EXACT_BELOW_S, event_time_us
from heron_streamlet.windowing.window_assignment import Combiner, WindowAssignment

__all__ = ["StageCode", "row_prologue"]


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
    _elements: list[str] = field(default_factory=list)
    _element: str = ""
    _before: list[str] = field(default_factory=list)
    _after: list[str] = field(default_factory=list)
    _begin: Node | None = None
    _blocks: int = 0

    def feed(self) -> Callable[[Iterable[Any]], None]:
        """The function that takes elements of a source. After an exception, the iterator is at the next one."""
        return self._made("def feed(elements):", [], "for v{0} in elements:")

    def follow(self) -> Callable[[Any, int, int], None]:
        """The function that takes results of the head, with event time and bound."""
        return self._made("def follow(v{0}, t, b):", [])

    def process(self, parameters: str, prologue: Sequence[str]) -> Callable[..., None]:
        """A function that takes rows of elements. The prologue sets ``v{0}``, and ``t`` and ``b`` if rows are timed.

        It raises what fails if the row fails as a whole.
        """
        return self._made(f"def process({parameters}):", prologue)

    def behind(self, node: Node) -> Callable[[Any, Any, Any], None]:
        """The function that takes results of another node than the head, as `follow` those of the head."""
        return self._made(f"def behind(v{node.number}, t, b):", [], begin=node)

    def operator_of(self, trace: TracebackType | None) -> Node:
        """The operator in which an exception was raised."""
        number = self.stage.head.number
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _file_of(self.stage, self._begin):
                number = self._nodes[trace.tb_lineno - 1]
            trace = trace.tb_next
        return next(node for node in self.stage.nodes if node.number == number)

    def located(self, error: Exception, values: Sequence[object] = ()) -> OperatorError:
        """The error of an author's function, with its operator and the author's own traceback.

        `values` is the element for a dead letter, if it is not in the text of this stage.
        """
        if isinstance(error, OperatorError):
            return error
        step = self.operator_of(error.__traceback__).step
        if step.rule != DEAD_LETTER:
            return failed_at(step, error)
        found = failed_at(
            step,
            error,
            *(values or _element_at(error.__traceback__, _file_of(self.stage, self._begin), self._elements)),
        )
        if self.host.origin is not None:
            origin = self.host.origin()
            found.letters = tuple(replace(each, tup_id=origin) for each in found.letters)
        return found

    def _made(
        self,
        signature: str,
        prologue: Sequence[str],
        loop: str = "",
        begin: Node | None = None,
    ) -> Callable[..., None]:
        self._begin = begin
        head, depth = begin or self.stage.head, 3 if loop else 2
        name = signature.removeprefix("def ").partition("(")[0]
        self._lines, self._nodes, self._before, self._after = [], [], [], []
        self._elements, self._element = [], ""
        self._blocks = 0
        self._add(1, head.number, "try:")
        for line in (*prologue, loop):
            self._add(2, head.number, line.format(head.number))
        if isinstance(head.operator, _STEPS) and begin is None:
            self._step(depth, head, f"v{head.number}")
        else:
            self._continue(depth, head, f"v{head.number}")
        self._add(depth, head.number, "pass")
        handlers = _COUNTED if name == "process" else _HANDLERS
        for line in (*handlers, *(["finally:"] if self._after else []), *(f" {each}" for each in self._after)):
            self._add(1, head.number, line)
        self._lines[:0] = [signature.format(head.number), *(f" {line}" for line in self._before)]
        self._nodes[:0] = [head.number] * (1 + len(self._before))
        self._elements[:0] = [""] * (2 + len(self._before))
        self.names |= {
            "located": self.located,
            "OperatorError": OperatorError,
            "component": self.host.component,
            "failed": self.host.failed,
            "counted": self.host.counted,
        }
        # Parameters of an enclosing function are faster than globals.
        text = f"def make({', '.join(self.names)}):\n" + "".join(f" {line}\n" for line in self._lines)
        self._nodes = [head.number, *self._nodes]  # of each line, that of `make` included
        namespace: dict[str, Any] = {}
        compiled = compile(f"{text} return {name}\n", _file_of(self.stage, self._begin), "exec")
        exec(compiled, namespace)  # noqa: S102  # our own text only
        made: Callable[..., None] = namespace["make"](**self.names)
        return made

    def _add(self, depth: int, node: int, line: str) -> None:
        self._lines.append(" " * depth + line)
        self._nodes.append(node)
        self._elements.append(self._element)

    def _continue(self, depth: int, node: Node, value: str) -> None:
        """What happens with a result of a node: each operator behind it in the stage, and each outlet."""
        if self._blocks >= _BLOCKS_AT_MOST and not isinstance(node.operator, KeyBy):  # its result is not one name
            self.names[f"c{node.number}"] = StageCode(self.stage, self.host).behind(node)
            self._add(depth, node.number, f"c{node.number}({value}, {'t, b' if node.timed else 'None, None'})")
            return
        readers: list[Callable[[int], None]] = [
            partial(self._step, node=other, value=value)
            for other in self.stage.nodes
            if other is not self.stage.head and other.inputs[0] == Input(node.number)
        ]
        readers += [
            partial(self._leave, node=node, outlet=outlet, value=value)
            for outlet in self.stage.outlets
            if outlet.source == node.number and outlet.output == RESULTS
        ]
        for reader in readers:
            if len(readers) == 1:
                reader(depth)
            else:
                self._alone(depth, node.number, reader)

    def _alone(self, depth: int, node: int, write: Callable[[int], None]) -> None:
        """Text whose failures end there."""
        self._block(depth, node, "try:", write)
        self._add(depth, node, "except Exception as error:")
        self._add(depth + 1, node, "failed(located(error))")

    def _block(self, depth: int, node: int, begin: str, write: Callable[[int], None]) -> None:
        """A ``try`` or a loop, of which Python nests 20 in a function; `_continue` counts them."""
        self._blocks += 1
        self._add(depth, node, begin)
        write(depth + 1)
        self._add(depth + 1, node, "pass")
        self._blocks -= 1

    def _step(self, depth: int, node: Node, value: str) -> None:
        self._element, operator = value, node.operator
        if isinstance(operator, (Pass, Repartition)):
            self._continue(depth, node, value)
        elif isinstance(operator, AssignEventTime):
            self._read_time(depth, node, operator, value)
            self._continue(depth, node, value)
        elif isinstance(operator, KeyBy):
            self._key(depth, node, operator, value)
        elif isinstance(operator, (ColumnStep, Gather)):
            self._columns(depth, node, operator, value)
        else:
            self._call(depth, node, value)

    def _call(self, depth: int, node: Node, value: str) -> None:
        """An author's function that gives elements, says whether an element stays, or consumes it."""
        number, operator = node.number, node.operator
        result, function = f"v{number}", f"f{number}"
        self.names[function] = _function_of(operator, self.host)
        if isinstance(operator, Map):
            self._add(depth, number, f"{result} = {function}({value})")
            self._continue(depth, node, result)
            return
        if isinstance(operator, FilterBy):
            self._add(depth, number, f"if {function}({value}):")
            self._continue(depth + 1, node, value)
            self._add(depth + 1, number, "pass")
            return
        if not isinstance(operator, (FlatMap, Transform)):  # it ends the stream
            self._add(depth, number, f"{function}({value})")
            return
        each = partial(self._alone, node=number, write=partial(self._continue, node=node, value=result))
        self._block(depth, number, f"for {result} in {function}({value}):", each)

    def _read_time(self, depth: int, node: Node, operator: AssignEventTime, value: str) -> None:
        """Event time and bound. The clock is in local variables while elements are read."""
        number = node.number
        if operator.columns:
            from heron_streamlet.arrow.times import column_times  # noqa: PLC0415  # pyarrow is optional

            self.names |= {f"f{number}": operator.function, "column_times": column_times}
            self._add(depth, number, f"t, b = column_times(f{number}({value}), component.clocks[{number}])")
            return
        clock, latest, bound, limit = (f"{name}{number}" for name in ("clock", "latest", "bound", "limit"))
        self.names |= {f"f{number}": operator.function, "event_time_us": event_time_us, "EXACT_S": EXACT_BELOW_S}
        self._before += [
            f"{clock} = component.clocks[{number}]",
            f"{latest}, {bound}, {limit} = {clock}.latest_us, {clock}.bound_us, {clock}.limit_us",
        ]
        self._after += [f"{clock}.latest_us, {clock}.bound_us = {latest}, {bound}"]
        for line in (
            f"t = f{number}({value})",
            "t = round(t * 1000000) if type(t) is float and -EXACT_S < t < EXACT_S else event_time_us(t)",
            f"b = {bound}",
            f"if t > {latest}:",
            f" if t > {limit}:",
            f"  {limit} = {clock}.check_future(t)",
            f" {latest}, {bound} = t, t - {operator.lag_us}",
        ):
            self._add(depth, number, line)

    def _columns(self, depth: int, node: Node, operator: ColumnStep | Gather, value: str) -> None:
        """Operators between records and batches, which have other event times behind them than before."""
        number = node.number
        times = "t, b" if node.timed else "None, None"
        if isinstance(operator, Gather):
            behind = StageCode(self.stage, self.host).behind(node)
            self.names[f"f{number}"] = self.host.gatherer(node.number, operator, behind)
            self._add(depth, number, f"f{number}({value}, {times})")
            return
        self.names[f"f{number}"] = operator.step
        each = partial(self._alone, node=number, write=partial(self._continue, node=node, value=f"v{number}"))
        loop = partial(
            self._block, node=number, begin=f"for v{number}, t, b in f{number}({value}, {times}):", write=each
        )
        if not node.timed:
            loop(depth)
            return
        self._add(depth, number, f"t{number}, b{number} = t, b")
        self._block(depth, number, "try:", loop)
        self._add(depth, number, "finally:")
        self._add(depth + 1, number, f"t, b = t{number}, b{number}")

    def _key(self, depth: int, node: Node, operator: KeyBy, value: str) -> None:
        """Key and value stay apart: the text of the pair stands where a pair is needed."""
        number, second = node.number, value
        self.names[f"f{number}"] = operator.key
        self._add(depth, number, f"k{number} = f{number}({value})")
        if operator.value is not None:
            self.names[f"g{number}"] = operator.value
            second = f"x{number}"
            self._add(depth, number, f"{second} = g{number}({value})")
        self._continue(depth, node, f"(k{number}, {second})")

    def _leave(self, depth: int, node: Node, outlet: Outlet, value: str) -> None:
        number, host = node.number, self.host
        self._element = value
        if outlet.form is Form.COLUMNS:
            self._assign_rows(depth, outlet, value)
            return
        key, second = f"k{number}", f"x{number}"
        if outlet.form in (Form.ELEMENT, Form.ITSELF):
            values = [value] if outlet.form is Form.ELEMENT else [value, value]
        else:
            values = [key, second] = _parts(value) if isinstance(node.operator, KeyBy) else [key, second]
            if outlet.whole:
                values = [key, second] = ["None", value]
            elif not isinstance(node.operator, KeyBy):
                self._add(depth, number, f"{key}, {second} = {value}")
        if outlet.columns:
            from heron_streamlet.arrow.batches import without_rest  # noqa: PLC0415  # pyarrow is optional

            self.names["without_rest"] = without_rest
            values = [f"without_rest({value})"]
        if outlet.form.assigned:
            self._assign(depth, outlet, key, second, value)
            return
        if outlet.timed:
            values += ["t", "b"]
        self._add(depth, number, host.row(outlet, f"({', '.join(values)},)"))

    def _assign(self, depth: int, outlet: Outlet, key: str, second: str, value: str) -> None:
        """Assigns an element to windows; a late one is dropped and counted, or sent to the late stream."""
        number, name = outlet.source, f"assign{outlet.number}"
        assigned = self.host.assignment(outlet)
        self.names |= {name: assigned.add, "late": self.host.late}
        combiner = assigned.combiner
        after = ""
        if isinstance(assigned, WindowAssignment) and combiner is not None and assigned.pane_windows:
            after = self._combine(depth, outlet, assigned, combiner, key, second)
            depth += 1
        self._add(depth, number, f"n = {name}({key}, {second}, t, b)")
        if after:
            self._add(depth, number, after)
        self._add(depth, number, "if n:")
        self._add(depth + 1, number, "late(n)")
        for other in self.stage.outlets:
            if other.output == LATE and other.source == outlet.target:
                values = f"({value}, t, b)" if other.timed else f"({value},)"
                self._alone(depth + 1, number, partial(self._add, node=number, line=self.host.row(other, values)))

    def _assign_rows(self, depth: int, outlet: Outlet, value: str) -> None:
        from heron_streamlet.arrow.assignment import missed_rows  # noqa: PLC0415  # pyarrow is optional

        number, name = outlet.source, f"assign{outlet.number}"
        self.names |= {name: self.host.column_assignment(outlet).add, "late": self.host.late, "missed": missed_rows}
        self._add(depth, number, f"n, m = {name}({value}, t, b)")
        self._add(depth, number, "if n:")
        self._add(depth + 1, number, "late(n)")
        for other in self.stage.outlets:
            if other.output == LATE and other.source == outlet.target:
                values = f"missed({value}, t, b, m)" + ("" if other.timed else "[:1]")
                self._alone(depth + 1, number, partial(self._add, node=number, line=self.host.row(other, values)))

    def _combine(self, depth: int, outlet: Outlet, assigned: WindowAssignment, combiner: Combiner, *pair: str) -> str:
        """What `WindowAssignment.add` does in the usual case, without calls: the windows of the last pane are at hand.

        The text ends with an ``else`` for all other cases; returns a line that is needed behind them.
        """
        key, value = pair
        number, window = outlet.number, assigned.window
        words = ("pane", "end", "close", "place", "window", "windows", "add", "fail")
        names = {word: f"{word}{number}" for word in words}
        fold = combiner.fold
        self.names |= {names["windows"]: combiner.windows, names["add"]: fold.adder(), names["fail"]: combiner.fail}
        self._before.append("{pane} = {end} = {close} = 0".format(**names))
        values = {
            **names,
            "key": key,
            "adding": fold.adding(f"{names['window']}[{key}]", value, names["add"]),
            "slide": window.slide_us,
            "earlier": window.size_us - window.slide_us,
            "count": assigned.pane_windows,
            "span": assigned.span_us,
        }
        for line in _COMBINED:
            self._add(depth, outlet.source, line.format(**values))
        return _WINDOW.format(**values)


_WINDOW = "{window} = {windows}.get({place}, {{}})"  # again behind an `add`: too many may have been combined
_COMBINED = (
    "if not {pane} <= t < {end}:",
    " {pane} = t - t % {slide}",
    " {end}, {close} = {pane} + {slide}, {pane} - {earlier} + {span}",
    " {place} = ({pane} - {earlier}, {count})",
    f" {_WINDOW}",
    "if {close} > b and {key} in {window}:",
    " try:",
    "  {window}[{key}] = {adding}",
    " except Exception as error:",
    "  {fail}({place}, {key}, error)",
    "else:",
)
_HANDLERS = ("except OperatorError:", " raise", "except Exception as error:", " raise located(error) from error")
_COUNTED = (
    "except OperatorError as error:",
    " counted(error)",
    " raise",
    "except Exception as error:",
    " raise counted(located(error)) from error",
)
_BLOCKS_AT_MOST = 12
"""Nested blocks of a function; a step adds up to 4, and Python has room for 20."""

_STEPS = (
    Pass,
    Repartition,
    AssignEventTime,
    KeyBy,
    Map,
    FlatMap,
    Transform,
    FilterBy,
    ColumnStep,
    Gather,
    Consume,
    Log,
    Write,
)


def _file_of(stage: Stage, begin: Node | None) -> str:
    """The name of the text in tracebacks; `begin` is the node that it begins behind, if that is not the head."""
    behind = f" behind {begin.name}" if begin is not None else ""
    return f"<stage {stage.name}{behind}>"


def _element_at(trace: TracebackType | None, file: str, elements: Sequence[str]) -> tuple[object, ...]:
    """The element at hand where an exception was raised in a text; `elements` has its name by line. Empty for none."""
    found: tuple[object, ...] = ()
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_filename == file:
            text = elements[trace.tb_lineno - 1]
            found = (eval(text, {}, frame.f_locals),) if text else ()  # noqa: S307  # names of our own text
        trace = trace.tb_next
    return found


def _function_of(operator: object, host: StageHost) -> Callable[..., Any]:
    """What the text of a stage calls for an operator."""
    if isinstance(operator, (Map, FlatMap, FilterBy, Consume)):
        return operator.function
    if isinstance(operator, Transform):
        return operator.transformer.transform
    if isinstance(operator, Write):
        return operator.sink.put
    return host.log


def _parts(pair: str) -> list[str]:
    """Key and value of the text that `StageCode._key` makes."""
    key, _, value = pair[1:-1].partition(", ")
    return [key, value]


def row_prologue(stage: Stage, row: str) -> tuple[str]:
    """The prologue of `StageCode.process` for a row of elements; `row` is the text that gives it."""
    values = "v{0}, t, b" if stage.head.timed else "v{0},"
    return (f"({values}) = {row}",)
