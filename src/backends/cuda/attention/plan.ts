/** An execution plan of cuDNN for a graph, from descriptors of its tensors and operations. */
import { at } from "../../../support/invariant.ts";
import { dataTypes, heuristicModes, pointwiseModes, reductionOperators } from "../bindings/cudnn-api.ts";
import { type Attribute, type Descriptors, isRefusal, type Refusal } from "./descriptors.ts";
import { type Graph, type GraphOp, type GraphTensor, type GraphType } from "./graph.ts";
import { tensorAlignment } from "./layout.ts";
import { unreachable } from "../../../support/unreachable.ts";

export interface Plan {
  readonly descriptor: number;
  readonly workspaceBytes: number;
}

const typeNumbers: { readonly [T in GraphType]: number } = {
  half: dataTypes.CUDNN_DATA_HALF,
  bfloat16: dataTypes.CUDNN_DATA_BFLOAT16,
  float: dataTypes.CUDNN_DATA_FLOAT,
  int32: dataTypes.CUDNN_DATA_INT32,
  bool: dataTypes.CUDNN_DATA_BOOLEAN,
};

/** Engine configurations that are tried: the first ones are the fastest. */
const mostConfigs = 8;

/** Returns what cuDNN refused if it has no kernel for the graph. Throws `gpu-call-failed`. */
export function buildPlan(graph: Graph, handle: number, descriptors: Descriptors): Plan | Refusal {
  const tensors = graph.tensors.map((tensor) => tensorDescriptor(tensor, descriptors));
  const of = (id: number): number => at(tensors, id - 1);
  const ops = graph.ops.map((op) => opDescriptor(op, of, descriptors));
  const whole = descriptors.attempt("CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR", "the graph", [
    ["CUDNN_ATTR_OPERATIONGRAPH_OPS", "CUDNN_TYPE_BACKEND_DESCRIPTOR", ops],
    ["CUDNN_ATTR_OPERATIONGRAPH_HANDLE", "CUDNN_TYPE_HANDLE", [handle]],
  ]);
  if (isRefusal(whole)) return whole;
  const heuristics = descriptors.attempt("CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR", "the choice of engines", [
    ["CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH", "CUDNN_TYPE_BACKEND_DESCRIPTOR", [whole]],
    ["CUDNN_ATTR_ENGINEHEUR_MODE", "CUDNN_TYPE_HEUR_MODE", [heuristicModes.CUDNN_HEUR_MODE_A]],
  ]);
  if (isRefusal(heuristics)) return heuristics;
  const configs = descriptors.descriptorsIn(
    heuristics,
    "CUDNN_ATTR_ENGINEHEUR_RESULTS",
    "CUDNN_BACKEND_ENGINECFG_DESCRIPTOR",
    mostConfigs,
  );
  let refused: Refusal = { call: "the choice of engines", status: 0, name: "no engine", text: "" };
  for (const [i, config] of configs.entries()) {
    const plan = descriptors.attempt("CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR", `the plan of engine ${i}`, [
      ["CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG", "CUDNN_TYPE_BACKEND_DESCRIPTOR", [config]],
    ]);
    if (!isRefusal(plan)) {
      const workspaceBytes = descriptors.integerIn(plan, "CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE");
      return { descriptor: plan, workspaceBytes };
    }
    refused = plan;
  }
  return refused;
}

function tensorDescriptor(tensor: GraphTensor, descriptors: Descriptors): number {
  const { id, name, type, dims, strides, memory } = tensor;
  const flags = {
    virtual: [["CUDNN_ATTR_TENSOR_IS_VIRTUAL", "CUDNN_TYPE_BOOLEAN", [1]]],
    number: [["CUDNN_ATTR_TENSOR_IS_BY_VALUE", "CUDNN_TYPE_BOOLEAN", [1]]],
    operand: [],
    scratch: [],
  } as const satisfies { readonly [K in GraphTensor["memory"]["kind"]]: readonly Attribute[] };
  return descriptors.make("CUDNN_BACKEND_TENSOR_DESCRIPTOR", `tensor ${name}`, [
    ["CUDNN_ATTR_TENSOR_DATA_TYPE", "CUDNN_TYPE_DATA_TYPE", [typeNumbers[type]]],
    ["CUDNN_ATTR_TENSOR_DIMENSIONS", "CUDNN_TYPE_INT64", dims],
    ["CUDNN_ATTR_TENSOR_STRIDES", "CUDNN_TYPE_INT64", strides],
    ["CUDNN_ATTR_TENSOR_UNIQUE_ID", "CUDNN_TYPE_INT64", [id]],
    ["CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT", "CUDNN_TYPE_INT64", [tensorAlignment]],
    ...flags[memory.kind],
  ]);
}

function opDescriptor(op: GraphOp, of: (id: number) => number, descriptors: Descriptors): number {
  const { name, inputs, to } = op;
  const result = of(to);
  const [x = 0, ...others] = inputs.map(of);
  const refer = (attribute: Attribute[0], descriptor: number): Attribute => [
    attribute,
    "CUDNN_TYPE_BACKEND_DESCRIPTOR",
    [descriptor],
  ];
  const what = `${op.kind} of ${name}`;
  switch (op.kind) {
    case "matmul": {
      const matmul = descriptors.make("CUDNN_BACKEND_MATMUL_DESCRIPTOR", what, [
        ["CUDNN_ATTR_MATMUL_COMP_TYPE", "CUDNN_TYPE_DATA_TYPE", [dataTypes.CUDNN_DATA_FLOAT]],
      ]);
      return descriptors.make("CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR", what, [
        refer("CUDNN_ATTR_OPERATION_MATMUL_ADESC", x),
        refer("CUDNN_ATTR_OPERATION_MATMUL_BDESC", at(others, 0)),
        refer("CUDNN_ATTR_OPERATION_MATMUL_CDESC", result),
        refer("CUDNN_ATTR_OPERATION_MATMUL_DESC", matmul),
      ]);
    }
    case "pointwise": {
      const [b, t] = others;
      const pointwise = descriptors.make("CUDNN_BACKEND_POINTWISE_DESCRIPTOR", what, [
        ["CUDNN_ATTR_POINTWISE_MODE", "CUDNN_TYPE_POINTWISE_MODE", [pointwiseModes[`CUDNN_POINTWISE_${op.mode}`]]],
        ["CUDNN_ATTR_POINTWISE_MATH_PREC", "CUDNN_TYPE_DATA_TYPE", [typeNumbers[op.compute]]],
        ...optional(op.axis, (axis): Attribute => ["CUDNN_ATTR_POINTWISE_AXIS", "CUDNN_TYPE_INT64", [axis]]),
      ]);
      return descriptors.make("CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR", what, [
        refer("CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR", pointwise),
        refer("CUDNN_ATTR_OPERATION_POINTWISE_XDESC", x),
        refer("CUDNN_ATTR_OPERATION_POINTWISE_YDESC", result),
        ...optional(b, (each) => refer("CUDNN_ATTR_OPERATION_POINTWISE_BDESC", each)),
        ...optional(t, (each) => refer("CUDNN_ATTR_OPERATION_POINTWISE_TDESC", each)),
        ["CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1", "CUDNN_TYPE_FLOAT", [1]],
        ["CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2", "CUDNN_TYPE_FLOAT", [1]],
      ]);
    }
    case "reduction": {
      const operator = reductionOperators[`CUDNN_REDUCE_TENSOR_${op.operator}`];
      const reduction = descriptors.make("CUDNN_BACKEND_REDUCTION_DESCRIPTOR", what, [
        ["CUDNN_ATTR_REDUCTION_COMP_TYPE", "CUDNN_TYPE_DATA_TYPE", [dataTypes.CUDNN_DATA_FLOAT]],
        ["CUDNN_ATTR_REDUCTION_OPERATOR", "CUDNN_TYPE_REDUCTION_OPERATOR_TYPE", [operator]],
      ]);
      return descriptors.make("CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR", what, [
        refer("CUDNN_ATTR_OPERATION_REDUCTION_DESC", reduction),
        refer("CUDNN_ATTR_OPERATION_REDUCTION_XDESC", x),
        refer("CUDNN_ATTR_OPERATION_REDUCTION_YDESC", result),
      ]);
    }
    case "reshape":
      return descriptors.make("CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR", what, [
        refer("CUDNN_ATTR_OPERATION_RESHAPE_XDESC", x),
        refer("CUDNN_ATTR_OPERATION_RESHAPE_YDESC", result),
      ]);
    default:
      return unreachable(op);
  }
}

function optional<T>(value: T | null | undefined, make: (value: T) => Attribute): readonly Attribute[] {
  return value === null || value === undefined ? [] : [make(value)];
}
