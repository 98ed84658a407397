/**
 * Builds the nest of one value. It starts from the value's index and follows the steps back to stored values, inlining
 * all others. Views become index arithmetic, computations become instructions. A value that is read twice at one index
 * is computed once.
 */
import type { UnitKernel, UnitStep } from "../../commands/kernel.ts";
import {
  binaryExpression,
  castExpression,
  fullExpression,
  iotaExpression,
  reductionSemantics,
  ternaryExpression,
  unaryExpression,
} from "../../ir/ops/functions/expressions.ts";
import { appendRandom } from "../../ir/ops/functions/philox.ts";
import type { DType } from "../../numerics/dtype.ts";
import { computeType, constant, type Expression } from "../../numerics/scalar/expression.ts";
import { at, invariant, unreachable } from "../../support/invariant.ts";
import { type Affine, affineKey, coefficientOf, constantIndex, dot, loopsBehind } from "./affine.ts";
import {
  type AxisLoops,
  createIndexSpace,
  type IndexSpace,
  insideExpression,
  placeExpression,
  unsplit,
} from "./index-space.ts";
import type { Access, Instruction, Loop, Nest, ValuePlacement } from "./nest.ts";
import { isViewStep, viewIndex } from "./view-index.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

export interface UnitGraph {
  readonly unit: Pick<UnitKernel, "values" | "steps">;
  /** The step that computes each value; undefined for inputs. */
  readonly producers: readonly (UnitStep | undefined)[];
  /** The memory of each stored value; undefined for inlined values. */
  readonly placements: readonly (ValuePlacement | undefined)[];
}

type ReductionStep = Extract<UnitStep, { kind: "Reduction" }>;

/** The nest that computes `value` and stores it in its memory. */
export function buildNest(graph: UnitGraph, value: number): Nest {
  const step = graph.producers[value];
  return step?.kind === "Reduction" ? buildReduction(graph, value, step) : buildElementwise(graph, value);
}

function buildElementwise(graph: UnitGraph, value: number): Nest {
  const { shape } = at(graph.unit.values, value);
  return settleLoops(unsplit(shape), (space) => {
    const body = createBody(graph, space);
    body.compute(value, space.axes);
    return {
      atoms: space.atoms,
      loops: spaceLoops(space, 0, space.loopCount),
      reducedLoops: [],
      reduction: null,
      body: body.instructions,
      target: accessTo(placementOf(graph, value), space.axes),
    };
  });
}

function buildReduction(graph: UnitGraph, value: number, step: ReductionStep): Nest {
  const operand = at(step.inputs, 0);
  const { shape, dtype } = at(graph.unit.values, operand);
  const kept = shape.map((_, axis) => axis).filter((axis) => !step.axes.includes(axis));
  const reduced = step.axes.toSorted((a, b) => a - b);
  const order = [...kept, ...reduced];
  return settleLoops(unsplit(order.map((axis) => at(shape, axis))), (space, loops) => {
    const body = createBody(graph, space);
    body.read(
      operand,
      shape.map((_, axis) => at(space.axes, order.indexOf(axis))),
    );
    const keptLoops = loops.slice(0, kept.length).flat().length;
    return {
      atoms: space.atoms,
      loops: spaceLoops(space, 0, keptLoops),
      reducedLoops: spaceLoops(space, keptLoops, space.loopCount),
      reduction: reductionSemantics(step.op, dtype),
      body: body.instructions,
      target: accessTo(placementOf(graph, value), space.axes.slice(0, kept.length)),
    };
  });
}

/** Rebuilds while divisions request splits. It ends, because each split makes a loop shorter. */
export function settleLoops<T>(start: AxisLoops, build: (space: IndexSpace, loops: AxisLoops) => T): T {
  let loops = start;
  for (;;) {
    const space = createIndexSpace(loops);
    const built = build(space, loops);
    const refined = space.refined();
    if (refined === null) return built;
    loops = refined;
  }
}

/** `offset` in elements. */
interface StridedBox {
  readonly placement: ValuePlacement;
  readonly offset: number;
}

/** The strided box of memory of a stored value, or of a view of one. Null if the value must be computed or gathered. */
export function stridedBox(graph: UnitGraph, value: number): StridedBox | null {
  const { shape } = at(graph.unit.values, value);
  return settleLoops(unsplit(shape), (space, loops) => {
    const body = createBody(graph, space);
    body.read(value, space.axes);
    const [first, ...others] = body.instructions;
    if (first?.kind !== "load" || others.length > 0) return null;
    const { memory, dtype, offset } = first.access;
    if (offset.terms.some(({ atom }) => atom >= space.loopCount)) return null;
    let loop = 0;
    const strides: number[] = [];
    for (const extents of loops) {
      const coefficients = extents.map(() => coefficientOf(offset, loop++));
      const stride = coefficients.at(-1) ?? 0;
      if (coefficients.some((coefficient, i) => coefficient !== stride * elementCount(extents.slice(i + 1))))
        return null;
      strides.push(stride);
    }
    return { placement: { memory, dtype, strides }, offset: offset.constant };
  });
}

export interface Body {
  readonly instructions: readonly Instruction[];
  /** The instruction for `value` at `index`: a load if the value is stored. */
  readonly read: (value: number, index: readonly Affine[]) => number;
  /** An instruction that computes `expression` of the results of others. */
  readonly apply: (expression: Expression, ...operands: readonly number[]) => number;
  /** The place of an index that an instruction has loaded along an axis of `extent` elements, in range. */
  readonly place: (loaded: number, dtype: DType, extent: number) => Affine;
  /** The instruction for `value` at `index`, computed by its step. */
  readonly compute: (value: number, index: readonly Affine[]) => number;
}

export function createBody(graph: UnitGraph, space: IndexSpace): Body {
  const { values } = graph.unit;
  const instructions: Instruction[] = [];
  const known = new Map<string, number>();
  const loops: ReadonlySet<number>[] = [];
  const emit = (instruction: Instruction): number => {
    const { terms } = instruction.kind === "load" ? instruction.access.offset : { terms: [] };
    const own = (instruction.kind === "index" ? instruction.index.terms : terms).flatMap(({ atom }) =>
      loopsBehind(space.atoms, atom),
    );
    const operands = instruction.kind === "apply" ? instruction.operands : [];
    loops.push(new Set([...own, ...operands.flatMap((operand) => [...at(loops, operand)])]));
    return instructions.push(instruction) - 1;
  };
  const dtypeOf = (value: number): DType => at(values, value).dtype;
  const apply = (expression: Expression, ...operands: readonly number[]): number =>
    emit({ kind: "apply", expression, operands });

  const read = (value: number, index: readonly Affine[]): number => {
    const key = `${value}:${index.map(affineKey).join()}`;
    const before = known.get(key);
    if (before !== undefined) return before;
    const placement = graph.placements[value];
    const result =
      placement === undefined ? compute(value, index) : emit({ kind: "load", access: accessTo(placement, index) });
    known.set(key, result);
    return result;
  };

  const place: Body["place"] = (loaded, dtype, extent) => {
    const instruction = apply(placeExpression(dtype, extent), loaded);
    return space.loaded(instruction, extent, [...at(loops, instruction)]);
  };

  /** The element of `table` at a loaded index along `axis`; 0 if the index is outside. */
  const readAt = (
    table: number,
    axis: number,
    loaded: number,
    dtype: DType,
    indexOf: (place: Affine) => readonly Affine[],
  ): number => {
    const own = dtypeOf(table);
    const extent = at(at(values, table).shape, axis);
    const zero = constant(computeType[own], 0);
    if (extent === 0) return apply(zero);
    const element = read(table, indexOf(place(loaded, dtype, extent)));
    return apply(insideExpression(dtype, extent, own, zero), loaded, element);
  };

  const compute = (value: number, index: readonly Affine[]): number => {
    const step = graph.producers[value];
    // The result is an input, so the nest is a copy.
    if (step === undefined) return read(value, index);
    if (isViewStep(step)) {
      const first = at(step.inputs, 0);
      const { shape } = at(values, first);
      return read(first, viewIndex(step, index, shape, at(values, value).shape, space));
    }
    switch (step.kind) {
      case "Unary": {
        const first = at(step.inputs, 0);
        return apply(unaryExpression(step.op, dtypeOf(first)), read(first, index));
      }
      case "Cast": {
        const first = at(step.inputs, 0);
        return apply(castExpression(dtypeOf(first), dtypeOf(value)), read(first, index));
      }
      case "Full":
        return apply(fullExpression(step.value, dtypeOf(value)));
      case "Iota": {
        const position = emit({ kind: "index", index: at(index, 0), origin: step.origin });
        return apply(iotaExpression(step.start, step.step, dtypeOf(value)), position);
      }
      case "RandomBits": {
        const [seed = 0, ...parts] = step.inputs.map((input, i) => read(input, index.slice(i - 1, i)));
        return appendRandom(apply, seed, parts, step);
      }
      case "Binary": {
        const operands = step.inputs.map((input) => read(input, stretched(at(values, input).shape, index)));
        return apply(binaryExpression(step.op, dtypeOf(at(step.inputs, 0)), step.scalar), ...operands);
      }
      case "Ternary": {
        const operands = step.inputs.map((input) => read(input, stretched(at(values, input).shape, index)));
        return apply(ternaryExpression(step.op, dtypeOf(value), step.scalar), ...operands);
      }
      case "IndexSelect": {
        const [table, indices] = [at(step.inputs, 0), at(step.inputs, 1)];
        const { axis } = step;
        const rank = at(values, indices).shape.length;
        const loaded = read(indices, index.slice(axis, axis + rank));
        return readAt(table, axis, loaded, dtypeOf(indices), (place) => index.toSpliced(axis, rank, place));
      }
      case "Gather": {
        const [table, indices] = [at(step.inputs, 0), at(step.inputs, 1)];
        const loaded = read(indices, index);
        return readAt(table, step.axis, loaded, dtypeOf(indices), (place) => index.with(step.axis, place));
      }
      case "Reduction":
      case "Matmul":
      case "Linear":
      case "GroupedMatmul":
      case "Cat":
      case "Pad":
      case "ScatterAdd":
      case "Scan":
      case "Argsort":
        invariant(false, "reductions, contractions and joined values are stored", { value, kind: step.kind });
        break;
      default:
        return unreachable(step);
    }
  };

  return { instructions, read, apply, place, compute };
}

/** An operand of extent 1 along an axis broadcasts: it reads index 0. */
function stretched(shape: readonly number[], index: readonly Affine[]): readonly Affine[] {
  return index.map((axis, i) => (shape[i] === 1 ? constantIndex(0) : axis));
}

export function accessTo(placement: ValuePlacement, index: readonly Affine[]): Access {
  return { memory: placement.memory, dtype: placement.dtype, offset: dot(index, placement.strides) };
}

export function placementOf(graph: UnitGraph, value: number): ValuePlacement {
  const placement = graph.placements[value];
  invariant(placement !== undefined, "a nest's value is stored", { value });
  return placement;
}

export function spaceLoops(space: IndexSpace, from: number, to: number): readonly Loop[] {
  return space.atoms.slice(from, to).map(({ extent }, i) => ({ atom: from + i, extent }));
}
