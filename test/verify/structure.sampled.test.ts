/**
 * The verifier on values of type Program that no recording makes: a finding, never an exception, never ok if it
 * matters.
 */
import { describe, expect, it } from "vitest";
import { compile, Fusion, iota, type Program, verify } from "@braid-compiler/braid";
import type { PlacedBuffer } from "../../src/commands/buffer.ts";
import type { Command } from "../../src/commands/command.ts";
import type { Operand } from "../../src/commands/kernel.ts";
import { makeId, at } from "../../src/support/invariant.ts";
import { runs } from "../support/suite.ts";
import { fuzzPrograms, startingPrograms as programs } from "./fuzz-programs.ts";

const count = runs({ quick: 80, long: 2000 });

it(`${count} mutants of fields are judged`, () => {
  for (const program of programs) {
    expect(verify(program).findings.filter(({ severity }) => severity === "error")).toEqual([]);
  }
  const { failures, refused, right } = fuzzPrograms(count, 0);
  expect(failures).toEqual([]);
  expect(refused).toBeGreaterThan(count / 3);
  expect(right).toBeGreaterThan(count / 10);
}, 300_000);

describe("never ok", () => {
  const [collective, , , copying, peer, adding] = programs;
  const f = new Fusion();
  f.output(iota(f, 4));
  const counting = compile(f, { devices: 1 }).recorded;
  const withBuffer = (program: Program, change: (buffer: PlacedBuffer) => PlacedBuffer): Program => ({
    ...program,
    buffers: program.buffers.map(change),
  });
  /** The last input of GEMMs that add it. */
  const withAddend = (program: Program, change: (addend: Operand) => Operand): Program => ({
    ...program,
    kernels: program.kernels.map((each) =>
      "addend" in each
        ? { ...each, inputs: each.inputs.with(-1, change(at(each.inputs, each.inputs.length - 1))) }
        : each,
    ),
  });
  const withCommand = (program: Program, change: (command: Command) => Command): Program => ({
    ...program,
    ranks: program.ranks.map((rank) => ({ ...rank, commands: rank.commands.map(change) })),
  });
  const withoutOrigins = (command: Command): Command =>
    command.kind === "launch" ? { ...command, origins: [] } : command;
  const codesOf = (program: Program): readonly string[] => verify(program).findings.map(({ code }) => code);

  it.each<[string, Program | undefined]>([
    [
      "a buffer outside its arena",
      collective && withBuffer(collective, (each) => ({ ...each, offset: each.offset + 4096 })),
    ],
    [
      "inputs and outputs in the same bytes",
      collective && {
        ...collective,
        buffers: collective.buffers.map((each) =>
          each.role === "output"
            ? { ...each, arena: "symmetric", offset: 0 }
            : each.role === "input"
              ? { ...each, arena: "symmetric", offset: 0 }
              : each,
        ),
        ranks: collective.ranks.map((rank) => ({ ...rank, arenaBytes: { ...rank.arenaBytes, symmetric: 4096 } })),
      },
    ],
    ["more bytes than elements", collective && withBuffer(collective, (each) => ({ ...each, bytes: each.bytes * 2 }))],
    [
      "a peer's buffer outside symmetric memory",
      peer && {
        ...withBuffer(peer, (each) => ({ ...each, arena: each.role, offset: each.offset })),
        ranks: peer.ranks.map((rank) => ({
          ...rank,
          arenaBytes: { input: 4096, output: 4096, temporary: 4096, symmetric: 4096 },
        })),
      },
    ],
    [
      "slots of other ranks",
      peer && {
        ...peer,
        slots: peer.slots.map((slot) => ({ ...slot, signaller: slot.waiter, waiter: slot.signaller })),
      },
    ],
    [
      "an event beyond the count",
      collective &&
        withCommand(collective, (each) => (each.kind === "waitEvent" ? { ...each, event: makeId(1e15) } : each)),
    ],
    ["a launch without its origin", counting && withCommand(counting, withoutOrigins)],
    ["an unknown stream", collective && withCommand(collective, (each) => ({ ...each, stream: makeId(99) }))],
    [
      "a transfer that nobody posts",
      collective && {
        ...collective,
        ranks: collective.ranks.map((rank) => ({ ...rank, transferOf: rank.transferOf.map(() => null) })),
      },
    ],
    [
      "a copy between dtypes",
      copying &&
        withCommand(copying, (each) =>
          each.kind === "copy" ? { ...each, source: { ...each.source, dtype: "int" } } : each,
        ),
    ],
    ["an addend of another shape", adding && withAddend(adding, (each) => ({ ...each, shape: [2, 12] }))],
    ["an addend of fewer axes", adding && withAddend(adding, (each) => ({ ...each, shape: [24], strides: [1] }))],
    ["an addend of another dtype", adding && withAddend(adding, (each) => ({ ...each, dtype: "half" }))],
    [
      "a GEMM that adds to its output, too",
      adding && {
        ...adding,
        kernels: adding.kernels.map((each) => ("addend" in each ? { ...each, accumulate: true } : each)),
      },
    ],
    [
      "a GEMM without its addend",
      adding && {
        ...adding,
        kernels: adding.kernels.map((each) =>
          "addend" in each ? { ...each, inputs: each.inputs.slice(0, -1) } : each,
        ),
      },
    ],
    [
      "a launch without operands",
      peer && withCommand(peer, (each) => (each.kind === "launch" ? { ...each, inputs: [] } : each)),
    ],
  ])("%s", (_, program) => {
    expect(program).toBeDefined();
    if (program !== undefined) expect(codesOf(program)).toEqual(["program-malformed"]);
  });

  it("an addend of another shape, of which the finding names the kernel and the shape", () => {
    expect(adding).toBeDefined();
    if (adding === undefined) return;
    const kernel = adding.kernels.findIndex((each) => "addend" in each);
    const [finding] = verify(withAddend(adding, (each) => ({ ...each, shape: [2, 12] }))).findings;
    expect(finding).toMatchObject({
      message: `kernels[${kernel}].inputs is not as a Program needs it`,
      found: "[2,12]",
      expected: "an addend of shape [4, 6], of the result's dtype",
    });
  });
});
