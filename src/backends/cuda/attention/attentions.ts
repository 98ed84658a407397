/**
 * Attention by cuDNN, as calls with their arguments bound. A plan is built once per layout, dtype, mask and scale, and
 * shared by all Programs; a launch has its own pack of addresses. Each stream has a handle, which is bound to it.
 */
import type { AttentionKernel } from "../../../commands/attention.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { at, unreachable } from "../../../support/invariant.ts";
import { callFailed } from "../bindings/call-error.ts";
import {
  cudnnPrototypes,
  dataTypes,
  heuristicModes,
  pointwiseModes,
  reductionOperators,
} from "../bindings/cudnn-api.ts";
import type { Out } from "../bindings/driver-api.ts";
import { loadLibrary } from "../bindings/native-library.ts";
import { nvrtcPrototypes } from "../bindings/nvrtc-api.ts";
import type { Gpu } from "../gpu.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";
import type { DeviceAttention } from "../ops/device-op.ts";
import { createResources, type Resources } from "../resources.ts";
import {
  type DescriptorAttribute,
  createDescriptors,
  type Descriptors,
  isRefusal,
  lastError,
  type Refusal,
} from "./descriptors.ts";
import { type CudnnGraph, type GraphOp, type GraphTensor, type GraphType, scratchPlaces } from "./graph.ts";
import { cudnnAlignment } from "./layout.ts";

export interface PlannedAttention {
  readonly workspaceBytes: number;
  /** A run of the returned call allocates nothing. `resources` owns the pack of addresses. */
  readonly bind: (places: AttentionPlaces, resources: Resources) => () => void;
}

export interface AttentionPlaces {
  /** Of the operands, inputs first, or of their copies. */
  readonly operands: readonly number[];
  readonly scratch: number;
  readonly workspace: number;
}

export interface Attentions extends Disposable {
  /** Throws `kernel-opaque` if cuDNN has no kernel for it, and `gpu-call-failed`. */
  readonly plan: (attention: DeviceAttention, stream: number) => PlannedAttention;
}

/** Loads the library. Throws `backend-unavailable`, `gpu-call-failed`. */
export function createAttentions({ rank }: Gpu, blocks: HostBlocks): Attentions {
  // cuDNN asks the loader for NVRTC by name when it compiles a kernel: one that is loaded already is found.
  loadLibrary("nvrtc", nvrtcPrototypes);
  const { functions: raw } = loadLibrary("cudnn", cudnnPrototypes);
  const handles = new Map<number, number>();
  const resources = createResources();
  resources.defer(() => {
    for (const handle of handles.values()) raw.cudnnDestroy(handle);
  });
  const descriptors = resources.own(createDescriptors(raw, rank));
  const failed = (call: string, status: number): never =>
    callFailed({ rank, call, status, name: raw.cudnnGetErrorString(status), text: lastError(raw) });
  const check = (call: string, status: number): void => {
    if (status !== 0) failed(call, status);
  };
  const handleOf = (stream: number): number => {
    const known = handles.get(stream);
    if (known !== undefined) return known;
    const made: Out = [0];
    check("cudnnCreate", raw.cudnnCreate(made));
    const handle = Number(made[0]);
    handles.set(stream, handle);
    check("cudnnSetStream", raw.cudnnSetStream(handle, stream));
    return handle;
  };
  const numberAt = numbersIn(blocks);
  const plans = new Map<string, Plan>();
  const planOf = ({ kernel, graph }: DeviceAttention, stream: number): Plan => {
    const key = JSON.stringify(graph);
    const known = plans.get(key);
    if (known !== undefined) return known;
    const plan = buildPlan(graph, handleOf(stream), descriptors);
    if (isRefusal(plan)) refused(kernel, plan);
    plans.set(key, plan);
    return plan;
  };

  return {
    plan: (attention, stream) => {
      const plan = planOf(attention, stream);
      const { kernel, graph } = attention;
      return {
        workspaceBytes: plan.workspaceBytes,
        bind: ({ operands, scratch, workspace }, owner) => {
          const places = scratchPlaces(graph);
          const address = ({ id, type, memory }: GraphTensor): number => {
            if (memory.kind === "operand") return at(operands, memory.position);
            if (memory.kind === "number")
              return numberAt(type, memory.value === "-infinity" ? -Infinity : memory.value);
            return scratch + (places.get(id) ?? 0);
          };
          const given = graph.tensors.filter(({ memory }) => memory.kind !== "virtual");
          const pack = owner
            .own(createDescriptors(raw, rank))
            .make("CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR", "the pack", [
              ["CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS", "CUDNN_TYPE_INT64", given.map(({ id }) => id)],
              ["CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS", "CUDNN_TYPE_VOID_PTR", given.map(address)],
              ["CUDNN_ATTR_VARIANT_PACK_WORKSPACE", "CUDNN_TYPE_VOID_PTR", [workspace]],
            ]);
          const handle = handleOf(stream);
          return () => {
            const status = raw.cudnnBackendExecute(handle, plan.descriptor, pack);
            if (status !== 0) failed(`cudnnBackendExecute(${kernel.kind})`, status);
          };
        },
      };
    },
    [Symbol.dispose]: () => resources[Symbol.dispose](),
  };
}

function refused({ kind, causal, window, inputs }: AttentionKernel, { call, status, name, text }: Refusal): never {
  const shapes = inputs.map(
    ({ dtype, shape, strides }) => `${dtype} [${shape.join(", ")}] strides ${strides.join(", ")}`,
  );
  return fail("kernel-opaque", `cuDNN has no kernel for this ${kind}`, {
    found: `${name} (${status}) from ${call}${text === "" ? "" : `: ${text}`}`,
    expected: "an engine of cuDNN that takes the operands",
    help: "lower the program with --schedule attention=ops",
    notes: [`causal ${causal ?? "no"}${window === null ? "" : `; window ${window}`}; operands ${shapes.join("; ")}`],
  });
}

/** Host memory that holds a number, one place per number. */
function numbersIn(blocks: HostBlocks): (type: GraphTensor["type"], value: number) => number {
  const known = new Map<string, number>();
  return (type, value) => {
    const key = `${type} ${value}`;
    const place = known.get(key);
    if (place !== undefined) return place;
    const { address, view } = blocks.take(4);
    if (type === "int32") view.setInt32(0, value, true);
    else view.setFloat32(0, value, true);
    known.set(key, address);
    return address;
  };
}

// An execution plan of cuDNN for a graph, from descriptors of its tensors and operations.

interface Plan {
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
function buildPlan(graph: CudnnGraph, handle: number, descriptors: Descriptors): Plan | Refusal {
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
  } as const satisfies { readonly [K in GraphTensor["memory"]["kind"]]: readonly DescriptorAttribute[] };
  return descriptors.make("CUDNN_BACKEND_TENSOR_DESCRIPTOR", `tensor ${name}`, [
    ["CUDNN_ATTR_TENSOR_DATA_TYPE", "CUDNN_TYPE_DATA_TYPE", [typeNumbers[type]]],
    ["CUDNN_ATTR_TENSOR_DIMENSIONS", "CUDNN_TYPE_INT64", dims],
    ["CUDNN_ATTR_TENSOR_STRIDES", "CUDNN_TYPE_INT64", strides],
    ["CUDNN_ATTR_TENSOR_UNIQUE_ID", "CUDNN_TYPE_INT64", [id]],
    ["CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT", "CUDNN_TYPE_INT64", [cudnnAlignment]],
    ...flags[memory.kind],
  ]);
}

function opDescriptor(op: GraphOp, of: (id: number) => number, descriptors: Descriptors): number {
  const { name, inputs, to } = op;
  const result = of(to);
  const [x = 0, ...others] = inputs.map(of);
  const refer = (attribute: DescriptorAttribute[0], descriptor: number): DescriptorAttribute => [
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
        ...optional(op.axis, (axis): DescriptorAttribute => ["CUDNN_ATTR_POINTWISE_AXIS", "CUDNN_TYPE_INT64", [axis]]),
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

function optional<T>(
  value: T | null | undefined,
  make: (value: T) => DescriptorAttribute,
): readonly DescriptorAttribute[] {
  return value === null || value === undefined ? [] : [make(value)];
}
