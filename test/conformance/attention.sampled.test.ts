/** Attention on devices and in loops: the oracle's results, dumps, and what it communicates. */
import { describe, expect, it } from "vitest";
import {
  compile,
  type CompileOptions,
  DeviceMesh,
  type DType,
  Fusion,
  gradients,
  lower,
  relu,
  sdpa,
  type SdpaOptions,
  set,
  splitBackward,
  type TensorView,
} from "@braid-compiler/braid";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { expectRoundTrip } from "../support/round-trip.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";

interface Attention {
  readonly q: TensorView;
  readonly k: TensorView;
  readonly v: TensorView;
  readonly output: TensorView;
  readonly logsumexp: TensorView;
}

interface Form extends SdpaOptions {
  readonly q?: readonly number[];
  readonly k?: readonly number[];
  readonly dtype?: DType;
  readonly backward?: boolean;
  /** The shape of what is added to the scores. */
  readonly mask?: readonly number[];
}

/** Forward, or forward and backward, with the tensors placed by `place`. */
function program(place: (tensors: Attention) => void, form: Form = {}): Fusion {
  const {
    q: shape = [2, 4, 2, 6, 4],
    k: keys = [2, 4, 1, 6, 4],
    dtype = "float",
    backward = false,
    mask,
    ...rest
  } = form;
  const f = new Fusion();
  const [q, k, v] = [f.input(shape, dtype), f.input(keys, dtype), f.input(keys, dtype)];
  const options = { ...rest, ...(mask === undefined ? {} : { mask: f.input(mask, dtype) }) };
  const { output, logsumexp } = sdpa(q, k, v, options);
  f.output(relu(output));
  f.output(logsumexp);
  place({ q, k, v, output, logsumexp });
  if (backward) {
    const g = f.input(shape, dtype);
    for (const gradient of gradients(f, { of: [output], cotangents: [g], wrt: [q, k, v] })) {
      if (gradient !== null) f.output(gradient);
    }
    if (q.mesh !== null) g.setDeviceMesh(q.mesh);
    if (q.mesh !== null) g.outerSplit(1, q.mesh.devices.length).parallelize("DIDx");
  }
  return f;
}

function byHeads({ q, k, v }: Attention, devices: number): void {
  for (const tensor of [q, k, v]) {
    tensor.setDeviceMesh(DeviceMesh.range(devices)).outerSplit(1, devices).parallelize("DIDx");
  }
}

async function check(f: Fusion, devices: number): Promise<void> {
  expectRoundTrip(lower(f, { rank: 0 }), [{ rank: 0 }]);
  await expectOracle(f, { devices, machineAlone: true, rounds: true });
}

it("prints in nvFuser's form", () => {
  const f = program(() => {}, { causal: "topLeft", scale: 0.25 });
  const text = lower(f).body.map(({ kind }) => kind);
  expect(text).toContain("Sdpa");
});

describe("heads over devices", () => {
  it.each(sample(combinations({ devices: [2, 4], backward: [false, true] }), 3))(
    "on $devices devices, with backward: $backward, communicate nothing",
    async ({ devices, backward }) => {
      const f = program(
        (tensors) => {
          byHeads(tensors, devices);
        },
        { causal: "topLeft", backward },
      );
      expect(collectivesOf(f, devices)).toBe("");
      await check(f, devices);
    },
  );

  it("that do not divide", async () => {
    const f = program((tensors) => {
      byHeads(tensors, 3);
    });
    expect(collectivesOf(f, 3)).toBe("");
    await check(f, 3);
  });

  it("with a window communicate nothing", async () => {
    const f = program(
      (tensors) => {
        byHeads(tensors, 2);
      },
      { causal: "topLeft", window: 4, backward: true },
    );
    expect(collectivesOf(f, 2)).toBe("");
    await check(f, 2);
  });

  it.each([[[2, 4, 1, 6, 6]], [[6, 6]], [[2, 1, 1, 1, 6]]])("with a mask %o communicate nothing", async (mask) => {
    const f = program(
      (tensors) => {
        byHeads(tensors, 2);
      },
      { causal: "topLeft", mask, backward: true },
    );
    expect(collectivesOf(f, 2)).toBe("");
    await check(f, 2);
  });

  it("of bfloat16", async () => {
    const f = program(
      (tensors) => {
        byHeads(tensors, 2);
      },
      { dtype: "bfloat16", backward: true },
    );
    await check(f, 2);
  });

  it("with keys that every device needs, which are gathered", async () => {
    const f = program(({ q, k, v }) => {
      for (const tensor of [q, k, v]) {
        tensor.setDeviceMesh(DeviceMesh.range(2)).outerSplit(3, 2).parallelize("DIDx");
      }
    });
    expect(collectivesOf(f, 2)).not.toBe("");
    await check(f, 2);
  });
});

describe("further outputs", () => {
  it("that the user places elsewhere are moved by a Set", async () => {
    const f = program((tensors) => {
      byHeads(tensors, 2);
      tensors.logsumexp.setDeviceMesh(DeviceMesh.range(2));
    });
    expect(collectivesOf(f, 2)).toContain("Allgather");
    await check(f, 2);
  });

  it("keep the op alive alone", async () => {
    const f = new Fusion();
    const [q, k, v] = [f.input([3, 4]), f.input([5, 4]), f.input([5, 2])];
    f.output(set(sdpa(q, k, v).logsumexp));
    await check(f, 1);
  });
});

describe("loops", () => {
  it.each([0, 1])("over chunks of axis %i", async (axis) => {
    const f = program(
      ({ q, k, v, output }) => {
        for (const tensor of [q, k, v]) tensor.setDeviceMesh(DeviceMesh.range(1));
        output.setDeviceMesh(DeviceMesh.range(1)).outerSplit(axis, 2).parallelize("Stream");
      },
      { causal: "bottomRight" },
    );
    expect(lower(f).body.some(({ kind }) => kind === "ForLoop")).toBe(true);
    await check(f, 1);
  });

  it("over all indices of an axis", async () => {
    const f = program(({ output }) => {
      output.axis(1).parallelize("Stream");
    });
    await check(f, 1);
  });

  it("over chunks of rows, without a mask", async () => {
    const f = program(({ output }) => {
      output.outerSplit(3, 4).parallelize("Stream");
    });
    await check(f, 1);
  });
});

it("runs in parts on worker threads, with the same bits", async () => {
  const f = program(
    (tensors) => {
      byHeads(tensors, 2);
    },
    { q: [1, 6, 2, 40, 16], k: [1, 6, 1, 40, 16], causal: "topLeft", backward: true },
  );
  await expectOracle(f, { devices: 2, rounds: true });
});

it("saves the output and the statistics of the rows for a backward pass apart", () => {
  const f = new Fusion();
  const [q, k, v] = [f.input([3, 4]), f.input([5, 4]), f.input([5, 2])];
  const { output, logsumexp } = sdpa(q, k, v);
  f.output(relu(output));
  const request = { of: [output], cotangents: [f.input([3, 2])], wrt: [q, k, v] };
  for (const policy of ["all", "minimal"] as const) {
    const { saved, forward, backward } = splitBackward(f, request, policy);
    expect(saved.map(({ forward: { id } }) => id).toSorted((a, b) => a - b)).toEqual([output.id, logsumexp.id]);
    expect(lower(forward).body.map(({ kind }) => kind)).toContain("Sdpa");
    expect(lower(backward).body.map(({ kind }) => kind)).toContain("SdpaBackward");
  }
});

it("is ops on GPUs, which have no kernel for it", () => {
  const f = program(() => {}, { causal: "topLeft", backward: true });
  const kinds = (options: Omit<CompileOptions, "devices">): readonly string[] =>
    compile(f, { devices: 1, ...options }).hosts.flatMap(({ body }) => body.map(({ kind }) => kind));
  expect(kinds({ on: "cpu" })).toContain("SdpaBackward");
  expect(kinds({ on: "cuda" }).filter((kind) => kind.startsWith("Sdpa"))).toEqual([]);
  expect(kinds({ on: "cuda", attention: "fused" })).toContain("Sdpa");
});

describe("as ops", () => {
  const forms: readonly Form[] = [
    { causal: "topLeft", backward: true },
    { causal: "bottomRight", q: [2, 4, 9, 4], k: [2, 4, 5, 4], scale: -0.3 },
    { causal: "bottomRight", q: [2, 4, 3, 4], k: [2, 4, 5, 4] },
    { dtype: "bfloat16", backward: true },
    { dtype: "double", causal: "topLeft" },
    { causal: "topLeft", window: 3, backward: true },
    { causal: "bottomRight", window: 2, q: [2, 4, 3, 4], k: [2, 4, 5, 4], backward: true },
  ];

  it.each(sample(forms, 6))("%o", async (form) => {
    const f = program((tensors) => {
      byHeads(tensors, 2);
    }, form);
    const kinds = lower(f, { attention: "ops" }).body.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind.startsWith("Sdpa"))).toEqual([]);
    expect(kinds).toContain("Matmul");
    await expectOracle(f, { devices: 2, machineAlone: true, rounds: true, attention: "ops" });
  });

  it("with symbolic sizes, and a scale that is known at run time", async () => {
    const f = new Fusion();
    const q = f.input([null, null]);
    const k = f.input([null, q.axis(1)]);
    const v = f.input([k.axis(0), 3]);
    f.output(sdpa(q, k, v, { causal: "bottomRight" }).output);
    const sizes = new Map([
      ["i0", 4],
      ["i2", 3],
      ["i3", 6],
    ]);
    for (const attention of ["fused", "ops"] as const) {
      await expectOracle(f, { devices: 1, machineAlone: true, rounds: true, attention, sizes });
    }
  });

  it("with dropout, whose bits no sharding changes", async () => {
    const f = new Fusion();
    const [q, k, v] = [f.input([4, 5, 4]), f.input([4, 5, 4]), f.input([4, 5, 4])];
    const seed = f.input([], "int64");
    const { output } = sdpa(q, k, v, { causal: "topLeft", dropout: { p: 0.25, seed } });
    f.output(output);
    for (const tensor of [q, k, v]) tensor.setDeviceMesh(DeviceMesh.range(2)).outerSplit(0, 2).parallelize("DIDx");
    expect(lower(f).body.map(({ kind }) => kind)).not.toContain("Sdpa");
    await expectOracle(f, { devices: 2, machineAlone: true, rounds: true });
  });
});
