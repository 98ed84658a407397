/**
 * `verify` on Programs with one to three fields changed to anything: never an exception, and what verify
 * says is right is right by the closure, which looks at every byte.
 */
import { compile, type Program, verify } from "@braid-compiler/braid";
import { createRandom } from "../../src/support/random.ts";
import { allgatherMatmulChunks, allreduceChunks, reduceScatterChunks } from "../support/collective-pipelines.ts";
import { exchange, inGemms } from "../schedule/exchanges.ts";
import { decideByClosure } from "./closure/closure.ts";
import { mutantsOf } from "./program-mutants.ts";

const sizes = { chunks: 2, m: 8, k: 4, n: 4, dtype: "float" } as const;

export const startingPrograms: readonly Program[] = [
  compile(allreduceChunks(2), { devices: 2 }),
  compile(allgatherMatmulChunks(2, sizes), { devices: 2 }),
  compile(allgatherMatmulChunks(2, sizes), { devices: 2, p2p: "linear", schedule: { copyStream: "dedicated" } }),
  compile(allgatherMatmulChunks(2, sizes), { devices: 2, backend: "cuda", p2p: "rotated" }),
  compile(reduceScatterChunks(2), { devices: 2, backend: "cuda" }),
]
  .map(({ program }) => program)
  .concat(exchange({ primitive: "tp-rowwise", protocol: "put", outputs: 2 }, inGemms));

/** The closure lists every byte. */
const mostBytes = 1e6;

export interface ProgramFuzz {
  readonly refused: number;
  /** Said to be right. */
  readonly right: number;
  readonly slowest: number;
  readonly failures: readonly string[];
}

export function fuzzPrograms(count: number, firstSeed: number): ProgramFuzz {
  let [refused, right, slowest] = [0, 0, 0];
  const failures: string[] = [];
  for (const [i, program] of startingPrograms.entries()) {
    const random = createRandom(firstSeed + i);
    const next = mutantsOf(() => random.float());
    for (let n = 0; n < count / startingPrograms.length; n++) {
      const changed = [next(program)];
      while (random.integer(4) === 0 && changed.length < 3) changed.push(next(changed.at(-1)?.program ?? program));
      const mutant = changed.at(-1)?.program ?? program;
      const start = performance.now();
      try {
        const { ok } = verify(mutant, { counterexamples: n % 10 === 0 });
        slowest = Math.max(slowest, performance.now() - start);
        if (ok) right++;
        else refused++;
        const bytes = ok ? mutant.buffers.reduce((sum, buffer) => sum + buffer.bytes, 0) : 0;
        if (ok && bytes <= mostBytes) {
          const verdict = decideByClosure(mutant);
          if (!verdict.ok) throw new Error(`said to be right, but ${JSON.stringify(verdict)}`);
        }
      } catch (error) {
        const text =
          error instanceof Error ? (error.stack ?? error.message).split("\n").slice(0, 3).join(" ") : String(error);
        failures.push(`${changed.map((each) => each.text).join("; ")}: ${text}`);
      }
    }
  }
  return { refused, right, slowest, failures };
}
