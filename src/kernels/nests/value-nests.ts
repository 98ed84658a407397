/**
 * The nests that compute one value of a unit. Most values have one. A cat has a nest for each operand, and a pad one
 * for what it keeps and one for each side that it fills; they write boxes that do not overlap. A scatterAdd copies what
 * it adds to, then adds.
 */
import type { UnitStep } from "../../commands/kernel.ts";
import { elementCount } from "../../commands/view.ts";
import { numberExpression, reductionSemantics } from "../../ir/ops/functions/expressions.ts";
import type { PadWidth } from "../../ir/ops/kinds/views/pad.ts";
import { constant } from "../../numerics/scalar/expression.ts";
import { at } from "../../support/invariant.ts";
import { type Affine, constantIndex, sum } from "./affine.ts";
import {
  accessTo,
  type Body,
  buildNest,
  createBody,
  loopsOf,
  placementOf,
  settle,
  type UnitGraph,
} from "./build-nest.ts";
import { unsplit } from "./index-space.ts";
import { insideExpression } from "./loaded-index.ts";
import type { Nest } from "./nest.ts";

type PadStep = Extract<UnitStep, { kind: "Pad" }>;

export function valueNests(graph: UnitGraph, value: number): readonly Nest[] {
  const step = graph.producers[value];
  if (step?.kind === "ScatterAdd") return scatterNests(graph, step);
  const boxes = step?.kind === "Cat" ? catBoxes(graph, step) : step?.kind === "Pad" ? padBoxes(graph, step) : null;
  if (boxes === null) return [buildNest(graph, value)];
  return boxes.filter(({ shape }) => elementCount(shape) > 0).map((box) => boxNest(graph, value, box));
}

/** A part of a value that one nest writes. */
interface Box {
  readonly start: readonly number[];
  readonly shape: readonly number[];
  /** Adds the instructions for the element at an index of the box. */
  readonly element: (body: Body, index: readonly Affine[]) => void;
}

function boxNest(graph: UnitGraph, value: number, { start, shape, element }: Box): Nest {
  return settle(unsplit(shape), (space) => {
    const body = createBody(graph, space);
    element(body, space.axes);
    return {
      atoms: space.atoms,
      loops: loopsOf(space, 0, space.loopCount),
      reducedLoops: [],
      reduction: null,
      body: body.instructions,
      target: accessTo(placementOf(graph, value), shiftedIndex(space.axes, start)),
    };
  });
}

function shiftedIndex(index: readonly Affine[], by: readonly number[]): readonly Affine[] {
  return index.map((axis, i) => sum([axis, constantIndex(at(by, i))]));
}

function catBoxes({ unit }: UnitGraph, { axis, inputs }: Extract<UnitStep, { kind: "Cat" }>): readonly Box[] {
  let next = 0;
  return inputs.map((input): Box => {
    const { shape } = at(unit.values, input);
    const start = shape.map((_, i) => (i === axis ? next : 0));
    next += at(shape, axis);
    return { start, shape, element: (body, index) => body.read(input, index) };
  });
}

function padBoxes({ unit }: UnitGraph, { widths, value, inputs, output }: PadStep): readonly Box[] {
  const input = at(inputs, 0);
  const { shape } = at(unit.values, input);
  const { dtype, shape: whole } = at(unit.values, output);
  const removed = widths.map(({ before }) => Math.max(0, -before));
  const inside = {
    start: widths.map(({ before }) => Math.max(0, before)),
    shape: shape.map(
      (extent, axis) => extent + Math.min(0, at(widths, axis).before) + Math.min(0, at(widths, axis).after),
    ),
  };
  const filled = numberExpression(value, dtype);
  // Beside the inside along one axis: within it along earlier axes, over all of later ones.
  const beside = (axis: number, from: number, length: number): Box => ({
    start: whole.map((_, i) => (i < axis ? at(inside.start, i) : i === axis ? from : 0)),
    shape: whole.map((extent, i) => (i < axis ? at(inside.shape, i) : i === axis ? length : extent)),
    element: (body) => body.apply(filled),
  });
  return [
    { ...inside, element: (body, index) => body.read(input, shiftedIndex(index, removed)) },
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
  const copy: Box = { start: shape.map(() => 0), shape, element: (body, index) => body.read(tensor, index) };
  const extent = at(shape, step.axis);
  const added = at(values, source).shape;
  const copied = elementCount(shape) === 0 ? [] : [boxNest(graph, step.output, copy)];
  if (elementCount(shape) === 0 || elementCount(added) === 0) return copied;
  const order = [...added.keys()].filter((axis) => axis !== step.axis);
  const { type, identity, combine } = reductionSemantics("sum", dtype);
  const nest = settle(unsplit([...order, step.axis].map((axis) => at(added, axis))), (space, loops): Nest => {
    const body = createBody(graph, space);
    const index = added.map((_, axis) => at(space.axes, axis === step.axis ? order.length : order.indexOf(axis)));
    const loaded = body.read(indices, index);
    const dtypeOfIndex = at(values, indices).dtype;
    const place = body.place(loaded, dtypeOfIndex, extent);
    const nothing = { ...constant(type, 0), value: identity };
    body.apply(insideExpression(dtypeOfIndex, extent, dtype, nothing), loaded, body.read(source, index));
    const outer = loops.slice(0, -1).flat().length;
    return {
      atoms: space.atoms,
      loops: loopsOf(space, 0, outer),
      reducedLoops: loopsOf(space, outer, space.loopCount),
      reduction: null,
      scatter: combine,
      body: body.instructions,
      target: accessTo(placementOf(graph, step.output), index.with(step.axis, place)),
    };
  });
  return [...copied, nest];
}
