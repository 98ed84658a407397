/**
 * The verifier on values of type Program that no recording makes: a finding, never an exception, never ok if it
 * matters.
 */
import { describe, expect, it } from "vitest";
import { compile, type Program, verify } from "braid";
import type { PlacedBuffer } from "../../src/commands/buffer.ts";
import type { Command } from "../../src/commands/command.ts";
import { createRandom } from "../../src/support/random.ts";
import { allgatherMatmulChunks, allreduceChunks, reduceScatterChunks } from "../support/collective-pipelines.ts";
import { makeId } from "../../src/support/ids.ts";
import { runs } from "../support/suite.ts";
import { mutantsOf } from "./program-mutants.ts";

const sizes = { chunks: 2, m: 8, k: 4, n: 4, dtype: "float" } as const;

const programs: readonly Program[] = [
  compile(allreduceChunks(2), { devices: 2 }),
  compile(allgatherMatmulChunks(2, sizes), { devices: 2 }),
  compile(allgatherMatmulChunks(2, sizes), { devices: 2, p2p: "linear", schedule: { copyStream: "dedicated" } }),
  compile(allgatherMatmulChunks(2, sizes), { devices: 2, backend: "cuda", p2p: "rotated" }),
  compile(reduceScatterChunks(2), { devices: 2, backend: "cuda" }),
].map(({ program }) => program);

const count = runs({ quick: 400, long: 6000 });

it(`${count} mutants of fields are judged`, () => {
  let refused = 0;
  const failures: string[] = [];
  for (const [i, program] of programs.entries()) {
    expect(verify(program).findings.filter(({ severity }) => severity === "error")).toEqual([]);
    const random = createRandom(i);
    const next = mutantsOf(program, () => random.float());
    for (let n = 0; n < count / programs.length; n++) {
      const { program: mutant, text } = next();
      try {
        if (!verify(mutant, { counterexamples: n % 10 === 0 }).ok) refused++;
      } catch (error) {
        failures.push(`${text}: ${String(error)}`);
      }
    }
  }
  expect(failures).toEqual([]);
  expect(refused).toBeGreaterThan(count / 3);
}, 300_000);

describe("never ok", () => {
  const [collective, , , copying, peer] = programs;
  const withBuffer = (program: Program, change: (buffer: PlacedBuffer) => PlacedBuffer): Program => ({
    ...program,
    buffers: program.buffers.map(change),
  });
  const withCommand = (program: Program, change: (command: Command) => Command): Program => ({
    ...program,
    ranks: program.ranks.map((rank) => ({ ...rank, commands: rank.commands.map(change) })),
  });
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
