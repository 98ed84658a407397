/** Reports libraries and their files, the device, and a round trip of signals through peer memory. */
import { attentionObstacle } from "../../src/backends/cuda/attention/availability.ts";
import { cublasLtPrototypes } from "../../src/backends/cuda/bindings/cublaslt-api.ts";
import { cudnnPrototypes } from "../../src/backends/cuda/bindings/cudnn-api.ts";
import { driverPrototypes } from "../../src/backends/cuda/bindings/driver-api.ts";
import { loadLibrary } from "../../src/backends/cuda/bindings/native-library.ts";
import { ncclPrototypes } from "../../src/backends/cuda/bindings/nccl-api.ts";
import { nvrtcPrototypes } from "../../src/backends/cuda/bindings/nvrtc-api.ts";
import { openGpu, out } from "../../src/backends/cuda/gpu.ts";
import { type PartContext, type Row, rowOf } from "./rows.ts";

export async function* deviceRows({ world }: PartContext): AsyncGenerator<Row> {
  yield await rowOf("driver", () => loadLibrary("driver", driverPrototypes).file);
  yield await rowOf("GPU", () => {
    const gpu = openGpu(world.rank, world.localRank);
    const free = out((value) => gpu.call.cuMemGetInfo_v2(value, [0]));
    return `${gpu.name}, sm_${gpu.capability}, ${gpu.smCount} SMs, driver API ${gpu.driverVersion}, ${(free / 2 ** 30).toFixed(1)} of ${(gpu.memoryBytes / 2 ** 30).toFixed(1)} GiB free`;
  });
  yield await rowOf("NVRTC", () => {
    const { file, functions } = loadLibrary("nvrtc", nvrtcPrototypes);
    const minor: [number] = [0];
    const major = out((value) => functions.nvrtcVersion(value, minor));
    return `${major}.${minor[0]}, ${file}`;
  });
  yield await rowOf("cuBLASLt", () => {
    const { file, functions } = loadLibrary("cublasLt", cublasLtPrototypes);
    return `${functions.cublasLtGetVersion()}, ${file}`;
  });
  // A machine without it runs attention as matmuls and a softmax.
  yield await rowOf("cuDNN", () => {
    const obstacle = attentionObstacle(world.localRank);
    if (obstacle !== null) return obstacle;
    const { file, functions } = loadLibrary("cudnn", cudnnPrototypes);
    return `${functions.cudnnGetVersion()}, ${file}`;
  });
  yield await rowOf("NCCL", () => {
    const { file, functions } = loadLibrary("nccl", ncclPrototypes);
    return `${out((value) => functions.ncclGetVersion(value))}, ${file}`;
  });
}
