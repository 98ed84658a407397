/**
 * What is known of masks and positions without looking at their elements: that an element is a sum of its indices times
 * whole numbers, or whether such a sum is at least 0. That holds for any sizes, so a causal mask of 100,000 tokens, or of
 * a symbolic number of them, is recognized from the ops that make it.
 */
import { at } from "../../support/invariant.ts";
import { type Argument, type GraphNode, isList, isValue, type Size, type TensorMeta } from "./graph.ts";
import { axisIn, type KnownMask } from "./operands.ts";

/** offset + sum of steps[i] index[i]; of a test, whether that is at least 0. Axes of extent 1 have the step 0. */
export interface IndexForm {
  readonly kind: "sum" | "test";
  readonly offset: number;
  readonly steps: readonly number[];
}

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

const uniform = (offset: number, rank: number): IndexForm => ({
  kind: "sum",
  offset,
  steps: Array.from({ length: rank }, () => 0),
});

export function isUniform({ kind, steps }: IndexForm): boolean {
  return kind === "sum" && steps.every((step) => step === 0);
}

/** Joins two forms of up to `rank` axes. */
function joined(a: IndexForm, b: IndexForm, rank: number, sign: 1 | -1): IndexForm | null {
  if (a.kind !== "sum" || b.kind !== "sum") return null;
  const step = ({ steps }: IndexForm, axis: number): number => steps[axis - rank + steps.length] ?? 0;
  const steps = Array.from({ length: rank }, (_, axis) => step(a, axis) + sign * step(b, axis));
  return { kind: "sum", offset: a.offset + sign * b.offset, steps };
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
    return joined(pair[0], pair[1], call.sizes.length, sign);
  };
}

/** a >= b + margin, or the other way round. */
function order(swap: boolean, margin: 0 | 1): FormRow {
  return (call) => {
    const pair = operands(call);
    const [a, b] = pair === null ? [null, null] : swap ? [pair[1], pair[0]] : pair;
    const difference = a === null || b === null ? null : joined(a, b, call.sizes.length, -1);
    return difference === null
      ? null
      : decided({ ...difference, kind: "test", offset: difference.offset - margin }, call.sizes);
  };
}

/** A test that no index, or every index, passes is a constant. */
function decided(test: IndexForm, sizes: readonly Size[]): IndexForm {
  let [least, most] = [test.offset, test.offset];
  test.steps.forEach((step, axis) => {
    const size = at(sizes, axis);
    const reach = step === 0 ? 0 : step * (typeof size === "number" ? size - 1 : Infinity);
    least += Math.min(0, reach);
    most += Math.max(0, reach);
  });
  if (least >= 0) return uniform(1, sizes.length);
  return most < 0 ? uniform(0, sizes.length) : test;
}

/** Equality is known where the difference is the same everywhere. */
function equality(equal: boolean): FormRow {
  return (call) => {
    const pair = operands(call);
    const difference = pair === null ? null : joined(pair[0], pair[1], call.sizes.length, -1);
    if (difference === null || !isUniform(difference)) return null;
    return uniform(Number((difference.offset === 0) === equal), call.sizes.length);
  };
}

/** With `neutral` the other one stays; the opposite decides. */
function logical(neutral: 0 | 1): FormRow {
  return (call) => {
    const pair = operands(call);
    if (pair === null) return null;
    const [a, b] = pair.map((form) => raised(form, call.sizes.length));
    if (a === undefined || b === undefined) return null;
    const known = [a, b].find(isUniform);
    if (known === undefined) return sameForm(a, b) ? a : null;
    const other = known === a ? b : a;
    return (known.offset === 0 ? 0 : 1) === neutral ? other : uniform(1 - neutral, call.sizes.length);
  };
}

function raised(form: IndexForm, rank: number): IndexForm {
  return { ...form, steps: [...Array.from({ length: rank - form.steps.length }, () => 0), ...form.steps] };
}

function sameForm(a: IndexForm, b: IndexForm): boolean {
  return a.kind === b.kind && a.offset === b.offset && a.steps.every((step, axis) => step === b.steps[axis]);
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
  return start === null || step === null ? null : { kind: "sum", offset: start, steps: [step] };
};

const unsqueeze: FormRow = (call) => {
  const [form, axis] = [call.form("self"), call.whole("dim")];
  if (form === null || axis === null) return null;
  return { ...form, steps: form.steps.toSpliced(axisIn(axis, call.sizes.length), 0, 0) };
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
  if (!isSame) return isUniform(form) ? uniform(form.offset, to.length) : null;
  return {
    ...form,
    steps: to.map((_, axis) => (after.includes(axis) ? at(form.steps, at(before, after.indexOf(axis))) : 0)),
  };
};

const transpose: FormRow = (call) => {
  const [form, a, b] = [call.form("self"), call.whole("dim0"), call.whole("dim1")];
  if (form === null || a === null || b === null) return null;
  const { length } = form.steps;
  const [first, second] = [axisIn(a, length), axisIn(b, length)];
  return { ...form, steps: form.steps.with(first, at(form.steps, second)).with(second, at(form.steps, first)) };
};

const slice: FormRow = (call) => {
  const [form, axis] = [call.form("self"), call.whole("dim", 0)];
  const [start, step] = [call.whole("start", 0), call.whole("step", 1)];
  if (form === null || axis === null || start === null || step === null || start < 0) return null;
  const own = axisIn(axis, form.steps.length);
  const by = at(form.steps, own);
  return { ...form, offset: form.offset + start * by, steps: form.steps.with(own, by * step) };
};

const select: FormRow = (call) => {
  const [form, axis, index] = [call.form("self"), call.whole("dim"), call.whole("index")];
  if (form === null || axis === null || index === null || index < 0) return null;
  const own = axisIn(axis, form.steps.length);
  return { ...form, offset: form.offset + index * at(form.steps, own), steps: form.steps.toSpliced(own, 1) };
};

/** The step along the axis, where the element that is put in front continues the sum. */
const diff: FormRow = (call) => {
  const [form, before, axis] = [call.form("self"), call.form("prepend"), call.whole("dim", -1)];
  if (form?.kind !== "sum" || axis === null || call.whole("n", 1) !== 1 || call.node.inputs.has("append")) return null;
  const step = at(form.steps, axisIn(axis, form.steps.length));
  const others = (each: IndexForm): readonly number[] => each.steps.toSpliced(axisIn(axis, each.steps.length), 1);
  const continues =
    before === null
      ? !call.node.inputs.has("prepend")
      : before.offset === form.offset - step && String(others(before)) === String(others(form));
  return continues ? uniform(step, call.sizes.length) : null;
};

const cumsum: FormRow = (call) => {
  const [form, axis] = [call.form("self"), call.whole("dim")];
  if (form === null || axis === null || !isUniform(form)) return null;
  return { ...form, steps: form.steps.with(axisIn(axis, form.steps.length), form.offset) };
};

/** Elements of a tensor that has the same one everywhere. */
const indexed: FormRow = (call) => {
  const form = call.form("self");
  return form !== null && isUniform(form) ? uniform(form.offset, call.sizes.length) : null;
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
    if (form === undefined || form === null || form.steps.length !== meta.sizes.length) return null;
    const isBool = dtype === "bool";
    // A test is 0 or 1; as a number it would be another value, and a sum as bool another one still.
    if (isBool ? form.kind === "sum" && !isUniform(form) : form.kind === "test") return null;
    if (isBool && form.kind === "sum") return uniform(form.offset === 0 ? 0 : 1, form.steps.length);
    return { ...form, steps: form.steps.map((step, axis) => (at(meta.sizes, axis) === 1 ? 0 : step)) };
  };
  return formOf;
}

/** What a mask [.., Lq, Lk] lets queries see: query i sees key j where i - j + offset >= 0. */
export function maskIn({ kind, offset, steps }: IndexForm, sizes: readonly Size[]): KnownMask | null {
  if (kind === "sum") return steps.every((step) => step === 0) && offset !== 0 ? "all" : null;
  const [rows = 0, keys = 0] = steps.slice(-2);
  if (rows !== 1 || keys !== -1 || steps.slice(0, -2).some((step) => step !== 0)) return null;
  if (offset === 0) return "topLeft";
  const [queryCount, keyCount] = sizes.slice(-2);
  const isKnown = typeof queryCount === "number" && typeof keyCount === "number";
  return isKnown && offset === keyCount - queryCount ? "bottomRight" : null;
}
