/**
 * The CUDA back end on this machine's GPUs: every kernel on one, every program on 2, 4 and 8 as far as there are so
 * many. Skipped without a GPU.
 */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { driverPrototypes } from "../../src/backends/cuda/bindings/driver-api.ts";
import { loadLibrary } from "../../src/backends/cuda/bindings/native-library.ts";
import { out } from "../../src/backends/cuda/gpu.ts";
import { startRanks } from "../../bench/harness/on-gpus.ts";

/** 0 with a printed reason where there is no driver or no GPU. */
function gpuCount(): number {
  try {
    const { functions } = loadLibrary("driver", driverPrototypes);
    const status = functions.cuInit(0);
    if (status === 0) return out((value) => functions.cuDeviceGetCount(value));
    console.log(`test/gpu is skipped: the driver does not start, CUDA error ${status}`);
  } catch (error) {
    console.log(`test/gpu is skipped: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`);
  }
  return 0;
}

const gpus = gpuCount();
if (gpus > 0 && gpus < 8)
  console.log(`test/gpu: this machine has ${gpus} of the 8 GPUs that all tests need; the rest is skipped`);

/** Ranks are processes; the self-test's parts hold the cases. */
async function selfTest(devices: number, part: string) {
  const script = path.join(import.meta.dirname, "../../scripts/gpu/self-test.ts");
  const printed: string[] = [];
  const say = (text: string): void => void printed.push(text);
  const result = await startRanks(script, devices, [part], 60_000, { out: say, err: say });
  return { ...result, printed: printed.join("") };
}

function failedRows(printed: string): readonly string[] {
  return printed.split("\n").filter((line) => /^(rank \d+: )?FAIL/.test(line));
}

describe("kernels", () => {
  it.skipIf(gpus < 1).each(["kernels", "attention"])(
    "have the oracle's results: %s",
    async (part) => {
      const { printed, statuses } = await selfTest(1, part);
      expect(failedRows(printed)).toEqual([]);
      expect(statuses).toEqual([0]);
    },
    600_000,
  );
});

const parts = {
  world: "run every program in every idiom, eager and as graphs",
  reference: "run nvFuser's multi-device tests in every idiom, eager and as graphs",
  routes: "move tensors between layouts in every idiom, eager and as graphs",
  large: "multiply and communicate at nvFuser's full size: as one GPU alone, and sampled rows as in double",
  replays: "replay a graph ten thousand times with changing inputs",
} as const;

describe.each([2, 4, 8])("%i GPUs", (devices) => {
  it.skipIf(gpus < devices).each(Object.entries(parts))(
    "%s: %s",
    async (part) => {
      const { printed, statuses } = await selfTest(devices, part);
      expect(failedRows(printed)).toEqual([]);
      expect(statuses.every((status) => status === 0)).toBe(true);
    },
    600_000,
  );
});
