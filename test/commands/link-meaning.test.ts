/**
 * Ranks that post collectives or sends of equal shapes in different orders: an error if certain, otherwise a warning.
 */
import { describe, expect, it } from "vitest";
import { compile, DeviceMesh, type HostProgram, HostProgramBuilder } from "@braid-compiler/braid";
import { linkWithWarnings } from "../../src/commands/link/link.ts";
import { narrowView, partOf } from "../../src/commands/view.ts";
import { tryCompile } from "../../src/compile/compile.ts";
import { type Diagnostic, DiagnosticError } from "../../src/diagnostics/diagnostic.ts";
import { at } from "../../src/support/invariant.ts";
import { buildLists, type ListBuilder } from "../machine/list-builder.ts";

const team = [0, 1];
const mesh = DeviceMesh.range(2);

/** `severity: found` of every problem or warning. */
function meant(build: (list: ListBuilder, rank: number) => void): readonly string[] {
  const text = ({ severity = "error", found }: Diagnostic): string => `${severity}: ${found}`;
  try {
    return linkWithWarnings(buildLists(2, build)).warnings.map(text);
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    return error.diagnostics.map(text);
  }
}

describe("host programs of each rank", () => {
  const orders = [
    [0, 1],
    [1, 0],
  ] as const;

  it.each(["Allreduce", "Allgather"] as const)("two %ss of inputs in crossed order are refused", (type) => {
    const crossed = (rank: number): HostProgram => {
      const h = new HostProgramBuilder();
      const shape = type === "Allreduce" ? [8] : [2, 4];
      const parallel = type === "Allreduce" ? [] : (["DIDx"] as const);
      const inputs = [0, 1].map(() => h.input(shape, { mesh, parallel: [...parallel] }));
      const outputs = [0, 1].map(() => h.tensor(shape, { mesh }));
      for (const output of outputs) h.output(output);
      for (const output of outputs) h.allocate(output);
      for (const i of at(orders, rank)) {
        h.wait(h.communication(type, { input: at(inputs, i), output: at(outputs, i), team }));
      }
      return h.build();
    };
    const { program, report } = tryCompile(crossed, { devices: 2 });
    expect(program).toBe(null);
    expect(report?.findings.map(({ code, severity }) => [code, severity])).toEqual([["transfer-mismatch", "error"]]);
    expect(compile(() => crossed(0), { devices: 2 }).report.findings).toEqual([]);
  });
});

describe("collectives", () => {
  it("that sum inputs of different positions are refused", () => {
    const found = meant((list, rank) => {
      const inputs = [list.input([4]), list.input([4])];
      list.collective(0, "Allreduce", { team, reduceOp: "sum", input: at(inputs, rank), output: list.output([4]) });
    });
    expect(found).toEqual(["error: T1 (input 1) of rank 1 is reduced with T0 (input 0) of rank 0"]);
  });

  it.each([
    [
      "in crossed order are refused",
      [1, 0],
      "error: bytes 16 to 31 of T0 of rank 1 is reduced with bytes 0 to 15 of T0 of rank 0",
    ],
    [
      "elsewhere are doubted",
      [1, 1],
      "warning: bytes 16 to 31 of T0 of rank 1 is reduced with bytes 0 to 15 of T0 of rank 0",
    ],
  ] as const)("over slices %s", (_, order, text) => {
    const found = meant((list, rank) => {
      const whole = list.input([2, 4]);
      const output = list.output([2, 4]);
      for (const i of rank === 0 ? [0, 1] : order) {
        list.collective(0, "Allreduce", { team, reduceOp: "sum", input: partOf(whole, i), output: partOf(output, i) });
      }
    });
    expect(found).toEqual([text]);
  });

  it("over temporaries of other names are doubted once", () => {
    const found = meant((list, rank) => {
      const [a, b] = [list.temporary([4]), list.temporary([4])];
      for (const view of rank === 0 ? [a, b] : [b, a]) {
        list.collective(0, "Allreduce", { team, reduceOp: "sum", input: view, output: view });
      }
    });
    expect(found).toEqual(["warning: T1 of rank 1 is reduced with T0 of rank 0"]);
  });

  it("gather in place from each rank's own slice", () => {
    const found = meant((list, rank) => {
      const whole = list.output([2, 4]);
      list.collective(0, "Allgather", { team, input: partOf(whole, rank), output: whole });
    });
    expect(found).toEqual([]);
  });
});

describe("sends", () => {
  const exchange = (role: "output" | "temporary", order: readonly number[]): readonly string[] =>
    meant((list, rank) => {
      const whole = list[role]([2, 4]);
      const slices = [0, 1].map((i) => narrowView(whole, 0, i, 1));
      for (const i of rank === 0 ? [0, 1] : order) {
        list.group(0, [{ type: rank === 0 ? "send" : "recv", peer: 1 - rank, view: at(slices, i) }]);
      }
    });

  it("between slices of an output in crossed order are doubted", () => {
    expect(exchange("output", [0, 1])).toEqual([]);
    expect(exchange("output", [1, 0])).toEqual([
      "warning: bytes 0 to 15 of T0 of rank 0 arrive in bytes 16 to 31 of T0 of rank 1",
    ]);
  });

  it("between two halves of a buffer are not, as a ring alternates between them", () => {
    expect(exchange("temporary", [1, 0])).toEqual([]);
  });
});
