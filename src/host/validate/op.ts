/**
 * Checks that an op of a program fits its operands and its output, by the rules of the Fusion API's ops. Symbolic
 * extents are assumed equal.
 */
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { firstRepeated, type DeviceMesh } from "../../ir/device-mesh.ts";
import { type AxisShape, isDID, type Tensor, withoutReductions } from "../../ir/domain.ts";
import { operandOrder, partialAxes } from "../../ir/ops/axis-map.ts";
import { type Call, shapeText } from "../../ir/ops/call.ts";
import { type LinearOp, type MatmulOp, type Op, outputsOf } from "../../ir/ops/op.ts";
import { inferOutputs, type OutputShape, rowOf } from "../../ir/ops/rows.ts";
import { constantValue, extentsDiffer } from "../../ir/scalar/fold.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import { collectives, isRooted } from "../collectives.ts";
import type { CollectivePermute, Communication, HostProgram, P2PCommunication } from "../nodes.ts";
import type { Fault, Faults } from "./ids.ts";

export function checkOp(op: Op, tensors: readonly Tensor[]): readonly Fault[] {
  const unordered = op.inputs.findIndex((id, i) => !isOrder(operandOrder(op, i), at(tensors, id)));
  if (unordered >= 0) return [orderFault(op, unordered, at(tensors, at(op.inputs, unordered)))];
  const operands = op.inputs.map((id, i) => permuted(at(tensors, id), operandOrder(op, i)));
  const results = resultsOf(op, operands, at(tensors, op.output));
  if ("message" in results) return [results];
  const outputs = outputsOf(op);
  if (outputs.length !== results.length) return [outputCountFault(op, outputs.length, results.length)];
  return results.flatMap((result, i) => checkOutput(op, at(tensors, at(outputs, i)), result, tensors) ?? []);
}

function outputCountFault({ kind }: Op, found: number, expected: number): Fault {
  return {
    message: `${kind} has the wrong number of outputs`,
    found: String(found),
    expected: String(expected),
    help: "give the op all of its outputs",
  };
}

function isOrder(order: readonly number[] | null, { domain }: Tensor): boolean {
  if (order === null) return true;
  const count = withoutReductions(domain.logical).length;
  return order.length === count && new Set(order).size === count && order.every((axis) => axis >= 0 && axis < count);
}

function orderFault(op: Op, operand: number, tensor: Tensor): Fault {
  const count = withoutReductions(tensor.domain.logical).length;
  return {
    message: `operand ${operand} of ${op.kind} is read in an order that is not a permutation of its axes`,
    found: `{${(operandOrder(op, operand) ?? []).join(", ")}} of ${count} axes`,
    expected: `every number from 0 to ${count - 1} once`,
    help: "name every axis of the tensor once",
  };
}

/** The tensor with its logical axes in the order in which an op with a folded permute reads them. */
function permuted(tensor: Tensor, order: readonly number[] | null): Tensor {
  if (order === null) return tensor;
  const axes = withoutReductions(tensor.domain.logical);
  return { ...tensor, domain: { ...tensor.domain, logical: order.map((axis) => at(axes, axis)) } };
}

/** The outputs by the op's rules, or the fault if its arguments do not fit its operands. */
function resultsOf(op: Op, operands: readonly Tensor[], output: Tensor): readonly OutputShape[] | Fault {
  try {
    const spec = rowOf(op).respec(op, operands, output, place);
    return inferOutputs(spec, operands, place);
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    const { message, found = "", expected = "", help = "" } = at(error.diagnostics, 0);
    return { message, found, expected, help };
  }
}

/** A placeholder, because findings name the statement. */
const place: Call = { kind: "call", text: "op" };

/**
 * Reduced axes take no memory. A contraction's output may lack the axis, as a slice of a draft's does, and a view's may
 * keep those of its source.
 */
function checkOutput(op: Op, output: Tensor, { dtype, axes }: OutputShape, tensors: readonly Tensor[]): Fault | null {
  const { kind } = op;
  if (output.dtype !== dtype) {
    return {
      message: `the output of ${kind} does not have the op's dtype`,
      found: output.dtype,
      expected: dtype,
      help: "give the output the op's dtype, or convert with a Cast",
    };
  }
  const partial = partialAxes(op, tensors);
  // Whether the op contracts a chunk of the extent that the output's reduced axis prints.
  const isChunk = partial.length > 0 || (isContraction(op) && op.accumulate !== undefined);
  const logical = output.domain.logical.filter((axis) => !partial.includes(axis));
  const own = rowOf(op).isView ? withoutReductions(logical) : logical;
  const given = isContraction(op) && logical.at(-1)?.iterType !== "reduction" ? axes.slice(0, -1) : axes;
  const fits =
    own.length === given.length &&
    partial.every(({ parallelType }) => isDID(parallelType)) &&
    // Reduced extents need not match: a reduction within each device prints the device's share, a chunk the whole.
    own.every((axis, i) =>
      // A batch axis that a matmul contracts must match.
      axis.iterType === "reduction" && op.kind === "Matmul" && i < given.length - 3
        ? !extentsDiffer(axis.extent, at(given, i).extent)
        : sameAxis(axis, at(given, i), isChunk),
    );
  if (fits) return null;
  return {
    message: `the output of ${kind} does not have the op's axes`,
    found: `${shapeText(output)}${reducedText(logical)}`,
    expected: `[${withoutReduced(axes).join(", ")}]${reducedText(axes)}`,
    help: "give the output the op's axes, the reduced ones included",
  };
}

function isContraction(op: Op): op is MatmulOp | LinearOp {
  return op.kind === "Matmul" || op.kind === "Linear";
}

/** Symbolic extents are assumed equal. The reduced axis of a chunk may be any part of the other. */
export function sameAxis(own: AxisShape, given: AxisShape, isChunk: boolean): boolean {
  const isReduced = own.iterType === "reduction";
  if (isReduced !== (given.iterType === "reduction")) return false;
  return (isReduced && isChunk) || !extentsDiffer(own.extent, given.extent);
}

function withoutReduced(axes: readonly AxisShape[]): readonly string[] {
  return axes.filter(({ iterType }) => iterType !== "reduction").map(({ extent }) => printScalar(extent));
}

function reducedText(axes: readonly AxisShape[]): string {
  const count = axes.filter(({ iterType }) => iterType === "reduction").length;
  return count === 0 ? "" : ` and ${count} reduced ${count === 1 ? "axis" : "axes"}`;
}

// The rules of nvFuser's Communication and P2PCommunication constructors.

export function checkCommunication(statement: Communication, { tensors }: HostProgram): Faults {
  const input = at(tensors, statement.input);
  const output = at(tensors, statement.output);
  return [
    checkTeam(statement, input.mesh),
    checkRoot(statement),
    checkReduceOp(statement),
    checkTensors(input, output),
  ];
}

export function checkPermute(statement: CollectivePermute, { tensors }: HostProgram): Faults {
  return [
    checkTeam({ type: "AllToAll", team: statement.team }),
    checkTensors(at(tensors, statement.input), at(tensors, statement.output)),
  ];
}

export function checkPeer({ peer }: P2PCommunication): Fault | null {
  const value = constantValue(peer);
  if (value === null || isDevice(value)) return null;
  return {
    message: "the peer is not a device",
    found: String(value),
    expected: "a device id, a whole number of at least 0",
    help: "name the device at the other end",
  };
}

function checkTeam({ type, team }: Pick<Communication, "type" | "team">, mesh: DeviceMesh | null = null): Fault | null {
  // A mesh has checked its devices.
  const isChecked = team === mesh?.devices;
  const repeated = isChecked ? undefined : firstRepeated(team);
  const bad = isChecked ? undefined : team.find((device) => !isDevice(device));
  if (team.length > 0 && repeated === undefined && bad === undefined) {
    // A team of one rank sends to itself.
    if (type !== "SendRecv" || team.length <= 2) return null;
    return {
      message: "the team of a SendRecv has more than two ranks",
      found: `(${team.join(" ")})`,
      expected: "the sender and the receiver",
      help: "post one SendRecv per pair",
    };
  }
  return {
    message:
      team.length === 0
        ? "a team is empty"
        : bad === undefined
          ? `device ${repeated} is listed twice in a team`
          : "a team lists something that is not a device",
    found: `(${team.join(" ")})`,
    expected: "at least one device id, each once",
    help: "list the devices that take part, in order",
  };
}

function checkRoot({ type, team, root }: Communication): Fault | null {
  const rooted = isRooted(type);
  if (rooted !== (root !== null)) {
    return {
      message: rooted ? `${type} needs a root` : `${type} has no root`,
      found: rooted ? "no root" : "a root",
      expected: rooted ? `a position in the team, 0 to ${team.length - 1}` : "null",
      help: rooted ? "give the root's position in the team" : "remove the root",
    };
  }
  const value = root === null ? null : constantValue(root);
  if (value === null || (Number.isSafeInteger(value) && value >= 0 && value < team.length)) return null;
  return {
    message: "the root is not a position in the team",
    found: String(value),
    expected: `0 to ${team.length - 1}`,
    help: "count positions in the team from 0; the root is not a device id",
  };
}

function checkReduceOp({ type, reduceOp }: Communication): Fault | null {
  const { reduces } = collectives[type];
  if (reduces === (reduceOp !== null)) return null;
  return {
    message: reduces ? `${type} needs a reduction op` : `${type} does not reduce`,
    found: reduceOp ?? "no reduction op",
    expected: reduces ? "sum, prod, min or max" : "null",
    help: reduces ? "give the reduction op that combines the ranks' elements" : "remove the reduction op",
  };
}

function checkTensors(input: Tensor, output: Tensor): Fault | null {
  const bare = [input, output].find(({ mesh }) => mesh === null);
  if (bare !== undefined) {
    return {
      message: `T${bare.id} takes part in a communication and has no mesh`,
      found: "no mesh",
      expected: "a mesh on the input and the output",
      help: "set the DeviceMesh of both tensors",
    };
  }
  if (input.dtype === output.dtype) return null;
  return {
    message: "a communication does not convert dtypes",
    found: `${input.dtype} and ${output.dtype}`,
    expected: "the same dtype on both sides",
    help: "convert before or after, with a Cast in a host unit",
  };
}

function isDevice(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
