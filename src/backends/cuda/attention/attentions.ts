/**
 * Attention by cuDNN, as calls with their arguments bound. A plan is built once per layout, dtype, mask and scale, and
 * shared by all Programs; a launch has its own pack of addresses. Each stream has a handle, which is bound to it.
 */
import type { AttentionKernel } from "../../../commands/attention.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { callFailed } from "../bindings/call-error.ts";
import { cudnnPrototypes } from "../bindings/cudnn-api.ts";
import type { Out } from "../bindings/driver-api.ts";
import { loadLibrary } from "../bindings/native-library.ts";
import { nvrtcPrototypes } from "../bindings/nvrtc-api.ts";
import type { Gpu } from "../gpu.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";
import { createResources, type Resources } from "../resources.ts";
import { createDescriptors, isRefusal, lastError, type Refusal } from "./descriptors.ts";
import type { DeviceAttention } from "../ops/device-op.ts";
import { type GraphTensor, scratchPlaces } from "./graph.ts";
import { buildPlan, type Plan } from "./plan.ts";

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

function refused({ kind, causal, inputs }: AttentionKernel, { call, status, name, text }: Refusal): never {
  const shapes = inputs.map(
    ({ dtype, shape, strides }) => `${dtype} [${shape.join(", ")}] strides ${strides.join(", ")}`,
  );
  return fail({
    code: "kernel-opaque",
    message: `cuDNN has no kernel for this ${kind}`,
    found: `${name} (${status}) from ${call}${text === "" ? "" : `: ${text}`}`,
    expected: "an engine of cuDNN that takes the operands",
    help: "lower the program with --schedule attention=ops",
    notes: [`causal ${causal ?? "no"}; operands ${shapes.join("; ")}`],
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
