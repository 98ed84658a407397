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
import type { Common } from "./common.ts";

export type CommunicatorModel = "team" | "pair";

export interface Communicator {
  readonly name: string;
  readonly role: Extract<StreamInfo["role"], "communicator" | "pair">;
}

/** The part of a recorder that names depend on. */
interface Naming {
  readonly options: {
    readonly rank: number;
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
  readonly team: readonly number[];
}

export function communicatorOf({ common }: Pick<Naming, "common">, { backend, team }: Sides): Communicator {
  return { name: `${libraryOf(backend)} (${common.team(team)})`, role: "communicator" };
}

/** The communicator of all ranks. */
export function worldOf({ options, worlds, common }: Naming, backend: CommunicatorBackend): Communicator {
  const { communicators, devices } = options;
  if (communicators === "team" || devices === null)
    return { name: `${libraryOf(backend)} world`, role: "communicator" };
  const known =
    worlds.get(backend) ?? communicatorOf({ common }, { backend, team: Array.from({ length: devices }, (_, i) => i) });
  worlds.set(backend, known);
  return known;
}

/** The communicator of a send or receive outside a group, between this rank and `peer`. */
export function singleOf(recorder: Naming, backend: CommunicatorBackend, peer: number): Communicator {
  const { rank, communicators } = recorder.options;
  if (communicators === "team" || backend !== "nccl") return worldOf(recorder, backend);
  return { name: `NCCL pair (${Math.min(rank, peer)} ${Math.max(rank, peer)})`, role: "pair" };
}

/** The communicator of a SendRecv. A team of two that is not all ranks has a pair of its own. */
export function sendRecvOf(recorder: Naming, { backend, team }: Sides): Communicator {
  const { communicators, devices } = recorder.options;
  const whole = communicatorOf(recorder, { backend, team });
  if (communicators === "team" || backend !== "nccl") return whole;
  if (devices === 2) return { name: "NCCL pair (0 1)", role: "pair" };
  return { name: `${whole.name} pair`, role: "pair" };
}

function libraryOf(backend: CommunicatorBackend): string {
  return backend.toUpperCase();
}
