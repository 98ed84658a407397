/**
 * A list as a CUDA graph: captured from stream 0 by running its actions once without executing them, launched with one call per run. Streams fork from stream 0 and
 * rejoin it (stream-edges.ts), signals are batches that a graph holds as they are, kernels keep the priority of their stream.
 */
import {
  CU_STREAM_CAPTURE_MODE_RELAXED,
  CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
} from "../bindings/driver-api.ts";
import { type Gpu, out } from "../gpu.ts";

export interface CapturedGraph extends Disposable {
  readonly launch: () => void;
}

/** `enqueue` issues the whole list. Throws what it throws, and `gpu-call-failed`; no capture is under way then. */
export async function captureGraph(gpu: Gpu, stream: number, enqueue: () => Promise<void>): Promise<CapturedGraph> {
  gpu.call.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
  let graph: number;
  try {
    await enqueue();
    graph = out((value) => gpu.call.cuStreamEndCapture(stream, value));
  } catch (error) {
    // Ends the capture; what it holds by then is given up.
    gpu.raw.cuStreamEndCapture(stream, [0]);
    throw error;
  }
  try {
    // Or all kernels get the priority of the stream that the graph is launched on, NCCL's too.
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
