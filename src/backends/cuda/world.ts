/**
 * What the CUDA back end asks of whoever started its processes, one per GPU: who am I, a way to exchange a few bytes with the other
 * ranks, and news of their end. It knows nothing of launchers, sockets or environment variables; a launcher gives it a
 * `Rendezvous`, and a test may give it one of its own.
 *
 * All ranks make the same calls in the same order, so calls are matched by their position. No call waits for ever: when the
 * launcher's time is up, or a rank has aborted or died, every pending and later call rejects with a DiagnosticError that says which rank is missing.
 */
export interface Rendezvous {
  readonly rank: number;
  readonly worldSize: number;
  /** Position among the ranks of this host, from 0: the number of the GPU. */
  readonly localRank: number;
  /** The bytes that every rank passed, in rank order, own ones included. Lengths may differ; 0 is allowed. */
  allGather(bytes: Uint8Array): Promise<readonly Uint8Array[]>;
  /** Resolves when every rank has called it. */
  barrier(): Promise<void>;
  /** Tells all ranks, once, that this one gives up, and why. Returns at once; later calls do nothing. */
  abort(reason: string): void;
  /**
   * Aborts when another rank has called `abort` or has died; `signal.reason` is then an Error that names the rank. Runs that wait for the GPU watch
   * it, so that they end within a second and not with the time-out.
   */
  readonly signal: EndOfWorld;
}

/** What the back end asks of an AbortSignal: any such will do. */
export interface EndOfWorld {
  /** Once it has aborted: an Error. */
  readonly reason: unknown;
  /** Throws `reason` once it has aborted. */
  throwIfAborted(): void;
}

/** The world of one process that has one GPU: nobody to wait for. */
export function soloRendezvous(): Rendezvous {
  return {
    rank: 0,
    worldSize: 1,
    localRank: 0,
    allGather: async (bytes) => [bytes],
    barrier: async () => {},
    abort: () => {},
    signal: new AbortController().signal,
  };
}
