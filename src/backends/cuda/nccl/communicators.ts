/**
 * NCCL's communicators: one per team and backend name, opened when a Program first uses it. NCCL runs in non-blocking
 * mode: every call returns at once and may still be in progress. A rank that waits for a dead rank can therefore time
 * out or follow another rank's abort.
 */
import type { Program } from "../../../commands/program.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { at, invariant } from "../../../support/invariant.ts";
import { callFailed } from "../bindings/call-error.ts";
import type { Out } from "../bindings/driver-api.ts";
import { loadLibrary } from "../bindings/native-library.ts";
import {
  NCCL_UNIQUE_ID_BYTES,
  type NcclFunctions,
  ncclInProgress,
  ncclPrototypes,
  ncclSuccess,
} from "../bindings/nccl-api.ts";
import type { Gpu } from "../gpu.ts";
import { pause } from "../run/stuck/wait.ts";
import type { Rendezvous } from "../world.ts";

export interface NcclCommunicator {
  readonly name: string;
  readonly handle: number;
  /** Ranks by their number in the communicator. */
  readonly ranks: readonly number[];
}

export interface Communicators {
  readonly functions: NcclFunctions;
  /**
   * Opens the communicators of `teams` that are not open yet. All ranks call it with the same teams. Throws
   * `timed-out`, `gpu-call-failed`.
   */
  readonly open: (teams: readonly Team[], timeout: number) => Promise<ReadonlyMap<string, NcclCommunicator>>;
  /** Whether a call is in progress. Throws `gpu-call-failed` for any other status than success. */
  readonly check: (status: number, call: string, communicator: NcclCommunicator | null) => boolean;
  /** Whether the communicator still works on an earlier call. Throws `gpu-call-failed`. */
  readonly isBusy: (communicator: NcclCommunicator) => boolean;
  /** Ends all communication under way, here and on the peers, and closes the communicators. */
  readonly abort: () => void;
  /** Finalizes and destroys the communicators. */
  readonly close: () => Promise<void>;
}

/** Loads the library. Throws `backend-unavailable`. */
export function createCommunicators(gpu: Gpu, rendezvous: Rendezvous): Communicators {
  const { functions } = loadLibrary("nccl", ncclPrototypes);
  const opened = new Map<string, NcclCommunicator>();
  // Includes teams without this rank, so that all ranks agree on which are missing.
  const known = new Set<string>();

  const check = (status: number, call: string, communicator: NcclCommunicator | null): boolean => {
    if (status === ncclSuccess) return false;
    if (status === ncclInProgress) return true;
    const last = functions.ncclGetLastError(communicator?.handle ?? 0);
    const name = functions.ncclGetErrorString(status);
    return callFailed({ rank: gpu.rank, call, status, name, text: last });
  };
  const isBusy = (communicator: NcclCommunicator): boolean => {
    const status: Out = [0];
    check(functions.ncclCommGetAsyncError(communicator.handle, status), "ncclCommGetAsyncError", communicator);
    return check(status[0], "an NCCL call in progress has a communicator", communicator);
  };

  const join = async (team: Team, id: Uint8Array, deadline: number): Promise<NcclCommunicator> => {
    const position = team.ranks.indexOf(gpu.rank);
    const handle: Out = [0];
    const call = "ncclCommInitRankConfig";
    check(functions.ncclCommInitRankConfig(handle, team.ranks.length, { bytes: id }, position, config()), call, null);
    const communicator: NcclCommunicator = { name: team.name, ranks: team.ranks, handle: Number(handle[0]) };
    opened.set(team.name, communicator);
    while (isBusy(communicator)) {
      rendezvous.signal.throwIfAborted();
      if (performance.now() > deadline) slowInit(gpu.rank, team);
      await pause(1);
    }
    return communicator;
  };

  return {
    functions,
    check,
    isBusy,
    open: async (teams, timeout) => {
      const missing = teams.filter(({ name }) => !known.has(name));
      if (missing.length > 0) {
        const ids = await exchangeIds(functions, check, missing, rendezvous);
        for (const [i, team] of missing.entries()) {
          known.add(team.name);
          if (team.ranks.includes(gpu.rank)) await join(team, at(ids, i), performance.now() + timeout);
        }
      }
      return opened;
    },
    abort: () => {
      for (const { handle } of opened.values()) functions.ncclCommAbort(handle);
      opened.clear();
      known.clear();
    },
    close: async () => {
      for (const communicator of opened.values()) {
        const { handle } = communicator;
        check(functions.ncclCommFinalize(handle), "ncclCommFinalize", communicator);
        const deadline = performance.now() + closeMilliseconds;
        while (isBusy(communicator) && performance.now() < deadline) await pause(1);
        check(functions.ncclCommDestroy(handle), "ncclCommDestroy", null);
      }
      opened.clear();
      known.clear();
    },
  };
}

const closeMilliseconds = 2000;

/** Exchanges the id of every team, which its first rank makes. */
async function exchangeIds(
  functions: NcclFunctions,
  check: Communicators["check"],
  teams: readonly Team[],
  rendezvous: Rendezvous,
): Promise<readonly Uint8Array[]> {
  const own = teams.filter(({ ranks }) => ranks[0] === rendezvous.rank);
  const bytes = new Uint8Array(own.length * NCCL_UNIQUE_ID_BYTES);
  own.forEach((_, i) => {
    const id = bytes.subarray(i * NCCL_UNIQUE_ID_BYTES, (i + 1) * NCCL_UNIQUE_ID_BYTES);
    check(functions.ncclGetUniqueId(id), "ncclGetUniqueId", null);
  });
  const all = await rendezvous.allGather(bytes);
  const taken = all.map(() => 0);
  return teams.map(({ ranks }) => {
    const leader = at(ranks, 0);
    const position = at(taken, leader);
    taken[leader] = position + 1;
    return at(all, leader).slice(position * NCCL_UNIQUE_ID_BYTES, (position + 1) * NCCL_UNIQUE_ID_BYTES);
  });
}

/** A non-blocking ncclConfig_t of NCCL 2.18; fields that newer versions added keep their defaults. */
export function config(): Uint8Array {
  const bytes = new Uint8Array(48);
  const view = new DataView(bytes.buffer);
  const unset = -(2 ** 31);
  view.setBigUint64(0, BigInt(bytes.length), true);
  view.setUint32(8, 0xcafebeef, true);
  view.setUint32(12, 21801, true);
  view.setInt32(16, 0, true);
  for (const offset of [20, 24, 28, 40]) view.setInt32(offset, unset, true);
  return bytes;
}

function slowInit(rank: number, { name, ranks }: Team): never {
  return fail("timed-out", `NCCL did not connect rank ${rank} to its team in time`, {
    place: { kind: "call", text: "ncclCommInitRankConfig" },
    found: `${name} is still connecting`,
    expected: `ranks ${ranks.join(", ")} to connect`,
    help: "check for a rank that ended or never started; NCCL_DEBUG=INFO shows what NCCL is doing",
  });
}

// The communicators that a Program needs. One for collectives has the ranks of its team, in team order; one for sends
// and receives has all ranks that use it.

export interface Team {
  /** The commands' name of the communicator. */
  readonly name: string;
  readonly ranks: readonly number[];
}

/** In order of their names, so that every rank opens them in the same order. */
export function communicatorTeams({ transfers }: Program): readonly Team[] {
  const ordered = new Map<string, readonly number[]>();
  const users = new Map<string, Set<number>>();
  for (const { communicator, participants } of transfers) {
    const ranks = users.get(communicator) ?? new Set<number>();
    users.set(communicator, ranks);
    for (const { rank, operation } of participants) {
      ranks.add(rank);
      if (operation.kind === "collective") ordered.set(communicator, operation.team);
    }
  }
  return [...users.keys()].toSorted().map((name) => {
    const used = [...(users.get(name) ?? [])].toSorted((a, b) => a - b);
    const ranks = ordered.get(name) ?? used;
    invariant(
      used.every((rank) => ranks.includes(rank)),
      "a communicator has one team",
      { name, ranks, used },
    );
    return { name, ranks };
  });
}
