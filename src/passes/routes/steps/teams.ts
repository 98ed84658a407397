/**
 * The devices that take part in a resharding step, and its root.
 *
 *   Allgather, Scatter, AllToAll,     one team per rank: the devices of the mesh that differ only along the changing type
 *   Allreduce, ReduceScatter
 *   Broadcast                         one team: the receiving mesh, with the first sender as root
 *   Gather, Reduce                    one team per receiver: the devices that together have its data
 *   Scatter to another mesh           one team per set of receivers that differ only along the changing type
 *   SendRecv                          one team per receiver
 *   AllToAllV, CollectivePermute      per rank, the devices that differ only along types that change; all of two meshes
 *
 * A team lists devices in mesh order. A root from outside the mesh comes last. Roots are positions in the team. If
 * several senders hold the same data, a receiver prefers itself, then the sender at its own position in a mesh of the
 * same shape, then the first.
 */
import { collectives, isRooted } from "../../../host/collectives.ts";
import { type DeviceMesh, sameMeshShape } from "../../../ir/device-mesh.ts";
import type { DIDType } from "../../../ir/domain.ts";
import { at, groupedBy, invariant, unreachable, pushTo } from "../../../support/invariant.ts";
import type { ReshardingStep } from "./step.ts";

interface Team {
  readonly team: readonly number[];
  /** The root's position in the team. */
  readonly root: number | null;
}

export function stepTeams(step: ReshardingStep, from: DeviceMesh, to: DeviceMesh): (rank: number) => readonly Team[] {
  const { kind, type, kept } = step;
  if (from.equals(to)) {
    if (kind === "AllToAllV" || kind === "CollectivePermute") return teamsBeside(from, [...kept.keys()]);
    invariant(type !== null, "a DID type changes on one mesh", step);
    const root = isRooted(kind) ? 0 : null;
    return (rank) => (from.has(rank) ? [{ team: from.slice(rank, type), root }] : []);
  }
  const having = new Map<number, Team[]>();
  for (const each of teamsBetween(step, from, to)) {
    for (const rank of each.team) {
      pushTo(having, rank, each);
    }
  }
  return (rank) => having.get(rank) ?? [];
}

export function teamsBetween(step: ReshardingStep, from: DeviceMesh, to: DeviceMesh): readonly Team[] {
  const { kind, type } = step;
  const receivers = to.devices;
  const betweenMeshes = kind === "CollectivePermute" ? "union" : collectives[kind].betweenMeshes;
  switch (betweenMeshes) {
    case "all":
      return [rooted(receivers, at(from.devices, 0))];
    case "pair":
      return receivers.map((receiver) => {
        const sender = senderFor(step, from, to, receiver);
        return { team: sender === receiver ? [sender] : [sender, receiver], root: 0 };
      });
    case "one":
      invariant(type !== null, "a DID type is gathered", step);
      return receivers.map((receiver) => rooted(from.slice(senderFor(step, from, to, receiver), type), receiver));
    case "shares": {
      invariant(type !== null, "a DID type is scattered", step);
      const sets = receivers
        .filter((device) => to.coordinate(device, type) === 0)
        .map((device) => to.slice(device, type));
      return sets.map((team) => {
        const holders = sendersFor(step, from, to, at(team, 0));
        return rooted(team, holders.find((device) => team.includes(device)) ?? at(holders, 0));
      });
    }
    case "union":
      return [{ team: [...from.devices, ...receivers.filter((device) => !from.has(device))], root: null }];
    case null:
      return [];
    default:
      return unreachable(betweenMeshes);
  }
}

/** The devices of the mesh that have the rank's coordinates along the types `fixed`. */
function teamsBeside(mesh: DeviceMesh, fixed: readonly DIDType[]): (rank: number) => readonly Team[] {
  const keyOf = (device: number): string => fixed.map((type) => mesh.coordinate(device, type)).join();
  const teams = groupedBy(mesh.devices, keyOf);
  return (rank) => (mesh.has(rank) ? [{ team: teams.get(keyOf(rank)) ?? [], root: null }] : []);
}

/** The devices of `from` that hold the receiver's share, apart from the type that changes. */
function sendersFor({ kept }: ReshardingStep, from: DeviceMesh, to: DeviceMesh, receiver: number): readonly number[] {
  const wanted = [...kept].map(([type, source]): readonly [DIDType, number] => [source, to.coordinate(receiver, type)]);
  return from.devices.filter((device) =>
    wanted.every(([type, position]) => from.coordinate(device, type) === position),
  );
}

function senderFor(step: ReshardingStep, from: DeviceMesh, to: DeviceMesh, receiver: number): number {
  const holders = sendersFor(step, from, to, receiver);
  if (holders.includes(receiver)) return receiver;
  const opposite = from.devices[to.devices.indexOf(receiver)];
  return sameMeshShape(from, to) && opposite !== undefined && holders.includes(opposite) ? opposite : at(holders, 0);
}

/** The team, with the root appended if it is not in it. */
function rooted(team: readonly number[], root: number): Team {
  const position = team.indexOf(root);
  return position >= 0 ? { team, root: position } : { team: [...team, root], root: team.length };
}
