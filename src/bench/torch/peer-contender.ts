/**
 * A contender that runs in a Python process. The process times its iterations by CUDA events after a barrier of its own
 * world.
 */
import type { Contender, Outcome, Timing } from "../contender.ts";
import type { Exchange } from "../exchange.ts";
import { type Implementation, peerImplementations } from "../implementation.ts";
import type { PeerAnswer, TorchPeer } from "./torch-peer.ts";

export type PeerImplementation = Extract<Implementation, { readonly kind: "peer" }>;

/**
 * Collective: the implementations that the process supports for a problem, which `setup` describes; failed if it cannot
 * set the problem up.
 */
export async function setUpPeer(
  peer: TorchPeer,
  setup: Readonly<Record<string, unknown>>,
  exchange: Exchange,
): Promise<Outcome<readonly string[]>> {
  const answer = await peer.ask({ do: "setup", ...setup });
  const names = answer.kind === "done" ? answer.value["impls"] : null;
  const own: Outcome<readonly number[]> = answer.kind === "failed" ? answer : { kind: "done", value: [] };
  const agreed = await exchange(own);
  if (agreed.kind === "failed") return agreed;
  return { kind: "done", value: Array.isArray(names) ? names.filter((name) => typeof name === "string") : [] };
}

export interface PeerContender extends Contender {
  /** The process's name for it. */
  readonly name: string;
}

export function peerContender(implementation: PeerImplementation, peer: TorchPeer): PeerContender {
  const impl = peerImplementations[implementation.name];
  return {
    implementation,
    note: versionsOf(peer.ready),
    name: impl,
    turn: async (runs) => readTimings(await peer.ask({ do: "run", impl, runs }), runs),
    row: async (runs) => readRow(await peer.ask({ do: "row", impl, runs })),
    check: async () => readCheck(await peer.ask({ do: "validate", impl })),
    release: () => {},
  };
}

function versionsOf({ torch, nccl }: PeerAnswer): string {
  return [["PyTorch", torch] as const, ["NCCL", nccl] as const]
    .flatMap(([name, version]) => (typeof version === "string" ? [`${name} ${version}`] : []))
    .join(", ");
}

function readTimings(answer: Outcome<PeerAnswer>, runs: number): Outcome<readonly Timing[]> {
  if (answer.kind === "failed") return answer;
  const milliseconds = numbersOf(answer.value["ms"]);
  const host = numbersOf(answer.value["host_us"]);
  if (milliseconds.length !== runs || host.length !== runs) return odd(answer.value);
  return {
    kind: "done",
    value: milliseconds.map((each, run) => ({ milliseconds: each, hostMicroseconds: host[run] ?? null })),
  };
}

function readRow(answer: Outcome<PeerAnswer>): Outcome<number> {
  if (answer.kind === "failed") return answer;
  const host = answer.value["host_us"];
  return typeof host === "number" ? { kind: "done", value: host } : odd(answer.value);
}

function readCheck(answer: Outcome<PeerAnswer>): Outcome<number | null> {
  if (answer.kind === "failed") return answer;
  const { error, bound, unchecked } = answer.value;
  if (typeof unchecked === "string") return { kind: "done", value: null };
  if (typeof error !== "number" || typeof bound !== "number") return odd(answer.value);
  return { kind: "done", value: error === 0 ? 0 : error / bound };
}

export function numbersOf(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "number") : [];
}

function odd(value: PeerAnswer): { readonly kind: "failed"; readonly why: string } {
  return { kind: "failed", why: `an answer that cannot be parsed: ${JSON.stringify(value).slice(0, 200)}` };
}
