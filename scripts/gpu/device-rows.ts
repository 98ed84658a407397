/** Reports libraries and their files, and the device. */
import { libraries } from "../../bench/harness/libraries.ts";
import { type PartContext, type Row, rowOf } from "../../bench/harness/rows.ts";
import { attentionObstacle } from "../../src/backends/cuda/attention/availability.ts";
import { driverPrototypes } from "../../src/backends/cuda/bindings/driver-api.ts";
import { loadLibrary } from "../../src/backends/cuda/bindings/native-library.ts";
import { openGpu, out } from "../../src/backends/cuda/gpu.ts";

export async function* deviceRows({ world }: PartContext): AsyncGenerator<Row> {
  yield await rowOf("driver", () => loadLibrary("driver", driverPrototypes).file);
  yield await rowOf("GPU", () => {
    const gpu = openGpu(world.rank, world.localRank);
    const free = out((value) => gpu.call.cuMemGetInfo_v2(value, [0]));
    return `${gpu.name}, sm_${gpu.capability}, ${gpu.smCount} SMs, driver API ${gpu.driverVersion}, ${(free / 2 ** 30).toFixed(1)} of ${(gpu.memoryBytes / 2 ** 30).toFixed(1)} GiB free`;
  });
  for (const [name, load] of Object.entries(libraries)) {
    yield await rowOf(name, () => {
      // A machine without cuDNN runs attention as matmuls and a softmax.
      const obstacle = name === "cudnn" ? attentionObstacle(world.localRank) : null;
      if (obstacle !== null) return obstacle;
      const { version, file } = load();
      return `${version}, ${file}`;
    });
  }
}
