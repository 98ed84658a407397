/**
 * A contender that runs in a Python process. The process times its iterations by CUDA events after a barrier of its own
 * world.
 */
import type { Contender, Timing } from "../contender.ts";
import type { Exchange, Outcome } from "../../../src/launch/exchange.ts";
import { type Implementation, peerImplementations } from "../implementation.ts";
import type { Traced } from "../traced-run.ts";
import type { PeerAnswer, TorchPeer } from "./torch-peer.ts";

export type PeerImplementation = Extract<Implementation, { readonly kind: "peer" }>;

/** Collective: sets the process up for a problem, which `setup` describes. */
export async function setUpPeer(
  peer: TorchPeer,
  setup: Readonly<Record<string, unknown>>,
  exchange: Exchange,
): Promise<Outcome<PeerAbility>> {
  const answer = await peer.ask({ do: "setup", ...setup });
  const names = answer.kind === "done" ? answer.value["impls"] : null;
  const own: Outcome<readonly number[]> = answer.kind === "failed" ? answer : { kind: "done", value: [] };
  const agreed = await exchange(own);
  if (agreed.kind === "failed") return agreed;
  const impls = Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
  return { kind: "done", value: { impls, tellsKernels: answer.kind === "done" && answer.value["kernels"] === true } };
}

/** What the process has for a problem. */
export interface PeerAbility {
  /** Its names of implementations. */
  readonly impls: readonly string[];
  /** Whether it sums the times of their kernels. */
  readonly tellsKernels: boolean;
}

export interface PeerContender extends Contender {
  /** The process's name for it. */
  readonly name: string;
}

export function peerContender(
  implementation: PeerImplementation,
  peer: TorchPeer,
  { tellsKernels }: PeerAbility,
): PeerContender {
  const impl = peerImplementations[implementation.name];
  return {
    implementation,
    note: versionsOf(peer.ready),
    name: impl,
    turn: async (runs) => readTimings(await peer.ask({ do: "run", impl, runs }), runs),
    row: async (runs) => readRow(await peer.ask({ do: "row", impl, runs })),
    check: async () => readCheck(await peer.ask({ do: "validate", impl })),
    trace: async (exchange) => {
      if (!tellsKernels) return { kind: "done", value: null };
      return readTraced(await peer.ask({ do: "kernels", impl }), exchange);
    },
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

/** The slowest rank's. */
async function readTraced(answer: Outcome<PeerAnswer>, exchange: Exchange): Promise<Outcome<Traced>> {
  const own: Outcome<readonly number[]> =
    answer.kind === "failed" ? answer : { kind: "done", value: numbersOf(answer.value["kernels"]) };
  const all = await exchange(own);
  if (all.kind === "failed") return all;
  const [gemms = NaN, attention = NaN, others = NaN] = [0, 1, 2].map((i) =>
    Math.max(...all.value.map((rank) => rank[i] ?? NaN)),
  );
  return { kind: "done", value: { kernels: { gemms, attention, others }, communication: null, exposed: null } };
}

export function numbersOf(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "number") : [];
}

function odd(value: PeerAnswer): { readonly kind: "failed"; readonly why: string } {
  return { kind: "failed", why: `an answer that cannot be parsed: ${JSON.stringify(value).slice(0, 200)}` };
}
