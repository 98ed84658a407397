/**
 * Which of a library's communicators a transfer runs on. Each has a separate stream and sequence of transfers.
 *
 *   collectives, CollectivePermute       that of the team
 *   coalesced sends and receives         that of all ranks
 *   a single send or receive   team      the same; for SendRecv, that of the team
 *                              pair      one of the two ranks alone, as in PyTorch's ProcessGroupNCCL
 *
 * With "pair", all ranks and the team of all ranks have one communicator, as in nvFuser. UCC has no pairs.
 */
import type { StreamInfo } from "../commands/command.ts";
import type { CommunicatorBackend } from "../host/collectives.ts";
import { at } from "../support/invariant.ts";
import type { Common } from "./common.ts";

export type CommunicatorModel = "team" | "pair";

export interface Communicator {
  /** On each rank that is recorded at once: one, if it is the same on all. */
  readonly names: readonly string[];
  readonly role: Extract<StreamInfo["role"], "communicator" | "pair">;
}

/** The part of a recorder that names depend on. */
interface Naming {
  readonly options: {
    readonly communicators: CommunicatorModel;
    /** The number of ranks; null if unknown. */
    readonly devices: number | null;
  };
  /** The communicator of all ranks, by library. */
  readonly worlds: Map<CommunicatorBackend, Communicator>;
  readonly common: Common;
}

interface Sides {
  readonly backend: CommunicatorBackend;
  /** One for each rank that is recorded at once, or one for all. */
  readonly teams: readonly (readonly number[])[];
}

export function communicatorOf({ common }: Pick<Naming, "common">, { backend, teams }: Sides): Communicator {
  return { names: teams.map((team) => `${libraryOf(backend)} (${common.team(team)})`), role: "communicator" };
}

/** The communicator of all ranks. */
export function worldOf({ options, worlds, common }: Naming, backend: CommunicatorBackend): Communicator {
  const { communicators, devices } = options;
  if (communicators === "team" || devices === null)
    return { names: [`${libraryOf(backend)} world`], role: "communicator" };
  const known =
    worlds.get(backend) ??
    communicatorOf({ common }, { backend, teams: [Array.from({ length: devices }, (_, i) => i)] });
  worlds.set(backend, known);
  return known;
}

/** The communicator of a send or receive outside a group, between each rank and its peer. */
export function singleOf(
  recorder: Naming,
  backend: CommunicatorBackend,
  ranks: readonly number[],
  peers: readonly number[],
): Communicator {
  if (recorder.options.communicators === "team" || backend !== "nccl") return worldOf(recorder, backend);
  const names = ranks.map((rank, k) => {
    const peer = at(peers, k);
    return `NCCL pair (${Math.min(rank, peer)} ${Math.max(rank, peer)})`;
  });
  return { names, role: "pair" };
}

/** The communicator of a SendRecv. A team of two that is not all ranks has a pair of its own. */
export function sendRecvOf(recorder: Naming, sides: Sides): Communicator {
  const { communicators, devices } = recorder.options;
  const whole = communicatorOf(recorder, sides);
  if (communicators === "team" || sides.backend !== "nccl") return whole;
  if (devices === 2) return { names: ["NCCL pair (0 1)"], role: "pair" };
  return { names: whole.names.map((name) => `${name} pair`), role: "pair" };
}

function libraryOf(backend: CommunicatorBackend): string {
  return backend.toUpperCase();
}
