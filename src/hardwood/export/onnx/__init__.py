"""ONNX: a graph of standard operators."""
