/**
 * Sinks each Wait for a library's transfer, outside of loops, to just before the first statement that needs it: one that
 * reads or overwrites what the communication writes, or overwrites what that reads. Without one it goes to the end. The
 * transfer then runs under the statements in between.
 *
 *   Communication 0 (input=T1, output=T2); Wait Communication 0; T3 = mul(T0, T0); T4 = add(T2, T3)
 * becomes
 *   Communication 0 (input=T1, output=T2); T3 = mul(T0, T0); Wait Communication 0; T4 = add(T2, T3)
 *
 * A statement sinks with the Wait if only the caller reads its results. At most two communications of a team are under
 * way, because their operands stay in memory: the third comes after the Wait for the first.
 *
 * The two loops of a Stream loop count as one statement. Between them, a Wait would come too late for the worker
 * streams, which wait for the caller's stream in the first.
 */
import type { TeamCommunication, ExprId, HostProgram, Statement } from "../../host/nodes.ts";
import { statementAccess, isOp, isTeamCommunication, walk } from "../../host/traverse.ts";
import { at } from "../../support/invariant.ts";
import type { Pass } from "../pass.ts";
import { blocksOf, both, usesConflict, mostUnderWay, runsBeside, type BlockUses, usesIn } from "./statement-blocks.ts";

export const sinkWaits: Pass<"communicating", "communicating"> = {
  name: "sink-waits",
  from: "communicating",
  to: "communicating",
  run: (program, { options }) => {
    if (options.nvfuserLimits) return program;
    const body = sunk(program);
    return body.every((statement, i) => statement === program.body[i]) ? program : { ...program, body };
  },
};

/** A Wait on its way, with the statements that sink with it. The uses are theirs and the communication's. */
interface Sinking extends BlockUses {
  readonly team: string;
  readonly statements: readonly Statement[];
}

function sunk(program: HostProgram): readonly Statement[] {
  const usesOf = usesIn(program);
  const isLast = lastStatements(program);
  const posted = new Map<ExprId, TeamCommunication>();
  let sinking: readonly Sinking[] = [];
  const place = (placed: readonly Sinking[]): readonly Statement[] => {
    if (placed.length > 0) sinking = sinking.filter((each) => !placed.includes(each));
    return placed.flatMap(({ statements }) => statements);
  };
  const body = blocksOf(program.body).flatMap((block): readonly Statement[] => {
    const first = at(block, 0);
    if (first.kind === "Wait") {
      const awaited = posted.get(first.target);
      if (awaited === undefined || !runsBeside(awaited)) return block;
      sinking = [...sinking, { team: awaited.team.join(), statements: [first], ...usesOf([awaited]) }];
      return [];
    }
    const uses = usesOf(block);
    const needed = ordersStreams(block) ? sinking : sinking.filter((each) => usesConflict(each, uses));
    const [only] = needed;
    if (only !== undefined && needed.length === 1 && isLast(first)) {
      const joined = { team: only.team, statements: [...only.statements, first], ...both(only, uses) };
      sinking = sinking.map((each) => (each === only ? joined : each));
      return [];
    }
    if (!isTeamCommunication(first)) return [...place(needed), ...block];
    posted.set(first.id, first);
    const ofTeam = sinking.filter((each) => each.team === first.team.join() && !needed.includes(each));
    const earliest = ofTeam.slice(0, Math.max(0, ofTeam.length + 1 - mostUnderWay));
    return [...place(sinking.filter((each) => needed.includes(each) || earliest.includes(each))), ...block];
  });
  return [...body, ...place(sinking)];
}

/** Whether the block orders streams in another form than that of a Stream loop, as in programs written by hand. */
function ordersStreams(block: readonly Statement[]): boolean {
  const [, begin, chunks, ...rest] = block;
  const isBegin = begin?.kind === "ForLoop" && begin.body.map(({ kind }) => kind).join(" ") === startOfWorkers;
  if (isBegin && chunks !== undefined && rest.length === 0) return false;
  return walk(block).some(({ kind }) => kind === "SetCurrentStream" || kind === "Synchronize");
}

const startOfWorkers = "SetCurrentStream Synchronize";

/** Whether only the caller reads the results of an op or a unit. */
function lastStatements({ body, outputs }: HostProgram): (statement: Statement) => boolean {
  const results = new Set(outputs);
  for (const statement of walk(body)) for (const tensor of statementAccess(statement).reads) results.delete(tensor);
  return (statement) =>
    (isOp(statement) || statement.kind === "PostOnStream") &&
    statementAccess(statement).writes.every((tensor) => results.has(tensor));
}
