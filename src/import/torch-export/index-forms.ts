/**
 * What is known of masks and positions without looking at their elements: that an element is a sum of its indices times
 * whole numbers, or whether such sums are at least 0. That holds for any sizes, so a causal mask of 100,000 tokens, or of
 * a symbolic number of them, is recognized from the ops that make it.
 */
import { at } from "../../support/invariant.ts";
import { type Argument, type GraphNode, isList, isValue, type Size, type TensorMeta } from "./graph.ts";
import type { SeenKeys } from "../../ir/ops/kinds/attention/attention.ts";
import { axisIn } from "./operands.ts";

/** offset + sum of steps[i] index[i]. Axes of extent 1 have the step 0. */
interface Sum {
  readonly offset: number;
  readonly steps: readonly number[];
}

/** A sum, or whether each of several is at least 0. */
export type IndexForm =
  { readonly kind: "sum"; readonly sums: readonly [Sum] } | { readonly kind: "test"; readonly sums: readonly Sum[] };

interface Call {
  readonly node: GraphNode;
  /** Of the result. */
  readonly sizes: readonly Size[];
  readonly form: (name: string) => IndexForm | null;
  readonly formOf: (value: string) => IndexForm | null;
  readonly sizesOf: (name: string) => readonly Size[];
  readonly whole: (name: string, fallback?: number) => number | null;
}

type FormRow = (call: Call) => IndexForm | null;

const sumForm = (sum: Sum): IndexForm => ({ kind: "sum", sums: [sum] });

const uniform = (offset: number, rank: number): IndexForm =>
  sumForm({ offset, steps: Array.from({ length: rank }, () => 0) });

/** The number that all elements are, or null. */
export function uniformIn({ kind, sums: [sum] }: IndexForm): number | null {
  return kind === "sum" && sum?.steps.every((step) => step === 0) === true ? sum.offset : null;
}

function mapped(form: IndexForm, change: (sum: Sum) => Sum): IndexForm {
  return form.kind === "sum" ? sumForm(change(form.sums[0])) : { kind: "test", sums: form.sums.map(change) };
}

/** Joins two sums of up to `rank` axes. */
function joined(a: IndexForm, b: IndexForm, rank: number, sign: 1 | -1): Sum | null {
  if (a.kind !== "sum" || b.kind !== "sum") return null;
  const [[x], [y]] = [a.sums, b.sums];
  const step = ({ steps }: Sum, axis: number): number => steps[axis - rank + steps.length] ?? 0;
  const steps = Array.from({ length: rank }, (_, axis) => step(x, axis) + sign * step(y, axis));
  return { offset: x.offset + sign * y.offset, steps };
}

/** `self` and `other`, which may be a number. */
function operands(call: Call): readonly [IndexForm, IndexForm] | null {
  const number = call.whole("other");
  const [a, b] = [call.form("self"), number === null ? call.form("other") : uniform(number, 0)];
  return a === null || b === null ? null : [a, b];
}

function sumRow(sign: 1 | -1): FormRow {
  return (call) => {
    const pair = operands(call);
    if (pair === null || call.whole("alpha", 1) !== 1) return null;
    const sum = joined(pair[0], pair[1], call.sizes.length, sign);
    return sum === null ? null : sumForm(sum);
  };
}

/** a >= b + margin, or the other way round. */
function order(swap: boolean, margin: 0 | 1): FormRow {
  return (call) => {
    const pair = operands(call);
    const [a, b] = pair === null ? [null, null] : swap ? [pair[1], pair[0]] : pair;
    const difference = a === null || b === null ? null : joined(a, b, call.sizes.length, -1);
    return difference === null ? null : decided({ ...difference, offset: difference.offset - margin }, call.sizes);
  };
}

/** Whether a sum is at least 0: a constant where no index, or every index, passes. */
function decided(test: Sum, sizes: readonly Size[]): IndexForm {
  let [least, most] = [test.offset, test.offset];
  test.steps.forEach((step, axis) => {
    const size = at(sizes, axis);
    const reach = step === 0 ? 0 : step * (typeof size === "number" ? size - 1 : Infinity);
    least += Math.min(0, reach);
    most += Math.max(0, reach);
  });
  if (least >= 0) return uniform(1, sizes.length);
  return most < 0 ? uniform(0, sizes.length) : { kind: "test", sums: [test] };
}

/** Equality is known where the difference is the same everywhere. */
function equality(equal: boolean): FormRow {
  return (call) => {
    const pair = operands(call);
    const difference = pair === null ? null : joined(pair[0], pair[1], call.sizes.length, -1);
    const known = difference === null ? null : uniformIn(sumForm(difference));
    return known === null ? null : uniform(Number((known === 0) === equal), call.sizes.length);
  };
}

/** Of conditions. With `neutral` the other one stays; the opposite decides. */
function logical(neutral: 0 | 1): FormRow {
  return (call) => {
    const pair = operands(call);
    if (pair === null) return null;
    const forms = pair.map((form) => raised(form, call.sizes.length));
    const known = forms.map(uniformIn);
    if (forms.some(({ kind }, i) => kind === "sum" && known[i] !== 0 && known[i] !== 1)) return null;
    if (known.includes(1 - neutral)) return uniform(1 - neutral, call.sizes.length);
    const [a, b] = forms.filter((_, i) => known[i] !== neutral);
    if (a === undefined) return uniform(neutral, call.sizes.length);
    if (b === undefined || isSame(a, b)) return a;
    return neutral === 1 ? { kind: "test", sums: [...a.sums, ...b.sums] } : null;
  };
}

function raised(form: IndexForm, rank: number): IndexForm {
  return mapped(form, ({ offset, steps }) => ({
    offset,
    steps: [...Array.from({ length: rank - steps.length }, () => 0), ...steps],
  }));
}

function isSame(a: IndexForm, b: IndexForm): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function filled(argument: string | number): FormRow {
  return (call) => {
    const value = typeof argument === "number" ? argument : call.whole(argument);
    return value === null ? null : uniform(value, call.sizes.length);
  };
}

const same: FormRow = (call) => call.form("self");

const arange: FormRow = (call) => {
  const [start, step] = [call.whole("start", 0), call.whole("step", 1)];
  return start === null || step === null ? null : sumForm({ offset: start, steps: [step] });
};

const unsqueeze: FormRow = (call) => {
  const [form, axis] = [call.form("self"), call.whole("dim")];
  if (form === null || axis === null) return null;
  const place = axisIn(axis, call.sizes.length);
  return mapped(form, ({ offset, steps }) => ({ offset, steps: steps.toSpliced(place, 0, 0) }));
};

const expand: FormRow = (call) => {
  const form = call.form("self");
  return form === null ? null : raised(form, call.sizes.length);
};

/** Axes of more than one element stay in order. */
const view: FormRow = (call) => {
  const form = call.form("self");
  if (form === null) return null;
  const long = (sizes: readonly Size[]): readonly number[] => [...sizes.keys()].filter((axis) => at(sizes, axis) !== 1);
  const [from, to] = [call.sizesOf("self"), call.sizes];
  const [before, after] = [long(from), long(to)];
  const text = (size: Size): string => (typeof size === "number" ? String(size) : size.expression);
  const isSame =
    before.length === after.length && before.every((axis, i) => text(at(from, axis)) === text(at(to, at(after, i))));
  const known = uniformIn(form);
  if (!isSame) return known === null ? null : uniform(known, to.length);
  return mapped(form, ({ offset, steps }) => ({
    offset,
    steps: to.map((_, axis) => (after.includes(axis) ? at(steps, at(before, after.indexOf(axis))) : 0)),
  }));
};

const transpose: FormRow = (call) => {
  const [form, a, b] = [call.form("self"), call.whole("dim0"), call.whole("dim1")];
  if (form === null || a === null || b === null) return null;
  const { length } = call.sizes;
  const [first, second] = [axisIn(a, length), axisIn(b, length)];
  return mapped(form, ({ offset, steps }) => ({
    offset,
    steps: steps.with(first, at(steps, second)).with(second, at(steps, first)),
  }));
};

const slice: FormRow = (call) => {
  const [form, axis] = [call.form("self"), call.whole("dim", 0)];
  const [start, step] = [call.whole("start", 0), call.whole("step", 1)];
  if (form === null || axis === null || start === null || step === null || start < 0) return null;
  const own = axisIn(axis, call.sizes.length);
  return mapped(form, ({ offset, steps }) => {
    const by = at(steps, own);
    return { offset: offset + start * by, steps: steps.with(own, by * step) };
  });
};

const select: FormRow = (call) => {
  const [form, axis, index] = [call.form("self"), call.whole("dim"), call.whole("index")];
  if (form === null || axis === null || index === null || index < 0) return null;
  const own = axisIn(axis, call.sizes.length + 1);
  return mapped(form, ({ offset, steps }) => ({
    offset: offset + index * at(steps, own),
    steps: steps.toSpliced(own, 1),
  }));
};

/** The step along the axis, where the element that is put in front continues the sum. */
const diff: FormRow = (call) => {
  const [form, before, axis] = [call.form("self"), call.form("prepend"), call.whole("dim", -1)];
  if (form?.kind !== "sum" || axis === null || call.whole("n", 1) !== 1 || call.node.inputs.has("append")) return null;
  const [sum] = form.sums;
  const step = at(sum.steps, axisIn(axis, sum.steps.length));
  const others = ({ steps }: Sum): readonly number[] => steps.toSpliced(axisIn(axis, steps.length), 1);
  const [first] = before?.kind === "sum" ? before.sums : [];
  const continues =
    first === undefined
      ? !call.node.inputs.has("prepend")
      : first.offset === sum.offset - step && String(others(first)) === String(others(sum));
  return continues ? uniform(step, call.sizes.length) : null;
};

const cumsum: FormRow = (call) => {
  const [form, axis] = [call.form("self"), call.whole("dim")];
  const known = form === null ? null : uniformIn(form);
  if (form === null || axis === null || known === null) return null;
  return mapped(form, ({ offset, steps }) => ({ offset, steps: steps.with(axisIn(axis, steps.length), offset) }));
};

/** Elements of a tensor that has the same one everywhere. */
const indexed: FormRow = (call) => {
  const form = call.form("self");
  const known = form === null ? null : uniformIn(form);
  return known === null ? null : uniform(known, call.sizes.length);
};

const rows: ReadonlyMap<string, FormRow> = new Map(
  Object.entries({
    "arange.default arange.start arange.start_step": arange,
    "full.default new_full.default": filled("fill_value"),
    "scalar_tensor.default": filled("s"),
    "ones.default new_ones.default ones_like.default": filled(1),
    "zeros.default new_zeros.default zeros_like.default": filled(0),
    "add.Tensor add.Scalar": sumRow(1),
    "sub.Tensor sub.Scalar": sumRow(-1),
    "ge.Tensor ge.Scalar": order(false, 0),
    "gt.Tensor gt.Scalar": order(false, 1),
    "le.Tensor le.Scalar": order(true, 0),
    "lt.Tensor lt.Scalar": order(true, 1),
    "eq.Tensor eq.Scalar": equality(true),
    "ne.Tensor ne.Scalar": equality(false),
    "__and__.Tensor bitwise_and.Tensor logical_and.default": logical(1),
    "__or__.Tensor bitwise_or.Tensor logical_or.default": logical(0),
    "unsqueeze.default": unsqueeze,
    "expand.default": expand,
    "view.default reshape.default _unsafe_view.default squeeze.default squeeze.dim squeeze.dims": view,
    "transpose.int": transpose,
    "slice.Tensor": slice,
    "select.int": select,
    "diff.default": diff,
    "cumsum.default": cumsum,
    "index.Tensor gather.default index_select.default": indexed,
    "to.dtype to.dtype_layout to.device _to_copy.default alias.default detach.default": same,
    "contiguous.default clone.default lift_fresh_copy.default": same,
  } satisfies Readonly<Record<string, FormRow>>).flatMap(([names, row]) =>
    names.split(" ").map((name): [string, FormRow] => [`torch.ops.aten.${name}`, row]),
  ),
);

/** The form of each value, or null. `nodeOf`: the node that makes it. */
export function indexForms(
  nodeOf: (value: string) => GraphNode | undefined,
  metaOf: (value: string) => TensorMeta | undefined,
): (value: string) => IndexForm | null {
  const known = new Map<string, IndexForm | null>();
  const formOf = (value: string): IndexForm | null => {
    const found = known.get(value);
    if (found !== undefined) return found;
    // A value depends on earlier ones alone; a file that says otherwise finds no form.
    known.set(value, null);
    const made = make(value);
    known.set(value, made);
    return made;
  };
  const make = (value: string): IndexForm | null => {
    const [node, meta] = [nodeOf(value), metaOf(value)];
    if (node === undefined || meta === undefined || node.outputs.length !== 1) return null;
    const dtype = meta.dtype.braid;
    if (dtype !== "int" && dtype !== "int64" && dtype !== "bool") return null;
    const given = (name: string): Argument => node.inputs.get(name) ?? null;
    const nameIn = (name: string): string | null => {
      const argument = given(name);
      return isValue(argument) ? argument.name : null;
    };
    const form = rows.get(node.target)?.({
      node,
      sizes: meta.sizes,
      formOf,
      form: (name) => {
        const own = nameIn(name);
        return own === null ? null : formOf(own);
      },
      sizesOf: (name) => metaOf(nameIn(name) ?? "")?.sizes ?? [],
      whole: (name, fallback) => {
        const argument = given(name);
        if (argument === null) return fallback ?? null;
        if (typeof argument === "boolean") return Number(argument);
        return typeof argument === "number" && Number.isInteger(argument) && !isList(argument) ? argument : null;
      },
    });
    if (form === undefined || form === null) return null;
    if (form.sums.some(({ steps }) => steps.length !== meta.sizes.length)) return null;
    const isBool = dtype === "bool";
    const number = uniformIn(form);
    // A test is 0 or 1; as a number it would be another value, and a sum as bool another one still.
    if (isBool ? form.kind === "sum" && number === null : form.kind === "test") return null;
    if (isBool && number !== null) return uniform(number === 0 ? 0 : 1, meta.sizes.length);
    return mapped(form, ({ offset, steps }) => ({
      offset,
      steps: steps.map((step, axis) => (at(meta.sizes, axis) === 1 ? 0 : step)),
    }));
  };
  return formOf;
}

/**
 * What a mask [.., Lq, Lk] lets queries see: query i sees key j where i - j + offset >= 0, and of a window, where j - i +
 * window - 1 - offset >= 0, too. Null: something else.
 */
export function maskIn(form: IndexForm, sizes: readonly Size[]): SeenKeys | null {
  if (form.kind === "sum") return (uniformIn(form) ?? 0) === 0 ? null : { causal: null, window: null };
  const offsetsOf = (sign: 1 | -1): readonly number[] =>
    form.sums.flatMap(({ offset, steps }) => {
      const [rows, keys] = steps.slice(-2);
      const isOther = rows !== sign || keys !== -sign || steps.slice(0, -2).some((step) => step !== 0);
      return isOther ? [] : [offset];
    });
  const [before, after] = [offsetsOf(1), offsetsOf(-1)];
  if (before.length === 0 || before.length + after.length < form.sums.length) return null;
  const offset = Math.min(...before);
  const window = after.length === 0 ? null : Math.min(...after) + 1 + offset;
  const [queryCount, keyCount] = sizes.slice(-2);
  const isLast = typeof queryCount === "number" && typeof keyCount === "number" && offset === keyCount - queryCount;
  if ((offset !== 0 && !isLast) || (window !== null && window < 1)) return null;
  return { causal: offset === 0 ? "topLeft" : "bottomRight", window };
}
