/** Makes the list of each of several ranks from the one that was recorded for all of them (alike.ts). */
import type { CommandList, OneSided, UnlinkedCommand } from "../../commands/command-list.ts";
import { refOf, type View } from "../../commands/view.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Alike, MovingOperands, RankView } from "./alike.ts";

/** The lists of `alike.ranks`. They share what is equal on several of them. */
export function alikeLists(alike: Alike, list: Omit<CommandList, "rank">): readonly CommandList[] {
  const families = new Map<string, Map<string, UnlinkedCommand>>();
  const moving = [...alike.moving].map(([index, operands]) => {
    const command = at(list.commands, index);
    const unplaced = moved(command, operands, (view) => (view.moves === undefined ? view : { ...view, offset: -1 }));
    const text = JSON.stringify(unplaced);
    const family = families.get(text) ?? new Map<string, UnlinkedCommand>();
    families.set(text, family);
    return { index, command, operands, family };
  });
  const pairsOn = rankPairs(alike, list.pairs);
  return alike.ranks.map((rank, k) => {
    const commands = [...list.commands];
    for (const { index, command, operands, family } of moving) {
      const offsets = offsetsOn(operands, k);
      const known = family.get(offsets) ?? moved(command, operands, (view) => viewOn(view, k));
      family.set(offsets, known);
      commands[index] = known;
    }
    return { ...list, rank, commands, pairs: pairsOn(k) };
  });
}

/** The offsets of the operands that move, on rank number k. */
function offsetsOn({ inputs, outputs }: MovingOperands, k: number): string {
  let text = "";
  for (const views of [inputs, outputs]) {
    for (const { offset, moves } of views) if (moves !== undefined) text += ` ${offset + at(moves, k)}`;
  }
  return text;
}

function viewOn(view: RankView, k: number): View {
  const { moves, ...fixed } = view;
  return moves === undefined ? view : { ...fixed, offset: view.offset + at(moves, k) };
}

/** The command with other operands. */
function moved(command: UnlinkedCommand, operands: MovingOperands, change: (view: RankView) => View): UnlinkedCommand {
  const [inputs, outputs] = [operands.inputs.map(change), operands.outputs.map(change)];
  if (command.kind === "launch") return { ...command, inputs: inputs.map(refOf), outputs: outputs.map(refOf) };
  invariant(command.kind === "copy", "only launches and copies have operands that move", command);
  return { ...command, source: at(inputs, 0), destination: at(outputs, 0) };
}

/** The pairs of rank number k: with its peers, and counted for each of them. */
function rankPairs({ peers, ranks }: Alike, pairs: readonly OneSided[]): (k: number) => readonly OneSided[] {
  const most = peers.reduce((largest, own) => own.reduce((a, b) => Math.max(a, b), largest), ranks.length);
  const views = new Map<string, View>();
  const fixed = pairs.map(({ view }) => {
    const text = JSON.stringify(view);
    const known = views.get(text) ?? view;
    views.set(text, known);
    return known;
  });
  const counts = { send: new Int32Array(most + 1), recv: new Int32Array(most + 1) };
  return (k) => {
    counts.send.fill(0);
    counts.recv.fill(0);
    return pairs.map(({ protocol, role }, i): OneSided => {
      const peer = at(at(peers, i), k);
      const sequence = at(counts[role], peer);
      counts[role][peer] = sequence + 1;
      return { protocol, role, peer, sequence, view: viewOn(at(fixed, i), k) };
    });
  };
}
