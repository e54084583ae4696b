"""The engine of hardwood: encoding, routing and learning, in C++."""

from collections.abc import Sequence
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Encoder:
    """Turns raw rows into the columns that splits weigh."""

    def __init__(self, kinds: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], first_column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_levels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], flag_column: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], center: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_columns: int) -> None: ...

    @property
    def n_columns(self) -> int: ...

    @overload
    def encode(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float32]:
        """Encoded rows (n, n_columns), in the schema's order."""

    @overload
    def encode(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float32]: ...

class LeafModels:
    """
    The linear models of a tree's leaves, packed; in the schema's raw units.
    """

    def __init__(self, encoder: object, values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], link: str) -> None: ...

class Router:
    """
    A tree packed for routing. Weights and bias are in the schema's raw units.
    """

    def __init__(self, encoder: object, weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], children: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_leaves: int) -> None: ...

    @overload
    def apply(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.int32]:
        """Leaf of every row."""

    @overload
    def apply(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.int32]: ...

    @overload
    def apply_csr(self, data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.int32]: ...

    @overload
    def apply_csr(self, data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.int32]: ...

    @overload
    def apply_one(self, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
        """Leaf of one row."""

    @overload
    def apply_one(self, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int: ...

    @overload
    def answer(self, leaves: LeafModels, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]:
        """What linear leaves answer to every row, (n, k)."""

    @overload
    def answer(self, leaves: LeafModels, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]: ...

    @overload
    def answer_csr(self, leaves: LeafModels, data: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]: ...

    @overload
    def answer_csr(self, leaves: LeafModels, data: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int = 1) -> NDArray[numpy.float64]: ...

    @overload
    def answer_one(self, leaves: LeafModels, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """The same to one row, (k,)."""

    @overload
    def answer_one(self, leaves: LeafModels, x: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]: ...

@overload
def fit_dgt(encoder: Encoder, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], train_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], valid_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, height: int, n_outputs: int, loss: str, loss_parameter: float, custom: object | None, start: object | None, restarts: int, seed: int, n_threads: int, callback: object | None, options: dict) -> dict: ...

@overload
def fit_dgt(encoder: Encoder, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], train_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], valid_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, height: int, n_outputs: int, loss: str, loss_parameter: float, custom: object | None, start: object | None, restarts: int, seed: int, n_threads: int, callback: object | None, options: dict) -> dict: ...

@overload
def fit_dgt(encoder: Encoder, X: tuple[Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], train_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], valid_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, height: int, n_outputs: int, loss: str, loss_parameter: float, custom: object | None, start: object | None, restarts: int, seed: int, n_threads: int, callback: object | None, options: dict) -> dict: ...

@overload
def fit_dgt(encoder: Encoder, X: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], train_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], valid_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], *, height: int, n_outputs: int, loss: str, loss_parameter: float, custom: object | None, start: object | None, restarts: int, seed: int, n_threads: int, callback: object | None, options: dict) -> dict: ...

def instruction_set() -> str:
    """The instruction set in use."""

def instruction_sets() -> list[str]:
    """The sets this machine can run, the best last."""

def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]: ...

def gemm(A: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], B: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float32]: ...

def gemm_into(A: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], B: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], C: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], repeats: int = 1) -> None: ...

def loss(name: str, prediction: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], parameter: float = 0.0) -> tuple[float, NDArray[numpy.float32]]:
    """
    Weighted mean of a loss over the samples, and its gradient by the prediction.
    """

def optimise(start: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], gradients: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], *, optimizer: str, learning_rate: float, momentum: float = 0.0, decay: float = 0.99, epsilon: float = 1e-08, l1: float = 0.0, l2: float = 0.0, clip_norm: float = 1e+30) -> NDArray[numpy.float32]: ...

def schedule(name: str, n_steps: int, cycles: int = 1) -> list[float]: ...

class DgtProbe:
    """One DGT tree over a fixed batch of encoded samples."""

    def __init__(self, X: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], target: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], *, height: int, n_outputs: int, loss: str, parameter: float = 0.0) -> None: ...

    def set(self, W: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    def gradient(self) -> tuple[float, NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]:
        """(mean loss, dW, db, dtheta)"""

    def parameters(self) -> tuple[NDArray[numpy.float32], NDArray[numpy.float32], NDArray[numpy.float32]]:
        """(W, b, theta)"""

    def steps(self, n: int, learning_rate: float) -> None:
        """Steps of RMSprop on the whole batch."""
