/**
 * Gives each communication outside of loops a matmul, linear or attention op to run beside, if the statements from it to
 * its Wait have none. Either it comes before the nearest such op above, with what makes its operand:
 *
 *   T3 = linear(T0, T2); Communication 1 (input=T4, output=T5); Wait Communication 1; T6 = linear(T3, T5)
 * becomes
 *   Communication 1 (input=T4, output=T5); T3 = linear(T0, T2); Wait Communication 1; T6 = linear(T3, T5)
 *
 * or, if its operand does not exist there, the nearest op above comes after it that nothing has read by then, such as
 * the gradient of a weight:
 *
 *   T3 = matmul(T0, T1); T4 = add(T2, T2); Communication 1 (input=T4, output=T5); Wait Communication 1
 * becomes
 *   T4 = add(T2, T2); Communication 1 (input=T4, output=T5); T3 = matmul(T0, T1); Wait Communication 1
 *
 * A loop whose matmul comes before its communication counts as such an op for the first: in a backward pass, what the
 * gradient of a weight reads is gathered while the loop computes the gradient that its end scatters. Communications of
 * the CUDA backend come before such loops alone, whose kernels have streams of their own.
 *
 * Communications with at most Allocates between them are first put in the order of their Waits. An op that alone covers
 * another communication stays there. At most two communications of a team are under way.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { TeamCommunication, ExprId, HostProgram, Statement } from "../../host/nodes.ts";
import { isOp, isTeamCommunication, statementAccess, walk } from "../../host/traverse.ts";
import { knownBytes } from "../../ir/sizes.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Pass } from "../pass.ts";
import { sameMesh } from "../routes/layouts.ts";
import {
  blocksOf,
  both,
  hasPeers,
  usesConflict,
  mostUnderWay,
  runsBeside,
  type BlockUses,
  usesIn,
} from "./statement-blocks.ts";

/** Blocks above a communication that are looked at: as many as a layer has, and the time stays linear. */
const reach = 64;

/** An op comes after a communication if this keeps at most so many bytes for each byte that is communicated. */
const mostKept = 8;

export const coverCommunications: Pass<"communicating", "communicating"> = {
  name: "cover-communications",
  from: "communicating",
  to: "communicating",
  run: (program, { options }) => {
    if (options.nvfuserLimits) return program;
    const body = covered(program);
    return body.every((statement, i) => statement === program.body[i]) ? program : { ...program, body };
  },
};

/**
 * Statements that stay together: a communication, the Wait for one, an op or a loop that can cover one, another statement
 * that may move, or anything else.
 */
interface Block {
  readonly kind: "post" | "wait" | "cover" | "loop" | "light" | "fixed";
  readonly statements: readonly Statement[];
  /** Those of a Wait are its communication's. */
  readonly uses: BlockUses;
  /** The communication of a post or a Wait. */
  readonly of: TeamCommunication | null;
}

function covered(program: HostProgram): readonly Statement[] {
  const { body } = program;
  const hasPost = body.some((each) => isTeamCommunication(each) && hasPeers(each));
  if (!hasPost || !body.some(({ kind }) => covering.has(kind))) return body;
  const reorders = isUniform(program);
  const classes = classified(program, reorders);
  const blocks = reorders ? soonestFirst(classes) : classes;
  const covers = coversOf(blocks);
  const inputs = new Set(program.inputs);
  const bytesOf = (id: TensorId): number => knownBytes(at(program.tensors, id));
  const isWorth = ({ output }: TeamCommunication, { uses }: Block): boolean => {
    const kept = [...uses.reads].filter((id) => !inputs.has(id)).reduce((sum, id) => sum + bytesOf(id), 0);
    return kept <= mostKept * bytesOf(output);
  };
  const placed: Block[] = [];
  /** The teams of the communications under way. */
  const underWay = new Map<ExprId, string>();
  for (const block of blocks) {
    placed.push(block);
    const { kind, of } = block;
    if (kind === "wait" && of !== null) underWay.delete(of.id);
    if (kind !== "post" || of === null) continue;
    const team = of.team.join();
    if (covers.get(of.id) === 0) {
      const others = [...underWay.values()].filter((each) => each === team).length;
      const isCovered =
        hoist(placed, others, reorders) || (runsBeside(of) && defer(placed, covers, (op) => isWorth(of, op)));
      if (isCovered) covers.set(of.id, 1);
    }
    underWay.set(of.id, team);
  }
  return placed.flatMap(({ statements }) => statements);
}

function classified(program: HostProgram, reorders: boolean): readonly Block[] {
  const usesOf = usesIn(program);
  const posted = new Map<ExprId, TeamCommunication>();
  return blocksOf(program.body).map((statements): Block => {
    const first = at(statements, 0);
    const uses = usesOf(statements);
    if (isTeamCommunication(first) && hasPeers(first)) {
      posted.set(first.id, first);
      return { kind: "post", statements, uses, of: first };
    }
    const awaited = first.kind === "Wait" ? posted.get(first.target) : undefined;
    if (awaited !== undefined) return { kind: "wait", statements, uses: usesOf([awaited]), of: awaited };
    return { kind: isCoveringLoop(statements, reorders) ? "loop" : kindOf(first), statements, uses, of: null };
  });
}

const covering: ReadonlySet<string> = new Set(["Matmul", "Linear", "GroupedMatmul", "Sdpa", "SdpaBackward"]);

const communicating: ReadonlySet<string> = new Set(["Communication", "CollectivePermute", "P2PCommunication"]);

function kindOf(statement: Statement): "cover" | "light" | "fixed" {
  if (covering.has(statement.kind)) return "cover";
  const moves = isOp(statement) || statement.kind === "PostOnStream" || statement.kind === "Allocate";
  return moves ? "light" : "fixed";
}

/** Whether it is a loop whose ops run before it communicates, or that does not, if communications keep their order. */
function isCoveringLoop(statements: readonly Statement[], reorders: boolean): boolean {
  if (at(statements, 0).kind !== "GetCurrentStream") return false;
  const [first, ...others] = walk(statements).filter(({ kind }) => covering.has(kind) || communicating.has(kind));
  if (first === undefined || !covering.has(first.kind)) return false;
  return reorders || !others.some(({ kind }) => communicating.has(kind));
}

/** By communication with a Wait: the ops and loops between them. */
function coversOf(blocks: readonly Block[]): Map<ExprId, number> {
  const covers = new Map<ExprId, number>();
  const before = new Map<ExprId, number>();
  let count = 0;
  for (const { kind, statements, of } of blocks) {
    if (kind === "cover" || at(statements, 0).kind === "GetCurrentStream") count++;
    if (kind === "post" && of !== null) before.set(of.id, count);
    if (kind === "wait" && of !== null) covers.set(of.id, count - (before.get(of.id) ?? count));
  }
  return covers;
}

/**
 * The communications of a team that follow each other, with at most Allocates between them, in the order of their Waits.
 * They run one after the other, and an op that covers the first may leave the second no room.
 */
function soonestFirst(blocks: readonly Block[]): readonly Block[] {
  const waits = new Map<ExprId, number>();
  for (const [i, { kind, of }] of blocks.entries()) if (kind === "wait" && of !== null) waits.set(of.id, i);
  const waitOf = ({ of }: Block): number => (of === null ? 0 : (waits.get(of.id) ?? blocks.length));
  /** From the last block to the first. */
  const ordered: Block[] = [];
  for (const block of blocks.toReversed()) {
    let place = ordered.length;
    for (let j = place - 1; block.kind === "post" && j >= Math.max(0, ordered.length - reach); j--) {
      const next = at(ordered, j);
      const isSooner = next.kind === "post" && waitOf(next) < waitOf(block);
      if ((!isSooner && at(next.statements, 0).kind !== "Allocate") || usesConflict(block.uses, next.uses)) break;
      if (isSooner && teamOf(next) === teamOf(block)) place = j;
    }
    ordered.splice(place, 0, block);
  }
  return ordered.toReversed();
}

/**
 * Whether all ranks have all statements, so that they can reorder communications alike. A rank's program has the tensors
 * of all ranks: what is made on some ranks only is in statements that others lack.
 */
function isUniform({ body, tensors, inputs }: HostProgram): boolean {
  const meshes = walk(body).flatMap((statement) => {
    const { reads, writes } = statementAccess(statement);
    return [...reads, ...writes].map((id) => at(tensors, id).mesh);
  });
  const first = meshes[0] ?? null;
  const given = new Set(inputs);
  const isSame = ({ id, mesh }: Tensor): boolean => mesh === null || given.has(id) || sameMesh(mesh, first);
  return first !== null && meshes.every((mesh) => sameMesh(mesh, first)) && tensors.every(isSame);
}

/**
 * Moves the last block, a communication with `others` of its team under way, before the nearest op that can cover it,
 * with the light blocks that it needs. Whether it did.
 */
function hoist(placed: Block[], others: number, reorders: boolean): boolean {
  const post = at(placed, placed.length - 1);
  const team = teamOf(post);
  const isBeside = post.of !== null && runsBeside(post.of);
  const moving = [post];
  const staying: Block[] = [];
  let { uses } = post;
  let besides = others;
  for (let j = placed.length - 2; j >= Math.max(0, placed.length - reach) && besides < mostUnderWay; j--) {
    const block = at(placed, j);
    const isNeeded = usesConflict(block.uses, uses);
    if (block.kind === "fixed" || (isNeeded && block.kind !== "light")) return false;
    if (isNeeded) {
      moving.unshift(block);
      uses = both(uses, block.uses);
      continue;
    }
    staying.unshift(block);
    if (block.kind === "loop" || (block.kind === "cover" && isBeside)) {
      placed.splice(j, placed.length - j, ...moving, ...staying);
      return true;
    }
    if (block.kind === "post" && !reorders) return false;
    if (block.of !== null && teamOf(block) === team) besides += block.kind === "wait" ? 1 : -1;
  }
  return false;
}

/**
 * Moves the nearest op above the last block, a communication, after it, if nothing between them needs the op's place,
 * and no other communication its cover. Whether it did.
 */
function defer(placed: Block[], covers: Map<ExprId, number>, isWorth: (op: Block) => boolean): boolean {
  const last = at(placed, placed.length - 1);
  let passed = last.uses;
  /** Awaited since, without their communications; and communications that began since. */
  const awaited = new Set<ExprId>();
  const begun = new Set<ExprId>();
  for (let j = placed.length - 2; j >= Math.max(0, placed.length - reach); j--) {
    const block = at(placed, j);
    if (block.kind === "fixed" || block.kind === "loop") return false;
    const losing = [...awaited].filter((id) => !begun.has(id));
    if (
      block.kind === "cover" &&
      !usesConflict(block.uses, passed) &&
      isWorth(block) &&
      losing.every((id) => (covers.get(id) ?? 0) > 1)
    ) {
      placed.splice(j, 1);
      placed.push(block);
      for (const id of losing) covers.set(id, (covers.get(id) ?? 0) - 1);
      for (const id of begun) if (!awaited.has(id)) covers.set(id, (covers.get(id) ?? 0) + 1);
      return true;
    }
    if (block.of !== null) (block.kind === "wait" ? awaited : begun).add(block.of.id);
    passed = both(passed, block.uses);
  }
  return false;
}

function teamOf({ of }: Block): string {
  invariant(of !== null, "a post and a Wait have a communication");
  return of.team.join();
}
