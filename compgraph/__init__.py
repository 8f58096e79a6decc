
from . import protocol
from .nodes import variable, constant, no_graph, reset, Node, VariableNode, ConstantNode, OperationalNode
