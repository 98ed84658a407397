import { DiagnosticError } from "../../diagnostics/diagnostic.ts";

/**
 * What the CUDA back end needs from the launcher of its processes, one per GPU: the rank, a way to exchange a few bytes
 * with the other ranks, and notice when one ends. The back end does not depend on launchers, sockets or environment
 * variables. A launcher provides a `Rendezvous`; a test may provide its own.
 *
 * All ranks make the same calls in the same order, so calls are matched by position. No call waits forever: when the
 * launcher's timeout expires, or a rank aborts or dies, every pending and later call rejects with a DiagnosticError
 * that names the missing rank.
 */
export interface Rendezvous {
  readonly rank: number;
  readonly worldSize: number;
  /** Position among the ranks of this host, from 0: the number of the GPU. */
  readonly localRank: number;
  /** The host of each rank. Hosts are numbered from 0 in the order of their first rank. The same on all ranks. */
  readonly hosts: readonly number[];
  /** By number of the host: its name in messages. */
  readonly hostNames: readonly string[];
  /** The bytes that every rank passed, in rank order, own ones included. Lengths may differ; 0 is allowed. */
  allGather(bytes: Uint8Array): Promise<readonly Uint8Array[]>;
  /** Resolves when every rank has called it. */
  barrier(): Promise<void>;
  /** Notifies all ranks that this one gives up, and why. Returns at once; later calls do nothing. */
  abort(reason: string): void;
  /**
   * Aborts when another rank has called `abort` or died; `signal.reason` is then an Error that names the rank. Runs
   * that wait for the GPU watch it, so they end within a second instead of at the timeout.
   */
  readonly signal: EndOfWorld;
}

/** An error that all ranks throw alike, because all of them have exchanged what it says. */
export class CommonError extends DiagnosticError {}

/** The parts of an AbortSignal that the back end uses. */
export interface EndOfWorld {
  /** An Error, once it has aborted. */
  readonly reason: unknown;
  /** Throws `reason` once it has aborted. */
  throwIfAborted(): void;
}

export type Hosts = Pick<Rendezvous, "hosts" | "hostNames">;

/** How messages name a rank: with its host if there are several. */
export function rankName(rank: number, { hosts, hostNames }: Hosts): string {
  const host = hostNames.length > 1 ? hostNames[hosts[rank] ?? -1] : undefined;
  return host === undefined ? `rank ${rank}` : `rank ${rank} on host ${host}`;
}

/** The world of one process with one GPU, which waits for no other rank. */
export function soloRendezvous(): Rendezvous {
  return {
    rank: 0,
    worldSize: 1,
    localRank: 0,
    hosts: [0],
    hostNames: ["localhost"],
    allGather: async (bytes) => [bytes],
    barrier: async () => {},
    abort: () => {},
    signal: new AbortController().signal,
  };
}
