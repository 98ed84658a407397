/** The index forms (../index-forms.ts) of what nodes make. */
import { at } from "../../support/invariant.ts";
import { type Argument, type GraphNode, isList, isValue, type Size, type TensorMeta } from "./graph.ts";
import {
  addedForm,
  countForm,
  equalForm,
  type IndexForm,
  logicalForm,
  mapped,
  orderForm,
  raisedForm,
  type Sum,
  uniform,
  uniformIn,
} from "../index-forms.ts";
import { axisIn } from "./operands.ts";

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

/** `self` and `other`, which may be a number. */
function operands(call: Call): readonly [IndexForm, IndexForm] | null {
  const number = call.whole("other");
  const [a, b] = [call.form("self"), number === null ? call.form("other") : uniform(number, 0)];
  return a === null || b === null ? null : [a, b];
}

function sumRow(sign: 1 | -1): FormRow {
  return (call) => {
    const pair = operands(call);
    return pair === null || call.whole("alpha", 1) !== 1 ? null : addedForm(...pair, call.sizes.length, sign);
  };
}

/** a >= b + margin, or the other way round. */
function order(swap: boolean, margin: 0 | 1): FormRow {
  return (call) => {
    const pair = operands(call);
    if (pair === null) return null;
    const [a, b] = pair;
    return swap ? orderForm(b, a, margin, call.sizes) : orderForm(a, b, margin, call.sizes);
  };
}

function equality(equal: boolean): FormRow {
  return (call) => {
    const pair = operands(call);
    return pair === null ? null : equalForm(...pair, equal, call.sizes.length);
  };
}

function logical(neutral: 0 | 1): FormRow {
  return (call) => {
    const pair = operands(call);
    return pair === null ? null : logicalForm(pair, neutral, call.sizes.length);
  };
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
  return start === null || step === null ? null : countForm({ offset: start, steps: [step] });
};

const unsqueeze: FormRow = (call) => {
  const [form, axis] = [call.form("self"), call.whole("dim")];
  if (form === null || axis === null) return null;
  const place = axisIn(axis, call.sizes.length);
  return mapped(form, ({ offset, steps }) => ({ offset, steps: steps.toSpliced(place, 0, 0) }));
};

const expand: FormRow = (call) => {
  const form = call.form("self");
  return form === null ? null : raisedForm(form, call.sizes.length);
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
