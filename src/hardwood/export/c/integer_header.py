"""A C header in integers, for microcontrollers: from quantized values to the prediction, no float.

Only the quantization of raw values and the conversion of sums to probabilities are in floating
point; a program that calls neither needs no floating point at all.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from hardwood.errors import ExportError
from hardwood.export.c import header_parts as parts
from hardwood.export.c.compiler import Compiler, compiled_predictions
from hardwood.export.c.header_parts import LINKS, Tables
from hardwood.export.c.interpreter import Tables as ReadTables
from hardwood.export.c.interpreter import indicator_weights, tables_of, term_weights, walked
from hardwood.export.c.names import Names
from hardwood.export.c.quantize import Grid, Quantized, quantized
from hardwood.export.plan import Plan
from hardwood.export.probes import Probes
from hardwood.export.verify import Check, Predictions, measured
from hardwood.model.engine import linked


def integer_header(
    plan: Plan, prefix: str, precision: Literal["int16", "int8"], data: Any, min_agreement: float
) -> tuple[str, Check]:
    """Write a header and check it.

    The compiled header must equal its own tables, interpreted in Python, on every probe, and agree
    with the library on the share ``min_agreement`` of typical rows.
    """
    probes = Probes.of(plan, data)
    model = quantized(plan, 16 if precision == "int16" else 8, probes)
    text, size = _header(model, prefix)
    compiler = Compiler.find()
    interpreted = _interpreted(model, probes, tables_of(prefix, text))
    if compiler is None:
        method = "its tables interpreted in Python, because there is no C compiler"
    else:
        found = compiled_predictions(compiler, probes, prefix, text, real="float")
        method = f"compiled with {compiler.version}, run and equal to its tables interpreted"
        _check_equal(found, interpreted, precision)
    check = measured(probes, interpreted, target=f"c, {precision}", method=method, n_bytes=size)
    if check.agreement is not None and check.agreement < min_agreement:
        raise ExportError(
            f"the export to C was not written: in {precision} only {check.agreement:.2%} of "
            f"{probes.n_typical} {'given' if probes.are_given else 'simulated'} rows get the "
            f"model's prediction, less than min_agreement={min_agreement}. "
            + ("" if probes.are_given else "Pass data, to choose the ranges of the columns; or ")
            + ("use precision='int16'." if precision == "int8" else "use precision='float32'.")
        )
    return text, check


def _check_equal(found: Predictions, interpreted: Predictions, precision: str) -> None:
    same = np.array_equal(found.leaves, interpreted.leaves)  # type: ignore[arg-type]
    if interpreted.positions is not None:
        same &= np.array_equal(found.positions, interpreted.positions)  # type: ignore[arg-type]
    close = np.allclose(found.outputs, interpreted.outputs, rtol=1e-5, atol=1e-5, equal_nan=True)
    if not (same and close):
        raise ExportError(
            f"the export to C was not written: compiled, it differs from its {precision} tables. "
            "Please report this, with the model."
        )


def _header(model: Quantized, prefix: str) -> tuple[str, int]:
    plan, grid = model.plan, model.grid
    names, tables, others = Names(plan, prefix), Tables(prefix), Tables(prefix)
    kind = f"int{grid.bits}_t"
    code = [
        parts.encoded_type(plan, kind),
        parts.encode_code(plan, tables, [(kind, "missing", grid.missing)], _NUMBERS, "int"),
        parts.walk_code(plan, tables, _score_code(model, tables, kind)),
        parts.link_code(plan, "float"),
        _sums_code(model, tables, kind),
        _outputs_code(model, others),
        parts.prediction_code(plan, "float", _predict_code(model, tables)),
        _quantize_code(model, others),
    ]
    size = tables.n_bytes
    tables.text += "\n/* Used only by the functions with floating point. */\n" + others.text
    head = _HEAD.replace("KIND", kind).replace("LEAST", str(-grid.one))
    return parts.header(names, tables, names.written(_usage(plan, grid)), head, code), size


def _usage(plan: Plan, grid: Grid) -> str:
    lines = [
        f"Integers of {grid.bits} bits from a row's values to its prediction; sums have 32.",
        "",
        "Usage:",
        "",
        "  NAME_value row[CAPS_N_FEATURES];",
        "  row[i] = NAME_quantize(i, x);    a number; CAPS_MISSING where it is missing",
        *parts.level_usage(plan),
        *parts.usage_of_predictions(plan, "float"),
        "",
        "NAME_quantize, NAME_predict_proba and regression predictions use floating point;",
        "NAME_sums, NAME_leaves and predictions of classes and labels do not.",
        "The integer of a value is floor((x - zero) / step + 0.5), at most "
        f"{grid.largest} in size; NAME_zero and NAME_step have",
        "the numbers for a program that computes it without floating point.",
    ]
    return "\n".join(lines)


_HEAD = r"""/* The type of the values in a row. */
typedef KIND NAME_value;
#define CAPS_MISSING (LEAST)

"""


_NUMBERS = r"""  for (int j = 0; j < N_VALUES; ++j) {
    out->value[j] = row[NAME_numeric[j]];
    if (out->value[j] == CAPS_MISSING) {
      out->value[j] = NAME_missing[j];
FLAG    }
  }
"""


def _score_code(model: Quantized, tables: Tables, kind: str) -> str:
    plan, splits = model.plan, model.splits
    if plan.model.n_splits == 0:
        return ""
    tables.add("int32_t", "bias", splits.bias)
    terms = parts.term_loop(tables, kind, splits.weights, "sum += (int32_t)w * row->value[j];")
    indicators = ""
    if plan.encoding.n_indicators:
        tables.add(kind, "indicators", splits.indicators)
        indicators = _indicator_loop("indicators", "node", plan, model.grid)
    unused = "" if terms or indicators else "  (void)row;\n"
    return (
        "\nstatic inline int32_t NAME_score(int32_t node, const NAME_encoded *row) {\n"
        "  int32_t sum = NAME_bias[node];\n" + terms + indicators + unused + "  return sum;\n}\n"
    )


def _indicator_loop(name: str, place: str, plan: Plan, grid: Grid) -> str:
    q = plan.encoding.n_indicators
    return (
        "  for (int i = 0; i < row->n_on; ++i)\n"
        f"    sum += (int32_t)NAME_{name}[(size_t){place} * {q} + row->on[i]] * {grid.one};\n"
    )


# From leaves to sums


def _sums_code(model: Quantized, tables: Tables, kind: str) -> str:
    if model.leaf_sums is not None:
        return _linear_sums(model, tables, kind)
    assert model.leaf_values is not None
    tables.add("integers", "leaf_values", model.leaf_values)
    return _CONSTANT_SUMS


_CONSTANT_SUMS = r"""
/* The sums of the trees' outputs, as integers. */
static inline void NAME_sums(const NAME_value *row, int32_t *sums) {
  NAME_encoded encoded;
  NAME_encode(row, &encoded);
  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) sums[o] = 0;
  for (int t = 0; t < CAPS_N_TREES; ++t) {
    const size_t first = (size_t)NAME_walk(NAME_root[t], &encoded) * CAPS_N_OUTPUTS;
    for (int o = 0; o < CAPS_N_OUTPUTS; ++o) sums[o] += NAME_leaf_values[first + (size_t)o];
  }
}
"""


def _linear_sums(model: Quantized, tables: Tables, kind: str) -> str:
    plan, sums = model.plan, model.leaf_sums
    assert sums is not None
    n, terms = plan.encoding.n_values, ""
    tables.add("int32_t", "leaf_bias", sums.bias)
    if n:
        tables.add(kind, "leaf_weights", sums.weights)
        terms += _LEAF_TERMS.replace("N_VALUES", str(n))
    if plan.encoding.n_indicators:
        tables.add(kind, "leaf_indicators", sums.indicators)
        terms += _indicator_loop("leaf_indicators", "place", plan, model.grid)
    return _LINEAR_SUMS.replace("TERMS", terms)


_LEAF_TERMS = r"""  for (int j = 0; j < N_VALUES; ++j)
    sum += (int32_t)NAME_leaf_weights[(size_t)place * N_VALUES + (size_t)j] * row->value[j];
"""

_LINEAR_SUMS = r"""
static inline int32_t NAME_leaf_sum(int32_t place, const NAME_encoded *row) {
  int32_t sum = NAME_leaf_bias[place];
TERMS  return sum;
}

/* The scores of the outputs as integers; returns the leaf, which has its own scale. */
static inline int32_t NAME_sums(const NAME_value *row, int32_t *sums) {
  NAME_encoded encoded;
  int32_t leaf;
  NAME_encode(row, &encoded);
  leaf = NAME_walk(NAME_root[0], &encoded);
  for (int o = 0; o < CAPS_N_OUTPUTS; ++o)
    sums[o] = NAME_leaf_sum(leaf * CAPS_N_OUTPUTS + o, &encoded);
  return leaf;
}
"""


# From sums to predictions


def _outputs_code(model: Quantized, others: Tables) -> str:
    plan = model.plan
    if model.leaf_sums is not None:
        link = plan.trees[0].link
        others.add("float", "leaf_scale", model.leaf_sums.scale[:: plan.model.n_outputs])
        convert = (
            "  const float scale = NAME_leaf_scale[NAME_sums(row, sums)];\n"
            "  for (int o = 0; o < CAPS_N_OUTPUTS; ++o) out[o] = scale * (float)sums[o];\n"
        )
    else:
        link = plan.link
        others.add("float", "output_scale", model.scale)
        others.add("float", "output_offset", model.offset)
        convert = (
            "  NAME_sums(row, sums);\n  for (int o = 0; o < CAPS_N_OUTPUTS; ++o)\n"
            "    out[o] = NAME_output_offset[o] + NAME_output_scale[o] * (float)sums[o];\n"
        )
    if link != "identity":
        convert += f"  NAME_apply_link({LINKS.index(link)}, out);\n"
    return (
        "\n/* Probabilities of the classes or labels, or the predicted numbers. */\n"
        "static inline void NAME_outputs(const NAME_value *row, float *out) {\n"
        "  int32_t sums[CAPS_N_OUTPUTS];\n" + convert + "}\n"
    )


def _predict_code(model: Quantized, tables: Tables) -> str:
    plan = model.plan
    if plan.model.classes is None:
        test = f"2 * (int64_t)sums[o] >= {_half(model)}"
        return parts.labels_code("int32_t", "sums", "sums", test)
    if model.leaf_sums is None and len(plan.trees) == 1 and plan.link == "identity":
        # Rounded probabilities may tie, so the class of each leaf has its own table.
        tables.add("integers", "leaf_class", plan.model.class_positions(plan.trees[0].values))
        return _LEAF_CLASS
    if plan.decision_weights is not None:
        tables.add("int32_t", "decision_offset", _decision_offsets(model, plan.decision_weights))
        return _WEIGHTED_CLASS
    return parts.best_code("int32_t", "sums", "sums")


def _half(model: Quantized) -> int:
    """Twice the smallest sum for which a label is predicted."""
    if model.leaf_sums is not None or model.plan.link == "logistic":
        return 0
    return round(1.0 / float(model.scale[0]))


def _decision_offsets(model: Quantized, weights: np.ndarray) -> np.ndarray:
    """Return what the decision weights add to the sums of each linear leaf, (L, k).

    To multiply a probability by a weight is to add its logarithm to the score.
    """
    assert model.leaf_sums is not None
    scale = model.leaf_sums.scale.reshape(-1, len(weights))
    largest = np.iinfo(np.int32).max  # beyond all sums
    return np.clip(np.rint(np.log(weights) / scale), -largest, largest)


_WEIGHTED_CLASS = r"""
/* The position of the predicted class; the first one if several tie. */
static inline int NAME_predict(const NAME_value *row) {
  int32_t sums[CAPS_N_OUTPUTS];
  const int32_t *added = NAME_decision_offset + (size_t)NAME_sums(row, sums) * CAPS_N_OUTPUTS;
  int best = 0;
  for (int o = 1; o < CAPS_N_OUTPUTS; ++o)
    if ((int64_t)sums[o] + added[o] > (int64_t)sums[best] + added[best]) best = o;
  return best;
}
"""

_LEAF_CLASS = r"""
/* The position of the predicted class; the first one if several tie. */
static inline int NAME_predict(const NAME_value *row) {
  NAME_encoded encoded;
  NAME_encode(row, &encoded);
  return NAME_leaf_class[NAME_walk(NAME_root[0], &encoded)];
}
"""

# From raw values to integers


def _quantize_code(model: Quantized, others: Tables) -> str:
    plan, grid = model.plan, model.grid
    p = plan.schema.n_features
    zero, step = np.zeros(p), np.zeros(p)
    zero[plan.encoding.numeric], step[plan.encoding.numeric] = grid.zero, grid.step
    others.add("double", "zero", zero)
    others.add("double", "step", step)
    return _QUANTIZE.replace("LARGEST", str(grid.largest))


_QUANTIZE = r"""
/* The integer of a feature's value: a number in the table's units, or the code of a category. */
static inline NAME_value NAME_quantize(int feature, double x) {
  if (x != x) return CAPS_MISSING;
  if (NAME_step[feature] > 0) x = floor((x - NAME_zero[feature]) / NAME_step[feature] + 0.5);
  return (NAME_value)(x > LARGEST ? LARGEST : x < -LARGEST ? -LARGEST : x);
}

static inline void NAME_quantize_row(const double *raw, NAME_value *row) {
  for (int i = 0; i < CAPS_N_FEATURES; ++i) row[i] = NAME_quantize(i, raw[i]);
}
"""


# The tables, interpreted


def _interpreted(model: Quantized, probes: Probes, tables: ReadTables) -> Predictions:
    """Interpret the tables that were written, with NumPy's integers."""
    plan, one = model.plan, model.grid.one
    n, q, k = plan.encoding.n_values, plan.encoding.n_indicators, plan.model.n_outputs
    entries = model.grid.quantized(probes.matrix[:, plan.encoding.numeric])
    on = plan.encoding.encode(probes.matrix)[1].astype(np.int64)
    weights = term_weights(tables, n, np.int64).astype(np.int64)
    indicators = indicator_weights(tables, q, np.int64).astype(np.int64)

    def score(rows: np.ndarray, node: np.ndarray) -> np.ndarray:
        total: np.ndarray = tables["bias"][node] + (entries[rows] * weights[node]).sum(axis=1)
        return total + one * (on[rows] * indicators[node]).sum(axis=1)

    leaves = walked(tables, probes.n_rows, score)
    if model.leaf_sums is None:
        sums = tables["leaf_values"].astype(np.int64).reshape(-1, k)[leaves].sum(axis=1)
        outputs = tables["output_offset"] + tables["output_scale"].astype(np.float64) * sums
        outputs = linked(outputs, plan.link, 1)
    else:
        place = leaves[:, 0, None] * k + np.arange(k)  # (r, k)
        sums = tables["leaf_bias"].astype(np.int64)[place]
        for name, row in (("leaf_weights", entries), ("leaf_indicators", one * on)):
            if name in tables:
                table = tables[name].astype(np.int64).reshape(-1, row.shape[1])
                sums = sums + np.einsum("rc,roc->ro", row, table[place])
        outputs = sums * tables["leaf_scale"].astype(np.float64)[leaves]
        outputs = linked(outputs, plan.trees[0].link, 1)
    if np.abs(sums).max(initial=0) >= 2**31:
        raise ExportError("the export to C was not written: sums of 32 bits would overflow")
    return Predictions(
        outputs, _positions(model, sums, leaves, tables), leaves - tables["first_leaf"]
    )


def _positions(
    model: Quantized, sums: np.ndarray, leaves: np.ndarray, tables: ReadTables
) -> np.ndarray | None:
    if model.plan.model.task == "regression":
        return None
    if model.plan.model.classes is None:
        return (2 * sums >= _half(model)).astype(np.int64)
    if "leaf_class" in tables:
        return tables["leaf_class"].astype(np.int64)[leaves[:, 0]]
    if "decision_offset" in tables:
        added = tables["decision_offset"].astype(np.int64).reshape(-1, sums.shape[1])
        sums = sums + added[leaves[:, 0]]
    return sums.argmax(axis=1)
