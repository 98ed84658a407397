/** Memory of one GPU: the bytes held, and the message of a failed allocation. */
import { describe, expect, it } from "vitest";
import { createDeviceMemory, type MemoryCalls } from "../../../src/backends/cuda/memory/device-memory.ts";

const gib = 2 ** 30;

/** A GPU of 8 GiB that has so much free. */
function gpuWith(free: number): { readonly gpu: MemoryCalls; readonly freed: number[] } {
  const freed: number[] = [];
  let next = 0;
  let left = free;
  const gpu: MemoryCalls = {
    rank: 3,
    ordinal: 1,
    name: "NVIDIA Test",
    memoryBytes: 8 * gib,
    check: (status, call) => {
      if (status !== 0) throw new Error(`${call}: ${status}`);
    },
    raw: {
      cuMemAlloc_v2: (address, bytes) => {
        if (bytes === 13) return 719;
        if (bytes > left) return 2;
        left -= bytes;
        next += 256;
        address[0] = next;
        return 0;
      },
    },
    call: {
      cuMemFree_v2: (address) => void freed.push(address),
      cuMemGetInfo_v2: (value) => {
        value[0] = left;
      },
    },
  };
  return { gpu, freed };
}

describe("device memory", () => {
  it("says what was asked for what, what Braid holds and what is free", () => {
    const memory = createDeviceMemory(gpuWith(4 * gib).gpu);
    memory.allocate(3 * gib, "peers' buffers");
    expect(() => memory.allocate(2.5 * gib, "workspaces of matmul")).toThrow(
      "error[gpu-memory]: rank 3 has too little GPU memory for workspaces of matmul\n  at: prepare(program)\n",
    );
    expect(() => memory.allocate(2.5 * gib, "workspaces of matmul")).toThrow(
      [
        "  found: 2.50 GiB requested, 3.00 GiB held by Braid, 1.00 GiB free of 8.00 GiB on GPU 1 (NVIDIA Test)",
        "  expected: 2.50 GiB free",
      ].join("\n"),
    );
    expect(memory.held()).toBe(3 * gib);
  });

  it("gives back what it held, and asks for nothing where there is nothing to hold", () => {
    const { gpu, freed } = gpuWith(gib);
    const memory = createDeviceMemory(gpu);
    {
      using block = memory.allocate(512, "slots");
      expect([block.address, memory.held()]).toEqual([256, 512]);
      using none = memory.allocate(0, "nothing");
      expect([none.address, memory.held()]).toEqual([0, 512]);
    }
    expect([freed, memory.held()]).toEqual([[256], 0]);
  });

  it("hands every other status on", () => {
    expect(() => createDeviceMemory(gpuWith(gib).gpu).allocate(13, "slots")).toThrow("cuMemAlloc: 719");
  });
});
