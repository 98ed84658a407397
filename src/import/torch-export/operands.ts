/** The operands of a node as its row reads them: tensors, numbers, sizes and flags by the names of PyTorch's schema. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { TensorId } from "../../ir/domain.ts";
import type { Extent } from "../../ir/api/extent.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import { full } from "../../ir/api/ops/creation.ts";
import { sum } from "../../ir/api/ops/reductions.ts";
import { permute } from "../../ir/api/ops/views.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import type { DType } from "../../numerics/dtype.ts";
import { siteText } from "../../support/call-site.ts";
import { at } from "../../support/invariant.ts";
import {
  type Argument,
  type GraphNode,
  isList,
  isValue,
  type Size,
  type TensorMeta,
  torchDTypes,
  type TorchDType,
} from "./graph.ts";
import type { KnownMask } from "./masks.ts";
import type { GroupCollective } from "./group-collective.ts";

/** What a name of the graph stands for. A complex tensor is two real ones. */
export type NodeValue =
  | { readonly kind: "tensor"; readonly view: TensorView }
  | {
      readonly kind: "complex";
      readonly re: TensorView;
      readonly im: TensorView;
      /** The real tensor whose neighbouring elements are the two parts. */
      readonly pairs?: TensorView;
      readonly rotated?: Rotated;
    }
  | { readonly kind: "size"; readonly size: Scalar }
  /** A tensor without elements, which Braid does not have. */
  | { readonly kind: "empty" };

/** The product of pairs and a complex tensor: a rotary embedding. */
export interface Rotated {
  readonly x: TensorView;
  readonly cos: TensorView;
  readonly sin: TensorView;
}

/** How a view was made, for rows that look through it. */
export type Provenance =
  | { readonly kind: "reshape"; readonly of: TensorView }
  /** To a dtype that has all values of the dtype before. */
  | { readonly kind: "widened"; readonly of: TensorView }
  | { readonly kind: "silu"; readonly of: TensorView }
  | { readonly kind: "rotated"; readonly of: Rotated }
  | { readonly kind: "expand"; readonly of: TensorView }
  | { readonly kind: "unsqueeze"; readonly of: TensorView; readonly axis: number };

/** The Fusion that nodes are built into: the model's, or one that evaluates constants. */
export interface Building {
  readonly fusion: Fusion;
  readonly provenance: Map<TensorId, Provenance>;
  /** By the tensor that stands for the result. */
  readonly collectives: Map<TensorId, GroupCollective>;
  readonly valueOf: (name: string) => NodeValue;
  /** Masks that are added to the scores, by the values that they are made of and their dtype. */
  readonly masks: Map<string, TensorView>;
  readonly maskOf: (name: string) => KnownMask;
}

export interface NodeOperands {
  readonly node: GraphNode;
  readonly building: Building;
  readonly fusion: Fusion;
  /** The dtype of the first result. */
  readonly resultDType: DType | null;
  /** Of result `i`; null where the graph does not say it. */
  readonly sizesOf: (i: number) => readonly Size[] | null;
  readonly dtypeOf: (i: number) => DType | null;
  readonly has: (name: string) => boolean;
  readonly value: (name: string) => NodeValue;
  readonly tensor: (name: string) => TensorView;
  /** By the name of the value, not of an argument. */
  readonly tensorNamed: (value: string) => TensorView;
  readonly tensorOr: (name: string) => TensorView | null;
  /** Those of a list that have elements. */
  readonly tensors: (name: string) => readonly TensorView[];
  /** Of a list of indices, in which a colon is null. */
  readonly tensorsOrNull: (name: string) => readonly (TensorView | null)[];
  readonly operand: (name: string) => TensorView | number;
  readonly number: (name: string, fallback?: number) => number;
  readonly numberOr: (name: string) => number | null;
  readonly whole: (name: string, fallback?: number) => number;
  readonly wholes: (name: string, fallback?: readonly number[]) => readonly number[];
  readonly size: (name: string, fallback?: Extent) => Extent;
  readonly sizes: (name: string) => readonly Extent[];
  readonly flag: (name: string, fallback: boolean) => boolean;
  readonly text: (name: string, fallback: string) => string;
  readonly dtype: (name?: string) => DType | null;
  /** Null where it is no tensor. */
  readonly maskOf: (name: string) => KnownMask | null;
  /** Throws `model-unsupported`: the row does not take this form of the op. */
  readonly refuse: (found: string, expected: string) => never;
}

/** `Braid has no ...`, at the node. Throws `model-unsupported`. */
export function unsupportedNode(node: GraphNode, message: string, found: string, expected: string): never {
  return fail("model-unsupported", message, {
    place: node.place(),
    ...(node.source === null ? {} : { source: siteText(node.source) }),
    found: `${found}, ${moduleText(node)}`,
    expected,
    help: "write this part of the model with the ops of docs/import-pytorch.md, and export it again",
  });
}

export function moduleText({ modules }: GraphNode): string {
  const path = modules.at(-1)?.path ?? "";
  return path === "" ? "in the model itself" : `in module ${path}`;
}

/** The dtype of Braid. Throws `model-unsupported`. */
export function braidDType({ name, braid }: TorchDType, node: GraphNode): DType {
  if (braid !== null) return braid;
  return unsupportedNode(node, `Braid has no dtype ${name}`, `${name} of ${node.target}`, torchDTypes);
}

/** `metas`: of the results. */
export function nodeOperands(
  node: GraphNode,
  building: Building,
  metas: readonly (TensorMeta | undefined)[],
): NodeOperands {
  const given = (name: string): Argument => node.inputs.get(name) ?? null;
  const refuse = (found: string, expected: string): never =>
    unsupportedNode(node, `Braid has no such form of ${node.target}`, found, expected);
  const missing = (name: string, expected: string): never => {
    const found = given(name);
    const value = isValue(found) ? building.valueOf(found.name) : null;
    const kind = value?.kind === "size" ? "a size that export left open" : "another kind of argument";
    const shown = found === null ? "nothing" : typeof found === "object" ? kind : String(found);
    return refuse(`${shown} as ${name}`, expected);
  };
  const viewOf = (argument: Argument, name: string): TensorView => {
    const value = isValue(argument) ? building.valueOf(argument.name) : null;
    if (value?.kind === "tensor") return value.view;
    if (value?.kind === "complex") return refuse(`a complex tensor as ${name}`, "real tensors");
    if (value?.kind === "empty") return refuse(`a tensor without elements as ${name}`, "tensors with elements");
    return missing(name, "a tensor");
  };
  const sizeOf = (argument: Argument, name: string): Extent => {
    if (typeof argument === "number") return Number.isSafeInteger(argument) ? argument : Number.MAX_SAFE_INTEGER;
    const value = isValue(argument) ? building.valueOf(argument.name) : null;
    return value?.kind === "size" ? plainSize(value.size) : missing(name, "a size");
  };
  const numberOr = (name: string): number | null => {
    const found = given(name);
    if (found === null) return null;
    if (typeof found === "number") return found;
    if (typeof found === "boolean") return Number(found);
    const size = isValue(found) ? sizeOf(found, name) : null;
    return typeof size === "number" ? size : missing(name, "a number that is known");
  };
  const number = (name: string, fallback?: number): number => numberOr(name) ?? fallback ?? missing(name, "a number");
  const whole = (name: string, fallback?: number): number => {
    const found = number(name, fallback);
    return Number.isInteger(found) ? found : missing(name, "a whole number");
  };
  const list = (name: string): readonly Argument[] => {
    const found = given(name);
    return isList(found) ? found : found === null ? missing(name, "a list") : [found];
  };
  const dtypeOf = (i: number): DType | null => metas[i]?.dtype.braid ?? null;
  return {
    node,
    building,
    fusion: building.fusion,
    resultDType: dtypeOf(0),
    sizesOf: (i) => metas[i]?.sizes ?? null,
    dtypeOf,
    has: (name) => given(name) !== null,
    value: (name) => {
      const found = given(name);
      return isValue(found) ? building.valueOf(found.name) : missing(name, "a tensor");
    },
    tensor: (name) => viewOf(given(name), name),
    tensorNamed: (value) => viewOf({ kind: "value", name: value }, value),
    tensorOr: (name) => (given(name) === null ? null : viewOf(given(name), name)),
    tensors: (name) =>
      list(name).flatMap((each) => {
        const isEmpty = isValue(each) && building.valueOf(each.name).kind === "empty";
        return isEmpty ? [] : [viewOf(each, name)];
      }),
    tensorsOrNull: (name) => list(name).map((each) => (each === null ? null : viewOf(each, name))),
    operand: (name) => {
      const found = given(name);
      if (!isValue(found)) return number(name);
      const value = building.valueOf(found.name);
      if (value.kind !== "size") return viewOf(found, name);
      const size = plainSize(value.size);
      if (typeof size === "number") return size;
      return isCount(value.size) ? sizeTensor(building.fusion, value.size) : missing(name, "no difference of sizes");
    },
    number,
    numberOr,
    whole,
    wholes: (name, fallback) =>
      given(name) === null && fallback !== undefined
        ? fallback
        : list(name).map((each) => (typeof each === "number" ? each : missing(name, "whole numbers"))),
    size: (name, fallback) => (given(name) === null && fallback !== undefined ? fallback : sizeOf(given(name), name)),
    sizes: (name) => list(name).map((each) => sizeOf(each, name)),
    flag: (name, fallback) => {
      const found = given(name);
      return typeof found === "boolean" ? found : fallback;
    },
    text: (name, fallback) => {
      const found = given(name);
      return typeof found === "string" ? found : fallback;
    },
    dtype: (name = "dtype") => {
      const found = given(name);
      if (typeof found !== "object" || found === null || isList(found) || found.kind !== "dtype") return null;
      return braidDType(found.dtype, node);
    },
    maskOf: (name) => {
      const found = given(name);
      return isValue(found) ? building.maskOf(found.name) : null;
    },
    refuse,
  };
}

function plainSize(size: Scalar): Extent {
  return size.kind === "constant" ? size.value : size;
}

/** Whether a size is 0 or more for any sizes. */
function isCount(size: Scalar): boolean {
  if (size.kind === "constant") return size.value >= 0;
  return (
    size.kind === "symbol" || (size.kind === "binary" && size.op !== "sub" && isCount(size.lhs) && isCount(size.rhs))
  );
}

/** A size that export left open as a tensor without axes. */
function sizeTensor(fusion: Fusion, size: Scalar): TensorView {
  return sum(full(fusion, [size], 1, "int64"), [0]);
}

/** The axis counted from 0. */
export function axisIn(axis: number, rank: number): number {
  return axis < 0 ? axis + rank : axis;
}

/** The order of axes with two of them swapped. */
export function swapped(x: TensorView, a: number, b: number): TensorView {
  const order = Array.from({ length: x.rank }, (_, axis) => axis);
  const [first, second] = [axisIn(a, x.rank), axisIn(b, x.rank)];
  if (first === second) return x;
  [order[first], order[second]] = [at(order, second), at(order, first)];
  return permute(x, order);
}
