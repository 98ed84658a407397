/**
 * Shares that no collective moves, on many devices: every device sends to every other one, so the work may grow with
 * the square of the devices, as the pieces do, and no faster. Work is counted, not timed.
 */
import { expect, it, vi } from "vitest";
import { DeviceMesh, DiagnosticError, Fusion, link, type Program, set } from "@braid-compiler/braid";
import type { Transfer } from "../../src/commands/command.ts";
import { renderDiagnostic } from "../../src/diagnostics/diagnostic.ts";
import { lowerRanks } from "../../src/compile/lower.ts";
import { recordAll } from "../../src/compile/record.ts";
import { at } from "../../src/support/invariant.ts";
import { verify } from "../../src/verify/verify.ts";

/** Rows over the devices, gathered in four chunks, each of which lies on a few devices. */
function gatherInChunks(devices: number, rows: number): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const x = f.input([rows, 4], "float");
  const y = set(x);
  f.output(y);
  for (const tensor of [x, y]) tensor.setDeviceMesh(mesh);
  x.outerSplit(0, devices).parallelize("DIDx");
  y.outerSplit(0, 4).parallelize("Stream");
  return f;
}

function linked(devices: number, rows = 2 * devices + 1): Program {
  const { classes } = lowerRanks(gatherInChunks(devices, rows), devices);
  return link(recordAll(classes, { devices, streams: 4 }));
}

function groupsOf({ ranks }: Program): readonly Extract<Transfer["operation"], { kind: "group" }>[] {
  return ranks.flatMap(({ commands }) =>
    commands.flatMap((command) =>
      command.kind === "transfer" && command.operation.kind === "group" ? [command.operation] : [],
    ),
  );
}

it("a piece that goes to all others is one view, in the command and in the transfer", () => {
  const program = linked(12, 24);
  for (const { ops } of groupsOf(program)) {
    const sends = ops.filter(({ type }) => type === "send");
    expect([0, 11]).toContain(sends.length);
    expect(new Set(sends.map(({ view }) => view)).size).toBe(Math.min(1, sends.length));
  }
  const operations = new Set<unknown>(groupsOf(program));
  const participants = program.transfers.flatMap((transfer) => [...transfer.participants]);
  expect(participants.every(({ operation }) => operations.has(operation))).toBe(true);
});

it("the share of a device is found once, not once for each device that receives from it", () => {
  const lookUps = (devices: number): number => {
    const { classes } = lowerRanks(gatherInChunks(devices, 2 * devices + 1), devices);
    const coordinate = vi.spyOn(DeviceMesh.prototype, "coordinate");
    recordAll(classes, { devices, streams: 4 });
    const { length } = coordinate.mock.calls;
    coordinate.mockRestore();
    return length;
  };
  expect(lookUps(32) / lookUps(16)).toBeLessThan(2.5);
});

it("verify reads the views of a piece a few times", () => {
  const readsOf = (devices: number): number => {
    const program = linked(devices);
    let reads = 0;
    const counted = new Map<object, object>();
    const count = <T extends object>(value: T): T => {
      const known = counted.get(value) ?? new Proxy(value, { get: (...target) => (reads++, Reflect.get(...target)) });
      counted.set(value, known);
      return known as T;
    };
    for (const { ops } of groupsOf(program)) {
      for (const op of ops) Object.assign(op, { view: count(op.view) });
    }
    expect(verify(program, { notes: false }).ok).toBe(true);
    return reads;
  };
  const [few, many] = [readsOf(12), readsOf(24)];
  expect(many / few).toBeLessThan(5);
  expect(many).toBeLessThan(60 * 24 * 24);
});

it("refuses what would fill memory at the first rank", () => {
  const { classes } = lowerRanks(gatherInChunks(4096, 8192), 4096);
  let refusal: DiagnosticError | null = null;
  try {
    recordAll(classes, { devices: 4096, streams: 4 });
  } catch (error) {
    if (error instanceof DiagnosticError) refusal = error;
  }
  const [diagnostic, ...more] = refusal?.diagnostics ?? [];
  expect(more).toEqual([]);
  expect(diagnostic).toMatchObject({
    code: "recording-too-long",
    found: "over 2097152 pieces among 4096 devices, whose shares of this communication are not equal",
  });
  const text = refusal === null ? "" : renderDiagnostic(at(refusal.diagnostics, 0));
  expect(text).toContain("at: Communication 0 (type=Allgather, team=(0 1 .. 4095),");
  expect(text).toContain("note: on rank 0, iteration 0");
  expect(text.length).toBeLessThan(1500);
});
