/**
 * Plans every kind of kernel as phases. A `fill` is a nest that writes 0 to every element. A `combine` is a nest that
 * reduces its inputs at each index, in order, and rounds once; one more nest per further output copies the first
 * output. All other kinds are units.
 */
import { asUnit } from "../commands/as-unit.ts";
import { type AttentionKernel, isAttention } from "../commands/attention.ts";
import type { CombineKernel, FillKernel, Kernel, OpaqueKernel, Operand } from "../commands/kernel.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { reductionSemantics } from "../ir/ops/functions/expressions.ts";
import { computeType, constant } from "../numerics/scalar/expression.ts";
import { at, invariant } from "../support/invariant.ts";
import { dot } from "./nests/affine.ts";
import { arrangeLoops } from "./nests/arrange-loops.ts";
import { createIndexSpace, type IndexSpace, unsplit } from "./nests/index-space.ts";
import type { Access, Instruction, NestMemory, Nest } from "./nests/nest.ts";
import { type PhasePlan, planUnit, unitPhases, type UnitPlan } from "./unit-plan.ts";

export function planKernel(kernel: Kernel): UnitPlan {
  if (isUnit(kernel)) return planUnit(asUnit(kernel));
  return { phases: kernelPhases(kernel).phases, valueBytes: 0, workBytes: 0 };
}

/** The phases before values share scratch. */
export function kernelPhases(kernel: Kernel): PhasePlan {
  if (isUnit(kernel)) return unitPhases(asUnit(kernel));
  if (kernel.kind === "opaque") return refuseOpaque(kernel);
  if (isAttention(kernel)) return refuseAttention(kernel);
  const nests = kernel.kind === "combine" ? combineNests(kernel) : [fillNest(kernel)];
  return { phases: nests.map((nest) => ({ kind: "nest", nest: arrangeLoops(nest) })), sizes: new Map() };
}

type OtherKernel = CombineKernel | FillKernel | OpaqueKernel | AttentionKernel;

function isUnit(kernel: Kernel): kernel is Exclude<Kernel, OtherKernel> {
  return kernel.kind !== "combine" && kernel.kind !== "fill" && kernel.kind !== "opaque" && !isAttention(kernel);
}

/** Throws `kernel-opaque`. */
export function refuseOpaque({ op }: OpaqueKernel): never {
  return fail("kernel-opaque", `${op} cannot be run, because Braid does not know what it computes`, {
    found: op,
    expected: "ops that Braid has",
    help: "verify the program with braid verify, or write what it computes with ops that Braid has",
  });
}

/** Throws `kernel-opaque`. */
function refuseAttention({ kind }: AttentionKernel): never {
  return fail("kernel-opaque", `${kind} is no nest of loops, and this back end has no other kernel for it`, {
    found: kind,
    expected: "attention as matmuls and a softmax",
    help: 'lower the program with attention "ops" (--schedule attention=ops)',
  });
}

function fillNest({ outputs }: FillKernel): Nest {
  const { dtype, shape, strides } = at(outputs, 0);
  const space = createIndexSpace(unsplit(shape));
  return {
    atoms: space.atoms,
    loops: space.atoms.map(({ extent }, atom) => ({ atom, extent })),
    reducedLoops: [],
    reduction: null,
    body: [{ kind: "apply", expression: constant(computeType[dtype], 0), operands: [] }],
    target: { memory: { kind: "output", position: 0 }, dtype, offset: dot(space.axes, strides) },
  };
}

/** Each index reads all inputs before it writes the output, so an output may be one of the inputs. */
function combineNests(kernel: CombineKernel): readonly Nest[] {
  const [first, ...others] = kernel.outputs.map((_, position) => position);
  invariant(first !== undefined, "a combination has an output", kernel);
  return [sumNest(kernel), ...others.map((position) => copyNest(kernel, position))];
}

function sumNest(kernel: CombineKernel): Nest {
  const space = createIndexSpace(unsplit(at(kernel.outputs, 0).shape));
  const { combine, finish } = reductionSemantics(kernel.op, at(kernel.outputs, 0).dtype);
  const body = kernel.inputs.map((operand, position): Instruction => {
    return { kind: "load", access: accessOf(space, { kind: "input", position }, operand) };
  });
  // The identity is neutral, so the accumulator starts as the first input.
  let sum = 0;
  for (const position of kernel.inputs.keys()) {
    if (position > 0) sum = body.push({ kind: "apply", expression: combine, operands: [sum, position] }) - 1;
  }
  body.push({ kind: "apply", expression: finish, operands: [sum] });
  return nestOf(space, body, accessOf(space, { kind: "output", position: 0 }, at(kernel.outputs, 0)));
}

/** Copies output 0 to the output at `position`. A kernel that writes both stores from a register instead. */
function copyNest({ outputs }: CombineKernel, position: number): Nest {
  const space = createIndexSpace(unsplit(at(outputs, 0).shape));
  const load: Instruction = { kind: "load", access: accessOf(space, { kind: "output", position: 0 }, at(outputs, 0)) };
  return nestOf(space, [load], accessOf(space, { kind: "output", position }, at(outputs, position)));
}

function accessOf(space: IndexSpace, memory: NestMemory, { dtype, strides }: Operand): Access {
  return { memory, dtype, offset: dot(space.axes, strides) };
}

function nestOf({ atoms }: IndexSpace, body: readonly Instruction[], target: Access): Nest {
  const loops = atoms.map(({ extent }, atom) => ({ atom, extent }));
  return { atoms, loops, reducedLoops: [], reduction: null, body, target };
}
