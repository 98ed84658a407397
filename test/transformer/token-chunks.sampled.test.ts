/**
 * The GPT and the Llama block in chunks of tokens, which one sequence allows: right by the oracle, with all collectives
 * after attention in the loop, and as many and of the same kinds as without chunks.
 */
import path from "node:path";
import { expect, it } from "vitest";
import { cli } from "../cli/captured-cli.ts";
import { examplesFolder } from "../support/example-program.ts";
import { combinations } from "../support/split-cases.ts";
import { everyNth } from "../support/suite.ts";

const cases = combinations({ block: ["gpt-block", "llama-block"], SP: [0, 1] });

it.each(everyNth(cases, cases.length))(
  "$block, SP $SP, of one sequence runs in chunks of tokens",
  async ({ block, SP }) => {
    const sizes = Object.entries({ B: 1, S: 2, SP, TOKENS: 1 }).flatMap(([name, value]) => [
      "--set",
      `${name}=${value}`,
    ]);
    const given = [path.join(examplesFolder, `transformer/${block}.ts`), "--devices", "4", ...sizes];
    const run = await cli("run", ...given, "--check", "--json");
    expect([run.status, run.err]).toEqual([0, ""]);
    const { outputs } = JSON.parse(run.out) as {
      readonly outputs: readonly { readonly check: { readonly ok: boolean } }[];
    };
    expect(outputs.map(({ check }) => check.ok)).toEqual(outputs.map(() => true));
    const { out } = await cli("lower", ...given, "--set", "BACKWARD=0");
    const [, loop = ""] = /\bFOR streamIdx in .*?\{(.*)\}/su.exec(out) ?? [];
    const kinds = (text: string) => [...text.matchAll(/\btype=(\w+)/gu)].map(([, kind]) => kind);
    expect(kinds(loop)).toEqual(
      SP === 1 ? ["ReduceScatter", "Allgather", "ReduceScatter"] : ["Allreduce", "Allreduce"],
    );
    expect(kinds(out)).toHaveLength(SP === 1 ? 4 : 2);
  },
);
