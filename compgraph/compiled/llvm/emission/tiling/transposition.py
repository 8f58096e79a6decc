"""Matrices are transposed, in squares that fit into registers."""

from __future__ import annotations

from ...code import INT, LONG, POINTER, Code, Module, Type, Value
from .tiles import behind, lanes_for


def transposition(module: Module, kind: Type, shape: tuple[int, int], source: int, target: int, width: int) -> str:
    """The name of a function that writes the transpose of a matrix; it is given the addresses of the target and of the source.

    Parameters
    ----------
    module : Module
        Where it stands.
    kind : Type
        Of one number.
    shape : tuple of int
        The rows and columns of the source, whose rows lie without gaps, as those of the target do.
    source, target : int
        From one row to the next, in elements, of either.
    width : int
        The bytes of a vector.
    """
    name = f".transposed_{kind.mangled}_{shape[0]}_{shape[1]}_{source}_{target}"

    def write() -> None:
        code = module.function(name, None, [POINTER, POINTER], "noinline")
        to, of = code.operands
        (m, n), size = shape, 8 if kind.of == "double" else 4
        if (m == 1 and target == 1) or (n == 1 and source == 1):  # the same numbers in the same order
            _copied(code, kind, to, of, m * n, lanes_for(m * n, size, width))
        else:
            _in_squares(code, kind, to, of, shape, (source, target), lanes_for(min(m, n), size, width))
        code.give()

    return module.made(name, write)


def _copied(code: Code, kind: Type, to: Value, of: Value, count: int, lanes: int) -> None:
    size = 8 if kind.of == "double" else 4
    with code.loop(0, -(-count // lanes)) as loop:
        start = _start(code, loop.index, count, lanes)
        value = code.load(code.at(of, start, kind), kind.with_lanes(lanes), size)
        code.store(value, code.at(to, start, kind), size)


def _in_squares(
    code: Code, kind: Type, to: Value, of: Value, shape: tuple[int, int], strides: tuple[int, int], lanes: int
) -> None:
    (m, n), (source, target), size = shape, strides, 8 if kind.of == "double" else 4
    with code.loop(0, -(-n // lanes)) as across, code.loop(0, -(-m // lanes)) as down:
        column, row = _start(code, across.index, n, lanes), _start(code, down.index, m, lanes)
        at = behind(code, of, kind, (row, source), (column, 1))
        lines = [code.load(code.at(at, k * source, kind), kind.with_lanes(lanes), size) for k in range(lanes)]
        at = behind(code, to, kind, (column, target), (row, 1))
        for k, line in enumerate(_square(code, lines)):
            code.store(line, code.at(at, k * target, kind), size)


def _start(code: Code, index: Value, length: int, lanes: int) -> Value:
    """Where a vector begins; the last overlaps that before it if they do not divide the length."""
    start = code.binary("mul", index, code.number(lanes, LONG))
    return code.intrinsic("smin", start, code.number(length - lanes, LONG)) if length % lanes else start


def _square(code: Code, lines: list[Value]) -> list[Value]:
    """A square of numbers transposed: halves change places, then halves of halves, ... (J. Eklundh, 1972)."""
    lanes = len(lines)
    half = lanes // 2
    while half:
        upper = [k if not k & half else k - half + lanes for k in range(lanes)]
        lower = [k + half if not k & half else k + lanes for k in range(lanes)]
        for k in range(lanes):
            if not k & half:
                a, b = lines[k], lines[k + half]
                lines[k], lines[k + half] = (_mixed(code, a, b, places) for places in (upper, lower))
        half //= 2
    return lines


def _mixed(code: Code, a: Value, b: Value, places: list[int]) -> Value:
    mask = ", ".join(f"i32 {k}" for k in places)
    return code.write(f"shufflevector {a}, {b}, <{len(places)} x i32> <{mask}>", a.type)


def not_finite(module: Module, kind: Type, count: int, width: int) -> str:
    """The name of a function that says, as an integer, whether some of `count` numbers at an address are inf or nan."""
    name = f".not_finite_{kind.mangled}_{count}"

    def write() -> None:
        code = module.function(name, INT, [POINTER], "noinline")
        size = 8 if kind.of == "double" else 4
        lanes = lanes_for(count, size, width)
        bits = Type(f"i{8 * size}", lanes)
        exponent = code.number(0x7FF0 << 48 if size == 8 else 0x7F80 << 16, bits)
        with code.loop(0, -(-count // lanes), 1, [code.number(0, bits)]) as loop:
            value = code.load(code.at(code.operands[0], _start(code, loop.index, count, lanes), kind), bits, size)
            loop.then = [code.intrinsic("umax", loop.now[0], code.binary("and", value, exponent))]
        found = code.any(code.compare("eq", loop.then[0], exponent))
        code.give(code.cast("zext", found, INT))

    return module.made(name, write)
