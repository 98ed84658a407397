/**
 * The nests that compute one value of a unit. Most values have one. A cat has a nest for each operand, and a pad one
 * for what it keeps and one for each side that it fills; they write boxes that do not overlap. So has a value that is
 * made of a cat which is not stored itself (`joinsThrough`). A scatterAdd copies what it adds to unless it is
 * in place, then adds. Scans and
 * sorts have one nest, whose reduced loop is the axis.
 */
import type { UnitStep } from "../../commands/kernel.ts";
import {
  castExpression,
  numberExpression,
  reductionSemantics,
  unaryExpression,
} from "../../ir/ops/functions/expressions.ts";
import type { PadWidth } from "../../ir/ops/kinds/views/pad.ts";
import type { DType } from "../../numerics/dtype.ts";
import { computeType, constant, type Expression, operand } from "../../numerics/scalar/expression.ts";
import { at } from "../../support/invariant.ts";
import { type Affine, constantIndex, dot, sum } from "./affine.ts";
import {
  accessTo,
  type Body,
  buildNest,
  createBody,
  spaceLoops,
  placementOf,
  settleLoops,
  type UnitGraph,
} from "./build-nest.ts";
import { createIndexSpace, type IndexSpace, insideExpression, unsplit } from "./index-space.ts";
import type { Nest, ValuePlacement } from "./nest.ts";
import { joinsThrough } from "./stored-values.ts";
import { reshapeIndex } from "./view-index.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

type PadStep = Extract<UnitStep, { kind: "Pad" }>;

export function valueNests(graph: UnitGraph, value: number): readonly Nest[] {
  const step = graph.producers[value];
  if (step?.kind === "ScatterAdd") return scatterNests(graph, step);
  if (step?.kind === "Scan" || step?.kind === "Argsort") return [alongNest(graph, step)];
  const boxes = boxesOf(graph, value);
  if (boxes === null) return [buildNest(graph, value)];
  return boxes.filter(({ shape }) => elementCount(shape) > 0).map((box) => boxNest(graph, value, box));
}

/** A part of a value that one nest writes. */
interface Box {
  readonly shape: readonly number[];
  /** The value's index for an index of the box. */
  readonly place: (index: readonly Affine[], space: IndexSpace) => readonly Affine[];
  /** Adds the instructions for the element at an index of the box. The last one is the element. */
  readonly element: (body: Body, index: readonly Affine[]) => number;
}

/** The boxes of a value that one nest cannot compute; null for any other. */
function boxesOf(graph: UnitGraph, value: number): readonly Box[] | null {
  const step = graph.producers[value];
  if (step?.kind === "Cat") return catBoxes(graph, step);
  if (step?.kind === "Pad") return padBoxes(graph, step);
  const { values } = graph.unit;
  if (step === undefined || !joinsThrough(graph.unit, step)) return null;
  const input = at(step.inputs, 0);
  const boxes = graph.placements[input] === undefined ? boxesOf(graph, input) : null;
  if (boxes === null) return null;
  switch (step.kind) {
    case "Permute": {
      const { order } = step;
      return placed(boxes, (index) => order.map((axis) => at(index, axis)));
    }
    case "Reshape":
    case "Broadcast":
    case "Squeeze":
      // The other way round: the index of the operand gives that of the result.
      return placed(boxes, (index, space) =>
        reshapeIndex(index, at(values, value).shape, at(values, input).shape, space),
      );
    case "Unary":
    case "Cast": {
      const { dtype } = at(values, input);
      const expression =
        step.kind === "Cast" ? castExpression(dtype, at(values, value).dtype) : unaryExpression(step.op, dtype);
      return boxes.map(({ element, ...box }) => ({
        ...box,
        element: (body, index) => body.apply(expression, element(body, index)),
      }));
    }
  }
}

/** Boxes of a value that has the elements at `place` of each of their indices. */
function placed(boxes: readonly Box[], place: Box["place"]): readonly Box[] {
  return boxes.map((box) => ({ ...box, place: (index, space) => place(box.place(index, space), space) }));
}

function boxNest(graph: UnitGraph, value: number, { shape, place, element }: Box): Nest {
  return settleLoops(unsplit(shape), (space) => {
    const body = createBody(graph, space);
    element(body, space.axes);
    return {
      atoms: space.atoms,
      loops: spaceLoops(space, 0, space.loopCount),
      reducedLoops: [],
      reduction: null,
      body: body.instructions,
      target: accessTo(placementOf(graph, value), place(space.axes, space)),
    };
  });
}

function catBoxes(graph: UnitGraph, { axis, inputs }: Extract<UnitStep, { kind: "Cat" }>): readonly Box[] {
  const { unit } = graph;
  let next = 0;
  return inputs.flatMap((input): readonly Box[] => {
    const { shape } = at(unit.values, input);
    const first = next;
    next += at(shape, axis);
    const whole = wholeBox(shape, (body, index) => body.read(input, index));
    const boxes = (graph.placements[input] === undefined ? boxesOf(graph, input) : null) ?? [whole];
    return placed(boxes, shiftedBy(shape.map((_, i) => (i === axis ? first : 0))));
  });
}

function wholeBox(shape: readonly number[], element: Box["element"]): Box {
  return { shape, place: (index) => index, element };
}

function shiftedBy(by: readonly number[]): (index: readonly Affine[]) => readonly Affine[] {
  return (index) => index.map((axis, i) => sum([axis, constantIndex(at(by, i))]));
}

function padBoxes({ unit }: UnitGraph, { widths, value, inputs, output }: PadStep): readonly Box[] {
  const input = at(inputs, 0);
  const { shape } = at(unit.values, input);
  const { dtype, shape: whole } = at(unit.values, output);
  const removed = widths.map(({ before }) => Math.max(0, -before));
  const starts = widths.map(({ before }) => Math.max(0, before));
  const inside = {
    place: shiftedBy(starts),
    shape: shape.map(
      (extent, axis) => extent + Math.min(0, at(widths, axis).before) + Math.min(0, at(widths, axis).after),
    ),
  };
  const filled = numberExpression(value, dtype);
  // Beside the inside along one axis: within it along earlier axes, over all of later ones.
  const beside = (axis: number, from: number, length: number): Box => ({
    place: shiftedBy(whole.map((_, i) => (i < axis ? at(starts, i) : i === axis ? from : 0))),
    shape: whole.map((extent, i) => (i < axis ? at(inside.shape, i) : i === axis ? length : extent)),
    element: (body) => body.apply(filled),
  });
  return [
    { ...inside, element: (body, index) => body.read(input, shiftedBy(removed)(index)) },
    ...widths.flatMap(({ before, after }: PadWidth, axis): readonly Box[] => [
      beside(axis, 0, Math.max(0, before)),
      beside(axis, at(whole, axis) - Math.max(0, after), Math.max(0, after)),
    ]),
  ];
}

/** A thread or worker has an index of all other axes alone, and adds along the axis in order. */
function scatterNests(graph: UnitGraph, step: Extract<UnitStep, { kind: "ScatterAdd" }>): readonly Nest[] {
  const { values } = graph.unit;
  const [tensor, indices, source] = [at(step.inputs, 0), at(step.inputs, 1), at(step.inputs, 2)];
  const { dtype, shape } = at(values, tensor);
  const copy = wholeBox(shape, (body, index) => body.read(tensor, index));
  const extent = at(shape, step.axis);
  const added = at(values, source).shape;
  const isInPlace = graph.placements[tensor]?.memory === graph.placements[step.output]?.memory;
  const copied = elementCount(shape) === 0 || isInPlace ? [] : [boxNest(graph, step.output, copy)];
  if (elementCount(shape) === 0 || elementCount(added) === 0) return copied;
  const order = [...added.keys()].filter((axis) => axis !== step.axis);
  const type = computeType[dtype];
  const { combine, outside } =
    step.sets !== undefined ? { combine: operand(type, 1), outside: operand(type, 2) } : sumOf(dtype);
  const nest = settleLoops(unsplit([...order, step.axis].map((axis) => at(added, axis))), (space, loops): Nest => {
    const body = createBody(graph, space);
    const index = added.map((_, axis) => at(space.axes, axis === step.axis ? order.length : order.indexOf(axis)));
    const loaded = body.read(indices, index);
    const dtypeOfIndex = at(values, indices).dtype;
    const place = body.place(loaded, dtypeOfIndex, extent);
    const to = index.with(step.axis, place);
    const operands = [loaded, body.read(source, index)];
    // What is outside writes back what is there.
    if (step.sets !== undefined) operands.push(body.read(step.output, to));
    body.apply(insideExpression(dtypeOfIndex, extent, dtype, outside), ...operands);
    const outer = loops.slice(0, -1).flat().length;
    return {
      atoms: space.atoms,
      loops: spaceLoops(space, 0, outer),
      reducedLoops: spaceLoops(space, outer, space.loopCount),
      reduction: null,
      ordered: {
        kind: "scatter",
        combine,
        sums: step.sets === undefined,
        ...(step.sets === "below" ? { below: { instruction: loaded, extent } } : {}),
      },
      body: body.instructions,
      target: accessTo(placementOf(graph, step.output), to),
    };
  });
  return [...copied, nest];
}

/** How elements are added, and what is added for an index outside of the axis. */
function sumOf(dtype: DType): { readonly combine: Expression; readonly outside: Expression } {
  const { type, identity, combine } = reductionSemantics("sum", dtype);
  return { combine, outside: { kind: "constant", type, value: identity } };
}

function alongNest(graph: UnitGraph, step: Extract<UnitStep, { kind: "Scan" | "Argsort" }>): Nest {
  const input = at(step.inputs, 0);
  const { dtype, shape } = at(graph.unit.values, input);
  const order = [...[...shape.keys()].filter((axis) => axis !== step.axis), step.axis];
  return settleLoops(unsplit(order.map((axis) => at(shape, axis))), (space, loops) => {
    const body = createBody(graph, space);
    const index = shape.map((_, axis) => at(space.axes, order.indexOf(axis)));
    body.read(input, index);
    const outer = loops.slice(0, -1).flat().length;
    return {
      atoms: space.atoms,
      loops: spaceLoops(space, 0, outer),
      reducedLoops: spaceLoops(space, outer, space.loopCount),
      reduction: null,
      ordered:
        step.kind === "Scan"
          ? { kind: "scan", semantics: reductionSemantics(step.op, dtype), reverse: step.reverse }
          : { kind: "sort", descending: step.descending },
      body: body.instructions,
      target: accessTo(placementOf(graph, step.output), index),
    };
  });
}

// A reduction over no elements: its result is the neutral element, and the nest has no loop of 0 iterations.

/** The nest, or one that writes the neutral element to a value of `shape` at `placement`. */
export function withoutEmptyReduction(
  nest: Nest,
  shape: readonly number[],
  { memory, dtype, strides }: ValuePlacement,
): Nest {
  const { reduction, reducedLoops } = nest;
  if (reduction === null || !reducedLoops.some(({ extent }) => extent === 0)) return nest;
  const { atoms, axes } = createIndexSpace(unsplit(shape));
  const identity = { ...constant(reduction.type, 0), value: reduction.identity };
  return {
    atoms,
    loops: atoms.map(({ extent }, atom) => ({ atom, extent })),
    reducedLoops: [],
    reduction: null,
    body: [{ kind: "apply", expression: identity, operands: [] }],
    target: { memory, dtype, offset: dot(axes, strides) },
  };
}
