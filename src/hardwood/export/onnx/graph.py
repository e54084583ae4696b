"""An ONNX graph under construction."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

OPSET = 13  # ai.onnx, of 2020; ONNX Runtime since 1.6
ML_OPSET = 2  # ai.onnx.ml
IR_VERSION = 7


class Kind(IntEnum):
    """ONNX's codes of number types, available before the package is imported."""

    FLOAT, INT64, STRING, BOOL, DOUBLE = 1, 7, 8, 9, 11


class Graph:
    """Nodes, constants, inputs and outputs; generated names begin with ``prefix``."""

    def __init__(self, prefix: str = "hw") -> None:
        self._prefix = prefix
        self._count = 0
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, kind: Kind, width: int, doc: str) -> str:
        """Declare an input (N, width)."""
        from onnx import helper

        shape: list[str | int | None] = ["N", width]
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape, doc_string=doc))
        return name

    def constant(self, value: Any) -> str:
        """Add a constant, which may be text."""
        from onnx import helper, numpy_helper

        name = self._name()
        array = np.asarray(value)
        if array.dtype.kind in "OU":
            texts: Any = [str(text).encode() for text in array.ravel().tolist()]
            tensor = helper.make_tensor(name, Kind.STRING, array.shape, texts)
        else:
            tensor = numpy_helper.from_array(np.ascontiguousarray(array), name)
        self._constants.append(tensor)
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""
        from onnx import helper

        name = self._name()
        node = helper.make_node(operator, list(inputs), [name], name, domain=domain, **attributes)
        self._nodes.append(node)
        return name

    def cast(self, source: str, kind: Kind) -> str:
        """Add a node that converts numbers to another type."""
        return self.node("Cast", source, to=int(kind))

    def output(self, name: str, source: str, kind: Kind, shape: Sequence[Any]) -> None:
        """Declare an output."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [source], [name], f"to {name}"))
        self._outputs.append(helper.make_tensor_value_info(name, kind, list(shape)))

    def model(self, name: str, doc: str, producer: str, metadata: dict[str, str]) -> bytes:
        """Build the model, checked against the standard."""
        from onnx import checker, helper

        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, self._constants, doc_string=doc
        )
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid("ai.onnx.ml", ML_OPSET),
            ],
            ir_version=IR_VERSION,
            producer_name="hardwood",
            producer_version=producer,
        )
        helper.set_model_props(model, metadata)
        checker.check_model(model, full_check=True)
        return model.SerializeToString()

    def _name(self) -> str:
        self._count += 1
        return f"{self._prefix}_{self._count}"
