/**
 * The dumps of the fixtures: read, printed back, and run on the machine and on workers with the results that the oracle computes from a
 * Fusion on whole tensors, which knows nothing of the dump.
 */
import { describe, expect, it } from "vitest";
import { parse, print } from "braid";
import { normaliseDump } from "../../support/normalise-dump.ts";
import { type DumpCase, dumpText, realDumps, writtenDumps } from "./dump-cases.ts";
import { expectDumpRuns, hostsOf } from "./run-dump.ts";

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
