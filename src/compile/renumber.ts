/**
 * Parts of a host program with other numbers, in a program that has more tensors, units, streams and communications. They
 * differ in nothing else: what was lowered for one region stands for an equal one.
 */
import type { ExprId, HostUnit, Statement, StreamId, UnitId } from "../host/nodes.ts";
import { isOp } from "../host/traverse.ts";
import type { IterDomainId, Tensor, TensorId, TensorOrigin } from "../ir/domain.ts";
import { type Op, outputsOf, renamedOp } from "../ir/ops/op.ts";
import { binary, type Scalar, symbol } from "../ir/scalar/scalar.ts";
import { withAxisIds } from "../passes/edit/tensor-edit.ts";
import { at, unreachable } from "../support/invariant.ts";

export interface Numbers {
  readonly tensor: (id: TensorId) => TensorId;
  readonly axis: (id: IterDomainId) => IterDomainId;
  readonly unit: (id: UnitId) => UnitId;
  readonly stream: (id: StreamId) => StreamId;
  readonly expr: (id: ExprId) => ExprId;
  /** The number of a scalar `i<n>`. */
  readonly scalar: (number: number) => number;
  readonly origin: (origin: TensorOrigin) => TensorOrigin | undefined;
}

export function renumberedTensor({ origin, ...tensor }: Tensor, numbers: Numbers): Tensor {
  const own = origin === undefined ? undefined : numbers.origin(origin);
  return {
    ...tensor,
    id: numbers.tensor(tensor.id),
    domain: withAxisIds(tensor.domain, numbers.axis, (extent) => renumberedScalar(extent, numbers)),
    ...(own === undefined ? {} : { origin: own }),
  };
}

/** The same object where nothing changes: what differs between ranks is noted by objects. */
function renumberedScalar(scalar: Scalar, numbers: Numbers): Scalar {
  if (scalar.kind === "binary") {
    const [lhs, rhs] = [renumberedScalar(scalar.lhs, numbers), renumberedScalar(scalar.rhs, numbers)];
    return lhs === scalar.lhs && rhs === scalar.rhs ? scalar : binary(scalar.op, lhs, rhs, scalar.name);
  }
  if (scalar.kind !== "symbol" || !/^i\d+$/u.test(scalar.name)) return scalar;
  const name = `i${numbers.scalar(Number(scalar.name.slice(1)))}`;
  return name === scalar.name ? scalar : symbol(name);
}

function renumberedOp(op: Op, numbers: Numbers): Op {
  const renamed = renamedOp(op, numbers.tensor);
  if (renamed.kind !== "Slice") return renamed;
  const ranges = renamed.ranges.map((range) => ({
    ...range,
    start: renumberedScalar(range.start, numbers),
    stop: renumberedScalar(range.stop, numbers),
  }));
  return { ...renamed, ranges };
}

/** Its table has the tensors alone that its ops mention. */
export function renumberedUnit({ fusion, ...unit }: HostUnit, numbers: Numbers): HostUnit {
  const tensors: Tensor[] = [];
  for (const id of [...fusion.inputs, ...fusion.ops.flatMap((op) => [...op.inputs, ...outputsOf(op)])])
    tensors[numbers.tensor(id)] ??= renumberedTensor(at(fusion.tensors, id), numbers);
  return {
    ...unit,
    id: numbers.unit(unit.id),
    fusion: {
      ...fusion,
      tensors,
      ops: fusion.ops.map((op) => renumberedOp(op, numbers)),
      inputs: fusion.inputs.map(numbers.tensor),
      outputs: fusion.outputs.map(numbers.tensor),
    },
  };
}

export function renumberedStatement(statement: Statement, numbers: Numbers): Statement {
  const { tensor, stream, expr } = numbers;
  const all = (body: readonly Statement[]): readonly Statement[] =>
    body.map((each) => renumberedStatement(each, numbers));
  if (isOp(statement)) return renumberedOp(statement, numbers);
  switch (statement.kind) {
    case "Allocate":
    case "Deallocate":
      return { ...statement, tensor: tensor(statement.tensor) };
    case "GetCurrentStream":
    case "SetCurrentStream":
    case "Synchronize":
      return { ...statement, stream: stream(statement.stream) };
    case "ForLoop": {
      const { iterDomain: axis, body } = statement;
      return { ...statement, iterDomain: axis && { ...axis, id: numbers.axis(axis.id) }, body: all(body) };
    }
    case "IfThenElse":
      return { ...statement, then: all(statement.then), else: all(statement.else) };
    case "HirAliasSelect":
    case "ShardByStream":
      return { ...statement, input: tensor(statement.input), output: tensor(statement.output) };
    case "Communication":
    case "CollectivePermute":
      return {
        ...statement,
        id: expr(statement.id),
        input: tensor(statement.input),
        output: tensor(statement.output),
      };
    case "P2PCommunication":
      return { ...statement, id: expr(statement.id), buffer: tensor(statement.buffer) };
    case "EndCoalescing":
      return { ...statement, id: expr(statement.id) };
    case "ShareMemHandles": {
      const communications = statement.communications.map((post) => ({
        ...post,
        id: expr(post.id),
        buffer: tensor(post.buffer),
      }));
      return { ...statement, communications };
    }
    case "Wait":
      return { ...statement, target: expr(statement.target) };
    case "PostOnStream":
      return {
        ...statement,
        unit: numbers.unit(statement.unit),
        inputs: statement.inputs.map(tensor),
        outputs: statement.outputs.map(tensor),
      };
    case "LaunchKernel": {
      const inputs = statement.inputs.map((input) => (typeof input === "number" ? tensor(input) : input));
      return { ...statement, inputs, outputs: statement.outputs.map(tensor) };
    }
    case "Define":
    case "StartCoalescing":
      return statement;
    default:
      return unreachable(statement);
  }
}
