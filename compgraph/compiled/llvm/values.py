"""What code computes with: types and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Type:
    """What a value is: `lanes` numbers of one kind.

    Attributes
    ----------
    of : str
        As LLVM calls the kind: ``"double"``, ``"float"``, ``"i64"``, ``"i1"``, ``"ptr"``.
    lanes : int
        How many; 1 for a number alone.
    """

    of: str
    lanes: int = 1

    def __str__(self) -> str:
        return self.of if self.lanes == 1 else f"<{self.lanes} x {self.of}>"

    @property
    def mangled(self) -> str:
        """As the type stands in the names of LLVM's intrinsic functions: ``v8f64``."""
        of = {"double": "f64", "float": "f32", "ptr": "p0"}.get(self.of, self.of)
        return of if self.lanes == 1 else f"v{self.lanes}{of}"

    @property
    def is_float(self) -> bool:
        """Whether the numbers are floating."""
        return self.of in ("double", "float")

    def with_lanes(self, lanes: int) -> Type:
        """So many numbers of this kind."""
        return Type(self.of, lanes)


DOUBLE, FLOAT, LONG, INT, BIT, BYTE, POINTER = map(Type, ("double", "float", "i64", "i32", "i1", "i8", "ptr"))


class Value(NamedTuple):
    """What an instruction computes, or a constant: how the text names it, and its type."""

    text: str
    type: Type

    def __str__(self) -> str:
        return f"{self.type} {self.text}"
