/** Makes the list of each rank of a class from the one that was recorded for all of them (alike.ts). */
import type { CommandList, OneSided, UnlinkedCommand } from "../../commands/command-list.ts";
import type { Origin, StreamInfo } from "../../commands/command.ts";
import { refOf, type View } from "../../commands/view.ts";
import { differs, keyOfStatement, statementOn } from "../../host/alike/rank-rules.ts";
import type { Statement } from "../../host/nodes.ts";
import { at, invariant, getOrMake } from "../../support/invariant.ts";
import { type Alike, type MovingOperands, type RankView, viewOn } from "./alike.ts";

/** What was recorded for all ranks of a class at once. */
export interface AlikeRecording {
  readonly alike: Alike;
  /** Of the first rank. */
  readonly list: Omit<CommandList, "rank">;
  /** The list of rank number k. Lists share what is equal on several ranks. */
  readonly listOn: (k: number) => CommandList;
}

/** `textOf` prints a statement of any rank. */
export function alikeRecording(
  alike: Alike,
  list: Omit<CommandList, "rank">,
  textOf: (statement: Statement) => string,
): AlikeRecording {
  const families = new Map<string, Map<string, UnlinkedCommand>>();
  const moving = [...alike.moving].map(([index, operands]) => {
    const command = at(list.commands, index);
    const unplaced = moved(command, operands, (view) => (view.moves === undefined ? view : { ...view, offset: -1 }));
    const text = JSON.stringify(unplaced);
    const family = getOrMake(families, text, () => new Map<string, UnlinkedCommand>());
    return { index, command, operands, family };
  });
  const pairsOn = rankPairs(alike, list.pairs);
  const originsOn = rankOrigins(alike, list.origins, textOf);
  const listOn = (k: number): CommandList => {
    const rank = at(alike.ranks, k);
    const commands = [...list.commands];
    for (const { index, command, operands, family } of moving) {
      const offsets = offsetsOn(operands, k);
      const known = getOrMake(family, offsets, () => moved(command, operands, (view) => viewOn(view, k)));
      commands[index] = known;
    }
    for (const [index, vary] of alike.varying) commands[index] = vary(at(commands, index), k);
    return {
      ...list,
      rank,
      commands,
      pairs: pairsOn(k),
      peerCollectives: alike.collectives.map((collectiveOn) => collectiveOn(k)),
      streams: streamsOn(alike, list.streams, k),
      origins: originsOn(rank),
    };
  };
  return { alike, list, listOn };
}

function streamsOn({ streamNames }: Alike, streams: readonly StreamInfo[], k: number): readonly StreamInfo[] {
  if (streamNames.size === 0) return streams;
  return streams.map((stream) => {
    const names = streamNames.get(stream.id);
    return names === undefined ? stream : { ...stream, name: at(names, k) };
  });
}

/** The origins of a rank: their statements name its teams and peers. Ranks with equal texts share them. */
function rankOrigins(
  { rules, statements }: Alike,
  origins: readonly Origin[],
  textOf: (statement: Statement) => string,
): (rank: number) => readonly Origin[] {
  if (rules === null || !differs(rules)) return () => origins;
  const differing = [...statements].flatMap(([origin, statement]) => {
    const keyOn = keyOfStatement(rules, statement);
    return keyOn === null ? [] : [{ origin, statement, keyOn, byKey: new Map<string, Origin>() }];
  });
  const positions = new Map<Origin, number[]>(differing.map(({ origin }) => [origin, []]));
  for (const [position, origin] of origins.entries()) positions.get(origin)?.push(position);
  return (rank) => {
    const own = [...origins];
    for (const { origin, statement, keyOn, byKey } of differing) {
      const key = keyOn(rank);
      const known = getOrMake(byKey, key, () => ({
        ...origin,
        statement: textOf(statementOn(rules, statement, rank)),
      }));
      for (const position of positions.get(origin) ?? []) own[position] = known;
    }
    return own;
  };
}

/** The offsets of the operands that move, on rank number k. */
function offsetsOn({ inputs, outputs }: MovingOperands, k: number): string {
  let text = "";
  for (const views of [inputs, outputs]) {
    for (const { offset, moves } of views) if (moves !== undefined) text += ` ${offset + at(moves, k)}`;
  }
  return text;
}

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
    return getOrMake(views, text, () => view);
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
