/** Linked transfers: their participants are the commands of the ranks, and the halves fit by link's own checks. */
import { disagreement, unfitViews, viewMismatch } from "../../../commands/link/match/problems.ts";
import { linkedCommandAt, commandCount, type LinkedTransfer, type Program } from "../../../commands/program.ts";
import { sameOperation } from "../../../commands/collectives.ts";
import type { PointToPoint } from "../../../commands/command.ts";
import { sameNumbers } from "../../../commands/view.ts";
import { type Diagnostic, DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { at } from "../../../support/invariant.ts";
import { demand, isCount } from "./demand.ts";

export function checkTransfer(program: Program, transfer: LinkedTransfer, id: number): void {
  const { ranks } = program;
  const where = `transfers[${id}]`;
  demand(transfer.id === id, `${where}.id`, transfer.id, String(id));
  demand(transfer.participants.length > 0, `${where}.participants`, 0, "at least one");
  const uses = transfer.participants.map(({ rank, command, operation }, i) => {
    const place = `${where}.participants[${i}]`;
    const own = isCount(rank) ? ranks[rank] : undefined;
    const posted = own !== undefined && isCount(command, commandCount(own)) ? linkedCommandAt(own, command) : undefined;
    demand(posted?.kind === "transfer", place, { rank, command }, "a transfer command");
    demand(own?.transferOf[command] === id, place, { rank, command }, `a command of transfer ${id}`);
    demand(
      posted.communicator === transfer.communicator,
      `${where}.communicator`,
      transfer.communicator,
      posted.communicator,
    );
    demand(
      operation === posted.operation || sameOperation(operation, posted.operation),
      `${place}.operation`,
      operation,
      "the operation of its command",
    );
    return { rank, command, operation };
  });
  demand(
    new Set(uses.map(({ rank, command }) => `${rank} ${command}`)).size === uses.length,
    `${where}.participants`,
    uses.length,
    "separate commands",
  );
  if (transfer.kind === "group") return checkEdges(program, transfer, where);
  demand(transfer.kind === "collective", `${where}.kind`, transfer, "collective or group");
  const collective = uses.flatMap(({ rank, command, operation }) =>
    operation.kind === "collective" ? [{ rank, command, operation }] : [],
  );
  const first = collective[0];
  demand(
    first !== undefined && collective.length === uses.length,
    `${where}.participants`,
    uses.length,
    "collectives only",
  );
  const { team } = first.operation;
  demand(
    sameNumbers(
      team,
      uses.map(({ rank }) => rank),
    ),
    `${where}.participants`,
    uses.map(({ rank }) => rank),
    `ranks ${team.join(", ")}, the team`,
  );
  for (const use of collective) refuse(disagreement(ranks, first, use));
  refuse(unfitViews(ranks, collective));
}

const ends = { send: "a send of a participant", recv: "a recv of a participant" } as const;

function checkEdges(
  { ranks }: Program,
  { participants, edges }: Extract<LinkedTransfer, { kind: "group" }>,
  where: string,
): void {
  const place = `${where}.edges`;
  /** By participant: the number of its first op over all of them. */
  const bases: number[] = [];
  let count = 0;
  for (const { operation } of participants) {
    bases.push(count);
    count += operation.kind === "group" ? operation.ops.length : NaN;
  }
  const used = new Uint8Array(count);
  const opOf = (participant: number, op: number, type: "send" | "recv"): PointToPoint => {
    const posted = participants[participant];
    const found = posted?.operation.kind === "group" && isCount(op) ? posted.operation.ops[op] : undefined;
    demand(found?.type === type, place, { participant, op }, ends[type]);
    const number = at(bases, participant) + op;
    demand(used[number] === 0, place, { participant, op }, "one edge per send and recv");
    used[number] = 1;
    return found;
  };
  for (const { from, sendOp, to, recvOp } of edges) {
    const [send, recv] = [opOf(from, sendOp, "send"), opOf(to, recvOp, "recv")];
    const [source, target] = [at(participants, from), at(participants, to)];
    demand(
      send.peer === target.rank && recv.peer === source.rank,
      place,
      [send.peer, recv.peer],
      "peers that name each other",
    );
    refuse(
      viewMismatch(
        ranks,
        { rank: source.rank, command: source.command, view: send.view },
        { rank: target.rank, command: target.command, view: recv.view },
      ),
    );
  }
  demand(2 * edges.length === count, place, 2 * edges.length, `${count}, one end for each send and recv`);
}

function refuse(problem: Diagnostic | null): void {
  if (problem !== null) throw new DiagnosticError([problem]);
}
