"""Scopes: names for parts of a graph, which pictures draw as boxes."""

from __future__ import annotations

from .contexts import Context
from .modes import open_scopes, scopes


class Scope(Context):
    """A context that enters its name into the nodes made inside. Made by `scope`."""

    __slots__ = ("_path",)

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__()
        self._path = path

    def __enter__(self) -> None:
        self._enter({scopes: (*open_scopes(), *self._path)})

    def __exit__(self, *exception: object) -> None:
        self._leave()


def scope(name: str) -> Scope:
    """Give a name to a part of the graph: nodes made inside know it, and `visualize_at` draws a box around them.

    Scopes nest; the same name in the same place is the same box, wherever it is opened again. A derivative that is recorded
    (``create_graph=True``) belongs to the scope of the operation it is the derivative of. Operations outside of all scopes
    cost nothing more. A scope holds for the current thread or asyncio task.

    Parameters
    ----------
    name : str
        The name of the box; ``"encoder/layer1"`` is ``"layer1"`` inside ``"encoder"``.

    Returns
    -------
    Scope
        To be used in ``with cg.scope("layer1"):``.

    Raises
    ------
    TypeError
        If the name is no string.
    ValueError
        If the name, or a part of it between slashes, is empty.

    Examples
    --------
    >>> import compgraph as cg
    >>> x = cg.variable(3.0)
    >>> with cg.scope("layer1"):
    ...     with cg.scope("inner"):
    ...         y = x * 2
    >>> y.scope, x.scope
    (('layer1', 'inner'), ())
    """
    if not isinstance(name, str):
        raise TypeError(f"a scope's name is a string, not a {type(name).__name__}")
    path = tuple(name.split("/"))
    if not all(path):
        raise ValueError(f"the scope {name!r} has an empty name, or one between slashes")
    return Scope(path)
