/**
 * The verifier on values of type Program that no recording makes: a finding, never an exception, never ok if it
 * matters.
 */
import { describe, expect, it } from "vitest";
import { compile, Fusion, iota, type Program, verify } from "braid";
import type { PlacedBuffer } from "../../src/commands/buffer.ts";
import type { Command } from "../../src/commands/command.ts";
import { makeId } from "../../src/support/ids.ts";
import { runs } from "../support/suite.ts";
import { fuzzPrograms, startingPrograms as programs } from "./fuzz-programs.ts";

const count = runs({ quick: 200, long: 2000 });

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
  const [collective, , , copying, peer] = programs;
  const f = new Fusion();
  f.output(iota(f, 4));
  const counting = compile(f, { devices: 1 }).recorded;
  const withBuffer = (program: Program, change: (buffer: PlacedBuffer) => PlacedBuffer): Program => ({
    ...program,
    buffers: program.buffers.map(change),
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
    [
      "a launch without operands",
      peer && withCommand(peer, (each) => (each.kind === "launch" ? { ...each, inputs: [] } : each)),
    ],
  ])("%s", (_, program) => {
    expect(program).toBeDefined();
    if (program !== undefined) expect(codesOf(program)).toEqual(["program-malformed"]);
  });
});
