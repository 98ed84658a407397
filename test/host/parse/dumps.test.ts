/**
 * The dumps of the fixtures: read, printed back, and run on the machine and on workers with the results that the oracle computes from a
 * Fusion on whole tensors, which knows nothing of the dump.
 */
import { describe, expect, it } from "vitest";
import { MultiDeviceExecutor, parse, parseContainers, print, type Tensor } from "braid";
import { shapeOf } from "../../../src/ir/sizes.ts";
import { rankContainers } from "../../../src/host/parse/rank-containers.ts";
import { compare } from "../../../src/oracle/compare.ts";
import { evaluateFusion } from "../../../src/oracle/evaluate.ts";
import { randomInputs } from "../../../src/oracle/random-inputs.ts";
import { createRandom } from "../../../src/support/random.ts";
import { cpuBackends } from "../../support/cpu-backends.ts";
import { normaliseDump } from "../../support/normalise-dump.ts";
import { type DumpCase, dumpText, realDumps, writtenDumps } from "./dump-cases.ts";

/** The parts of a dump that no style changes: without numbers of communications, and with one spelling of each name. */
function bare(text: string): string {
  return text
    .replaceAll(/[Ss]tream(?:Idx)?(?=\d|\b(?! [\d(]))/gu, "streamIdx")
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .trim();
}

describe.each(realDumps)("$file", ({ file, style }) => {
  it("prints back the same text, but for numbers inside the compiler", () => {
    const text = dumpText(file);
    const printed = normaliseDump(print(parse(text, { file }), { style }));
    expect(printed.text).toBe(normaliseDump(text).text);
    expect([...normaliseDump(text).definitions]).toEqual(expect.arrayContaining([...printed.definitions]));
  });

  it("keeps the numbers too", () => {
    const text = dumpText(file);
    const [container] = bare(text).split("\n\nIndex definitions:");
    const [printed] = bare(print(parse(text), { style })).split("\n\nIndex definitions:");
    expect(printed).toBe(container);
  });
});

describe("forms of which the fixtures hold written dumps", () => {
  const printed = (file: string, style: DumpCase["style"]): string => print(parse(dumpText(file)), { style });

  it("call style is the style of 2025 in other verbs", () => {
    expect(printed("written/call-style.hir", "2025-05")).toBe(printed("e2-allgather.hir", "2025-05"));
  });

  it("groups without a number take the one that is waited for", () => {
    expect(printed("written/unnumbered-coalescing.hir", "2025-05")).toBe(
      printed("e2b-allgather-p2p-nccl.hir", "2025-05"),
    );
  });

  it("output of a launcher around and between changes nothing", () => {
    expect(printed("written/launcher-log.txt", "2025-05")).toBe(printed("e2-allreduce.hir", "2025-05"));
  });

  it("drafts differ from 2025-04 in names and in the op that slices", () => {
    const draft = printed("written/draft-select.hir", "2025-04");
    expect(draft.replaceAll("i83", "StreamIdx").replaceAll("select(", "HirAliasSelect(")).toBe(
      printed("e1-single-set.hir", "2025-04"),
    );
  });
});

describe.each([...realDumps, ...writtenDumps])("$file runs", ({ file, devices, sizes, reference }) => {
  const containers = rankContainers(parseContainers(dumpText(file)), { file, devices: null, container: null });
  const hosts = containers.map(({ program }) => program);

  it("as many devices as its meshes name", () => {
    expect(hosts).toHaveLength(devices);
  });

  it("with 1 and 3 streams, and computes what the Fusion does", async () => {
    const data = reference().data();
    const shapes = data.inputs.map((id) => {
      const tensor = data.tensors[id];
      if (tensor === undefined) throw new Error("an input without a tensor");
      return { dtype: tensor.dtype, shape: shapeOf(tensor, new Map()) };
    });
    const inputs = randomInputs(shapes, createRandom(7), "uniform");
    const { outputs, bounds } = evaluateFusion(data, inputs);
    const [expected] = outputs;
    if (expected === undefined) throw new Error("one output");
    for (const [on, streams] of cpuBackends.flatMap((backend) => [1, 3].map((count) => [backend, count] as const))) {
      const executor = await MultiDeviceExecutor.create(hosts, { devices, on, streams });
      try {
        const [result] = (await executor.run(inputs)) as Tensor[];
        if (result === undefined) throw new Error("one output");
        expect(result.shape).toEqual(expected.shape);
        const comparison = compare(result, expected, bounds[0] ?? new Float64Array());
        expect(comparison.firstBad, JSON.stringify(comparison)).toBeNull();
      } finally {
        await executor.close();
      }
    }
  }, 120_000);

  it("needs no other sizes than those of its inputs", () => {
    const [host] = hosts;
    const names = host?.inputs.flatMap((id) =>
      (host.tensors[id]?.domain.logical ?? []).flatMap(({ extent }) => (extent.kind === "symbol" ? [extent.name] : [])),
    );
    expect(Object.keys(sizes).filter((name) => names?.includes(name) !== true)).toEqual([]);
  });
});
