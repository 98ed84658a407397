/** Lets ranks agree on the result of a measurement: all receive the numbers of all ranks, or the first failure. */
import type { World } from "./join-world.ts";
import { createHash } from "node:crypto";
import type { Program } from "../commands/program.ts";

/** The result of a measurement, or the reason why it failed. */
export type Outcome<T> =
  { readonly kind: "done"; readonly value: T } | { readonly kind: "failed"; readonly why: string };

/** Every rank's numbers, in rank order. A failure on one rank is a failure on all. */
export type Exchange = (own: Outcome<readonly number[]>) => Promise<Outcome<readonly (readonly number[])[]>>;

/** For one process that holds all ranks. */
export const exchangeAlone: Exchange = async (own) =>
  own.kind === "failed" ? own : { kind: "done", value: [own.value] };

const done = 0;
const failed = 1;

export function exchangeWith(world: Pick<World, "allGather">): Exchange {
  return async (own) => {
    const parts = await world.allGather(encode(own));
    const outcomes = parts.map(decode);
    const rank = outcomes.findIndex(({ kind }) => kind === "failed");
    const first = outcomes[rank];
    if (first?.kind === "failed") return { kind: "failed", why: `rank ${rank}: ${first.why}` };
    return { kind: "done", value: outcomes.map((outcome) => (outcome.kind === "done" ? outcome.value : [])) };
  };
}

function encode(own: Outcome<readonly number[]>): Uint8Array {
  if (own.kind === "failed") return Buffer.concat([Uint8Array.of(failed), Buffer.from(own.why)]);
  return Buffer.concat([Uint8Array.of(done), new Uint8Array(Float64Array.from(own.value).buffer)]);
}

function decode(bytes: Uint8Array): Outcome<readonly number[]> {
  // Copied, because a Buffer's slice shares its memory.
  const rest = new Uint8Array(bytes.subarray(1));
  if (bytes[0] === failed) return { kind: "failed", why: new TextDecoder().decode(rest) };
  return { kind: "done", value: [...new Float64Array(rest.buffer)] };
}

/* A short name of a Program: equal for equal Programs, on every machine. */

/** SHA-256 of the Program's parts as JSON, the first 16 hexadecimal digits. Their order is the same on every rank. */
export function programHash(program: Program): string {
  const hash = createHash("sha256");
  for (const [name, part] of Object.entries(program)) {
    hash.update(name);
    // Parts of a list one by one: a large Program is more than one string can hold.
    for (const each of Array.isArray(part) ? part : [part]) hash.update(JSON.stringify(each, plain) ?? "");
  }
  return hash.digest("hex").slice(0, 16);
}

function plain(_: string, value: unknown): unknown {
  return value instanceof Map || value instanceof Set ? [...value] : value;
}

/** The Program without the statements that its commands come from, which never affect what they do. */
export function withoutOrigins(program: Program): Program {
  return { ...program, ranks: program.ranks.map((rank) => ({ ...rank, origins: [] })) };
}
