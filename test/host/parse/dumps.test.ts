/**
 * The dumps of the fixtures: read, printed back, and run on the machine and on workers with the results that the oracle
 * computes from a Fusion on whole tensors, which knows nothing of the dump.
 */
import { describe, expect, it } from "vitest";
import { compile, Fusion, matmul, parse, print, sum } from "@braid-compiler/braid";
import { normaliseDump } from "../../support/normalise-dump.ts";
import { type DumpCase, dumpText, realDumps, undefinedDump, writtenDumps } from "./dump-cases.ts";
import { expectDumpRuns, hostsOf } from "./run-dump.ts";

/** A dump with one spelling of each name, and without a line break that nvFuser prints by mistake. */
function bare(text: string): string {
  return text
    .replaceAll(/\n\)$/gmu, ")")
    .replaceAll(/[Ss]tream(?:Idx)?(?=\d|\b(?! [\d(]))/gu, "streamIdx")
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .trim();
}

function containerOf(text: string): string | undefined {
  return text.split("\n\nIndex definitions:")[0];
}

describe.each(realDumps)("$file", ({ file, style }) => {
  it("prints back the same text, but for numbers inside the compiler", () => {
    const text = dumpText(file);
    const printed = normaliseDump(bare(print(parse(text, { file }), { style })));
    const dump = normaliseDump(bare(text));
    expect(printed.text).toBe(dump.text);
    expect([...dump.definitions]).toEqual(expect.arrayContaining([...printed.definitions]));
  });

  it("keeps the numbers too", () => {
    const text = dumpText(file);
    expect(containerOf(bare(print(parse(text), { style })))).toBe(containerOf(bare(text)));
  });
});

describe(undefinedDump, () => {
  const text = dumpText(undefinedDump);

  it("is refused, by the name that it does not define", () => {
    expect(() => parse(text)).toThrow("i84 is used in a slice index, and the dump does not define it");
  });

  it("reads with the definitions, is verified, and prints back the same text", () => {
    const definitions = ["i84 = i82 % 8;", "i82 = rank + streamIdx;", "i107 = i105 % 8;", "i105 = rank + streamIdx;"];
    const sendPeer = ["i90 = i88 % 8;", "i88 = 8 + i86;", "i86 = rank - streamIdx;"];
    const lines = [...definitions, ...sendPeer].map((line) => `  ${line}`).join("\n");
    const host = parse(`${text}\nIndex definitions:\n${lines}\n`);
    expect(
      compile(
        Array.from({ length: 8 }, () => host),
        { devices: 8 },
      ).report.findings,
    ).toEqual([]);
    const printed = print(host);
    expect(containerOf(bare(printed))).toBe(bare(text));
    const defined = printed.split("Index definitions:\n")[1]?.trimEnd().split("\n");
    expect(defined?.toSorted()).toEqual(lines.split("\n").toSorted());
  });
});

describe("forms of which the fixtures hold written dumps", () => {
  const printed = (file: string, style: DumpCase["style"]): string => print(parse(dumpText(file)), { style });

  it("call style is the style of 2025 in other verbs", () => {
    expect(printed("written/call-style.hir", "2025-05")).toBe(printed("e2-allgather.hir", "2025-05"));
    const addresses = (text: string): string => text.replaceAll(/0x[0-9a-f]+/gu, "0x").trim();
    expect(addresses(printed("written/call-style.hir", "2026-01"))).toBe(addresses(dumpText("written/call-style.hir")));
  });

  it("groups without a number take the one that is waited for", () => {
    expect(printed("written/unnumbered-coalescing.hir", "2025-05")).toBe(
      printed("e2b-allgather-p2p-nccl.hir", "2025-05"),
    );
  });

  it("output of a launcher around and between changes nothing", () => {
    expect(printed("written/launcher-log.txt", "2025-05")).toBe(printed("e2-allreduce.hir", "2025-05"));
  });
});

describe("axes of devices that print first", () => {
  it("keep their place if the next axis has the same extent", async () => {
    const dump = realDumps.find(({ file }) => file === "e2-matmul-allreduce.hir");
    if (dump === undefined) throw new Error("the dump is among the fixtures");
    const reference = (): Fusion => {
      const f = new Fusion();
      f.output(sum(matmul(f.input([8, 8, 2, 5]), f.input([8, 5, 4])), [1]));
      return f;
    };
    await expectDumpRuns({ ...dump, reference });
  });
});

describe.each([...realDumps, ...writtenDumps])("$file runs", (dump) => {
  const { devices, sizes } = dump;
  const hosts = hostsOf(dump);

  it("as many devices as its meshes name", () => {
    expect(hosts).toHaveLength(devices);
  });

  // Where a dump leaves no size open: dumps-full-size.long.test.ts.
  if (Object.keys(sizes).length > 0) {
    it("with 1 and 3 streams, and computes what the Fusion does", async () => {
      await expectDumpRuns(dump);
    });
  }

  it("needs no other sizes than those of its inputs", () => {
    const [host] = hosts;
    const names = host?.inputs.flatMap((id) =>
      (host.tensors[id]?.domain.logical ?? []).flatMap(({ extent }) => (extent.kind === "symbol" ? [extent.name] : [])),
    );
    expect(Object.keys(sizes).filter((name) => names?.includes(name) !== true)).toEqual([]);
  });
});
