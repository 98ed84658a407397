/**
 * Captures a command list as a CUDA graph: its actions are issued once from stream 0 without executing, and one call
 * launches the graph per run. Streams fork from stream 0 and rejoin it (ops/stream-edges.ts). Signals are batches of
 * memory operations, which a graph can hold. Kernels keep the priority of their stream.
 */
import {
  CU_STREAM_CAPTURE_MODE_RELAXED,
  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
} from "../bindings/driver-api.ts";
import { type Gpu, out } from "../gpu.ts";

export interface CapturedGraph extends Disposable {
  readonly launch: () => void;
}

/**
 * `enqueue` issues the whole list. Throws what it throws, and `gpu-call-failed`. No capture is under way afterwards.
 */
export async function captureGraph(gpu: Gpu, stream: number, enqueue: () => Promise<void>): Promise<CapturedGraph> {
  gpu.call.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  let graph: number;
  try {
    await enqueue();
    graph = out((value) => gpu.call.cuStreamEndCapture(stream, value));
  } catch (error) {
    // Ends the capture and drops what it holds.
    gpu.raw.cuStreamEndCapture(stream, [0]);
    throw error;
  }
  try {
    // Without this flag all kernels, NCCL's included, get the priority of the stream that the graph is launched on.
    const flags = CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    const exec = out((value) => gpu.call.cuGraphInstantiateWithFlags(value, graph, flags));
    gpu.call.cuGraphUpload(exec, stream);
    return {
      launch: () => {
        const status = gpu.raw.cuGraphLaunch(exec, stream);
        if (status !== 0) gpu.check(status, "cuGraphLaunch");
      },
      [Symbol.dispose]: () => gpu.call.cuGraphExecDestroy(exec),
    };
  } finally {
    gpu.call.cuGraphDestroy(graph);
  }
}
