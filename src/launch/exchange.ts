/** Lets ranks agree on the result of a measurement: all receive the numbers of all ranks, or the first failure. */
import type { World } from "./join-world.ts";

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
