/** Edits of host programs, carried to other sizes. */
import { describe, expect, it } from "vitest";
import type { HostText } from "../../playground/compiler/parts.ts";
import { carriedEdits, editsToCarry } from "../../playground/model/carry-edits.ts";
import { stateOf } from "../../playground/model/inputs.ts";

const program = (rows: number, team: string): readonly string[] => [
  `T0 = ALLOCATE(size=${rows})`,
  "FOR streamIdx in istreamIdx15{8}:",
  `  Communication 0 (team=(${team}), rows=${rows})`,
  "  Wait Communication 0",
  "  Synchronize Stream 0",
  "}",
];
const host = (lines: readonly string[]): HostText => ({ lines: [], ranks: [0, 1], printed: lines.join("\n") });
const before = program(2048, "0 1");

function carried(edited: readonly string[], after: readonly string[]): string | undefined {
  const state = { ...stateOf({ kind: "program", name: "a.ts", text: "" }), edits: { 0: edited.join("\n") } };
  const edits = editsToCarry(state, { kind: "param", name: "M", text: "64" }, [host(before)]);
  return carriedEdits(edits, [host(after)])?.["0"];
}

describe("edits of host programs", () => {
  it("keep deleted and swapped lines, with the new sizes and devices", () => {
    const after = program(64, "0 1 2 3");
    expect(carried(before.toSpliced(3, 1), after)).toBe(after.toSpliced(3, 1).join("\n"));
    const swap = (lines: readonly string[]): readonly string[] => [
      ...lines.slice(1, 3),
      lines[0] ?? "",
      ...lines.slice(3),
    ];
    expect(carried(swap(before), after)).toBe(swap(after).join("\n"));
  });

  it("keep lines that the user wrote", () => {
    const after = program(64, "0 1");
    expect(carried(before.with(4, "  Synchronize Stream 3"), after)).toBe(
      after.with(4, "  Synchronize Stream 3").join("\n"),
    );
  });

  it("do not fit a program with other statements", () => {
    expect(carried(before.toSpliced(3, 1), before.toSpliced(1, 1))).toBeUndefined();
    expect(carried(before.toSpliced(3, 1), before.with(3, "  Barrier"))).toBeUndefined();
  });

  it("are not carried to another program", () => {
    const state = { ...stateOf({ kind: "program", name: "a.ts", text: "" }), edits: { 0: "x" } };
    expect(editsToCarry(state, { kind: "unedit" }, [host(before)])).toEqual([]);
  });
});
