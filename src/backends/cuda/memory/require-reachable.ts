/**
 * Refuses programs that copy or signal between GPUs of different hosts, whose memory CUDA cannot map. NCCL's transfers
 * are no such commands.
 */
import { at, invariant } from "../../../support/invariant.ts";
import { unreachable } from "../../../support/unreachable.ts";
import type { NcclCall } from "../nccl/plan-builder.ts";
import type { Address } from "../ops/address.ts";
import type { DeviceOp, DeviceOps } from "../ops/device-op.ts";
import { commandPlace } from "../ops/list-notes.ts";
import type { DeviceList } from "../run/prepared-list.ts";
import { CommonError, rankName, type Rendezvous } from "../world.ts";

/** A command that reaches the memory of `peer`, to signal it or for data. */
interface Crossing {
  readonly command: number;
  readonly peer: number;
  readonly signals: boolean;
}

/** The first command of the rank that reaches memory of another host. */
export function firstCrossing(
  { rank, ops }: Pick<DeviceOps, "rank" | "ops">,
  hosts: readonly number[],
): Crossing | null {
  for (const op of ops) {
    for (const address of addressesOf(op)) {
      if (address.space !== "symmetric" && address.space !== "word") continue;
      if (hosts[address.rank] === hosts[rank]) continue;
      return { command: op.command, peer: address.rank, signals: address.space === "word" };
    }
  }
  return null;
}

type World = Pick<Rendezvous, "rank" | "hosts" | "hostNames" | "allGather">;

/** Collective: all ranks call it together, and fail together, for the lowest such rank. Throws `gpu-unsupported`. */
export async function requireReachable(list: DeviceList, world: World): Promise<void> {
  const { hosts, hostNames } = world;
  if (hostNames.length <= 1) return;
  const own = describe(list, world);
  const all = await world.allGather(new TextEncoder().encode(own === null ? "" : JSON.stringify(own)));
  const rank = all.findIndex(({ length }) => length > 0);
  if (rank < 0) return;
  const [stream, command, found] = readDescription(at(all, rank));
  const perHost = hosts.filter((host) => host === 0).length;
  throw new CommonError([
    {
      code: "gpu-unsupported",
      message: "the program reaches memory of GPUs on another host",
      place: { kind: "command", rank, stream, text: command },
      found,
      expected: "copies and signals within a host, NCCL between hosts",
      help: `lower it with --devices-per-host ${perHost}, so that NCCL moves data between hosts, or with --backend nccl`,
    },
  ]);
}

type Description = readonly [stream: number, command: string, found: string];

function describe({ ops, unjoined, notes }: DeviceList, { rank, hosts, hostNames }: World): Description | null {
  if (firstCrossing(ops, hosts) === null) return null;
  // Joined operations have the number of their first command.
  const crossing = firstCrossing(unjoined(), hosts);
  invariant(crossing !== null, "joining commands adds no addresses", { rank });
  const { command, peer, signals } = crossing;
  const [own, other] = [rankName(rank, { hosts, hostNames }), rankName(peer, { hosts, hostNames })];
  const { stream, text } = commandPlace(notes, command);
  return [stream, text, `${own} ${signals ? "signals" : "reaches the memory of"} ${other}`];
}

/** Written by a process of the same world. */
function readDescription(bytes: Uint8Array): Description {
  const value: unknown = JSON.parse(new TextDecoder().decode(bytes));
  const [stream, command, found] = Array.isArray(value) ? value.map(String) : [];
  return [Number(stream ?? 0), command ?? "", found ?? ""];
}

// The addresses that a device operation names, its own memory included.

function addressesOf(op: DeviceOp): readonly Address[] {
  switch (op.kind) {
    case "copy":
    case "copy2d":
      return [op.to, op.from];
    case "batch":
      return op.operations.map(({ address }) => address);
    case "launch":
      return op.parameters.filter((parameter) => typeof parameter !== "number");
    case "gemm":
      return [op.a, op.b, op.c, op.bias, op.addend ?? null, ...(op.scales ?? [])].filter((address) => address !== null);
    case "attention":
      return [...op.operands, op.scratch];
    case "transfer":
      return op.calls.flatMap(callAddresses);
    case "record":
    case "wait":
      return [];
    default:
      return unreachable(op);
  }
}

function callAddresses(call: NcclCall<Address>): readonly Address[] {
  return "piece" in call ? [call.piece] : [call.from, call.to];
}
