"""Tracers: the values of the graph within operators. They are no arrays, so C code cannot take their numbers unseen.

``isinstance(x, np.ndarray)`` and ``isinstance(x, compgraph.Node)`` are true of a tracer, because it reports the class of the
node that it would be at the top level as its ``__class__``. ``type(x)`` is the class of tracers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..storage import TRACERS, Opaque, OpaqueTransform, root_of
from ..tracing import OPAQUE_CLASSES
from .node import Node, Value
from .reported import reported_class

TRANSFORM_TRACERS: set[type[Any]] = (
    set()
)  # the classes of values that carry something, each the interpreter of operations on them


class Tracer(Value, Opaque):  # type: ignore[misc]
    """A value within an operator; `plain` holds its numbers."""

    __slots__ = ()
    __hash__ = object.__hash__  # type: ignore[assignment]
    node_kind: ClassVar[type[Node]]  # what it reports as its class

    def __init_subclass__(cls) -> None:
        OPAQUE_CLASSES.add(cls.__name__)

    @property
    def base(self) -> Any:
        """The node that a view was taken of, as arrays have it; None for a value with memory of its own."""
        root = root_of(self)
        return None if root is self else root


class TransformTracer(OpaqueTransform, Tracer):  # type: ignore[misc]
    """A tracer that carries something beside its numbers: a tangent, or one value for each element of a batch."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        TRANSFORM_TRACERS.add(cls)


def define_tracer(kind: type[Node], **attributes: Any) -> None:
    """Make the class of the tracers for a kind of nodes."""
    inherited = {name: getattr(kind, name) for name in ("kind", "what", "is_scalar", "is_index")}
    own = {"shown_as": kind.shown_as or kind, "node_kind": kind, "__class__": reported_class if kind.is_scalar else kind}
    name = kind.__name__.replace("Node", "Tracer")
    OPAQUE_CLASSES.add(kind.__name__)  # which errors that show ``x.__class__`` name
    TRACERS[kind] = type(name, (Tracer,), {"__slots__": (), "__module__": __name__, **inherited, **own, **attributes})


def node_class(value: Any) -> Any:
    """The class of nodes that a node is an instance of, or that a tracer would be an instance of at the top level."""
    kind = type(value)
    return getattr(kind, "node_kind", kind)


def is_tracer(value: Any) -> bool:
    """Whether a value is a tracer."""
    return issubclass(type(value), Tracer)


def is_operator_tracer(value: Any) -> bool:
    """Whether a value is a tracer that only operators make."""
    return issubclass(type(value), Tracer) and not value.is_index
