/** What must hold for a statement by itself: one rule per kind. All ids are known to be valid. */
import { type Tensor, type TensorId, withoutReductions } from "../ir/domain.ts";
import { type Op, type OpKind, standaloneHostOp } from "../ir/ops.ts";
import { dispatch, type RuleTable } from "../support/dispatch.ts";
import { at } from "../support/invariant.ts";
import { checkCommunication, checkPeer } from "./validate-communication.ts";
import type { Fault } from "./fault.ts";
import type {
  Allocate,
  ForLoop,
  HirAliasSelect,
  HostProgram,
  PostOnStream,
  ShareMemHandles,
  Statement,
} from "./nodes.ts";
import { isOp } from "./statement-kinds.ts";

export function checkStatement(statement: Statement, program: HostProgram): readonly Fault[] {
  return isOp(statement) ? checkOp(statement, program) : dispatch(rules, statement, program);
}

const valid: readonly Fault[] = [];
const nothing = (): readonly Fault[] => valid;

const rules: RuleTable<Exclude<Statement, Op>, readonly Fault[], [HostProgram]> = {
  Allocate: checkAllocate,
  Deallocate: nothing,
  GetCurrentStream: nothing,
  SetCurrentStream: nothing,
  Synchronize: nothing,
  ForLoop: checkLoop,
  IfThenElse: nothing,
  HirAliasSelect: checkSelect,
  Communication: checkCommunication,
  P2PCommunication: checkPeer,
  StartCoalescing: nothing,
  EndCoalescing: nothing,
  ShareMemHandles: checkHandles,
  Wait: nothing,
  PostOnStream: checkPost,
};

const operandCounts: { readonly [K in OpKind]: readonly number[] } = {
  Set: [1],
  Unary: [1],
  Cast: [1],
  Binary: [2],
  Reduction: [1],
  Broadcast: [1],
  Squeeze: [1],
  Permute: [1],
  Reshape: [1],
  Slice: [1],
  Select: [1],
  Matmul: [2],
  Linear: [2, 3],
};

function checkOp(op: Op, { tensors }: HostProgram): readonly Fault[] {
  if (!standaloneHostOp[op.kind]) {
    const names = Object.entries(standaloneHostOp).flatMap(([kind, standalone]) => (standalone ? [kind] : []));
    return [
      {
        message: `${op.kind} cannot stand alone in a host program`,
        found: op.kind,
        expected: `one of ${names.join(", ")}`,
        help: "put the op into a host unit and run it with PostOnStream",
      },
    ];
  }
  const counts = operandCounts[op.kind];
  if (!counts.includes(op.inputs.length)) {
    return [
      {
        message: `${op.kind} has the wrong number of operands`,
        found: String(op.inputs.length),
        expected: counts.join(" or "),
        help: "give the op its operands",
      },
    ];
  }
  return [...namedAxes(op, at(tensors, at(op.inputs, 0))), ...oneDType(op, tensors)];
}

/** Axis numbers count the first operand's axes without the reduced ones. */
function namedAxes(op: Op, input: Tensor): readonly Fault[] {
  const rank = withoutReductions(input.domain.logical).length;
  const axes = op.kind === "Reduction" ? op.axes : op.kind === "Select" ? [op.axis] : [];
  const outside = axes.find((axis) => !Number.isSafeInteger(axis) || axis < 0 || axis >= rank);
  if (outside !== undefined) return [axisFault(outside, rank)];
  if (op.kind !== "Slice" || op.ranges.length === rank) return valid;
  return [
    {
      message: "a slice does not have one range per axis",
      found: `${op.ranges.length} ranges`,
      expected: `${rank}`,
      help: "give 0 and the extent for an axis that is kept whole",
    },
  ];
}

/** A host op computes in one dtype: what converts is a Cast, in a host unit. */
function oneDType(op: Op, tensors: readonly Tensor[]): readonly Fault[] {
  const output = at(tensors, op.output);
  return op.inputs.flatMap((id) => sameDType(at(tensors, id), output)).slice(0, 1);
}

function sameDType(input: Tensor, output: Tensor): readonly Fault[] {
  if (input.dtype === output.dtype) return valid;
  return [
    {
      message: "the output has another dtype than the input",
      found: `T${input.id} ${input.dtype}, T${output.id} ${output.dtype}`,
      expected: "the same dtype",
      help: "convert with a Cast in a host unit",
    },
  ];
}

function axisFault(axis: number, rank: number): Fault {
  return {
    message: `axis ${axis} does not exist`,
    found: `axis ${axis} of ${rank}`,
    expected: rank === 0 ? "no axis: the tensor is a scalar" : `0 to ${rank - 1}`,
    help: "name an axis of the input",
  };
}

function checkAllocate({ tensor, memory }: Allocate, { tensors }: HostProgram): readonly Fault[] {
  const own = at(tensors, tensor).memory;
  if (own === memory) return valid;
  return [
    {
      message: "an ALLOCATE and its tensor name different memory",
      found: `${memory} for a tensor in ${own} memory`,
      expected: "the tensor's memory type",
      help: `set the tensor's memory type to "${memory}"`,
    },
  ];
}

function checkLoop({ step }: ForLoop): readonly Fault[] {
  if (step.kind === "constant" && Number.isSafeInteger(step.value) && step.value >= 1) return valid;
  return [
    {
      message: "the step of a loop is not a positive constant",
      found: step.kind === "constant" ? String(step.value) : `a ${step.kind} scalar`,
      expected: "a whole number of at least 1",
      help: "count up by a constant step",
    },
  ];
}

function checkSelect({ input, output, axis }: HirAliasSelect, { tensors }: HostProgram): readonly Fault[] {
  const source = at(tensors, input);
  const { logical } = source.domain;
  const selected = logical[axis];
  if (selected === undefined) return [axisFault(axis, logical.length)];
  const rank = withoutReductions(logical).length - (selected.iterType === "reduction" ? 0 : 1);
  const own = withoutReductions(at(tensors, output).domain.logical).length;
  if (own === rank) return sameDType(source, at(tensors, output));
  return [
    {
      message: "the output of a HirAliasSelect does not have the input's axes but one",
      found: `${own} axes`,
      expected: `${rank}`,
      help: "give the output every axis of the input but the selected one",
    },
  ];
}

function checkHandles({ communications }: ShareMemHandles): readonly Fault[] {
  const other = communications.find(({ backend }) => backend !== "cuda");
  if (communications.length > 0 && other === undefined) return valid;
  return [
    {
      message: "ShareMemHandles takes P2PCommunications of the cuda backend",
      found: other === undefined ? "none" : `one of the ${other.backend} backend`,
      expected: "at least one, all of the cuda backend",
      help: 'leave the statement out, or set the backend to "cuda"',
    },
  ];
}

function checkPost({ unit, inputs, outputs }: PostOnStream, { tensors, units }: HostProgram): readonly Fault[] {
  const { fusion } = at(units, unit);
  const sides = [
    { side: "input", given: inputs, own: fusion.inputs },
    { side: "output", given: outputs, own: fusion.outputs },
  ] as const;
  return sides.flatMap(({ side, given, own }): readonly Fault[] => {
    if (given.length !== own.length) {
      return [
        {
          message: `PostOnStream and its host unit have different numbers of ${side}s`,
          found: String(given.length),
          expected: String(own.length),
          help: `give one tensor per ${side} of the unit, in order`,
        },
      ];
    }
    const position = given.findIndex(
      (id, i) => signature(at(tensors, id)) !== signature(at(fusion.tensors, at<TensorId>(own, i))),
    );
    if (position < 0) return valid;
    return [
      {
        message: `PostOnStream and its host unit differ in ${side} ${position}`,
        found: signature(at(tensors, at(given, position))),
        expected: signature(at(fusion.tensors, at<TensorId>(own, position))),
        help: "give tensors of the unit's dtypes and ranks",
      },
    ];
  });
}

function signature({ dtype, domain }: Tensor): string {
  return `${dtype} with ${withoutReductions(domain.logical).length} axes`;
}
