/**
 * One iteration of a loop as a straight list of statements, each with the branches around it and the current stream. A
 * predicate has one value in an iteration: branches on equal predicates are taken together.
 */
import type { ForLoop, HostProgram, Statement, StreamId } from "../../host/nodes.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import { sameScalar } from "../../ir/scalar/fold.ts";

/** A branch that a statement is in. */
export interface Guard {
  readonly predicate: Scalar;
  readonly taken: boolean;
}

export interface Step {
  readonly statement: Statement;
  readonly guards: readonly Guard[];
  /** Null if unknown: before the first SetCurrentStream, or after branches that leave different streams current. */
  readonly stream: StreamId | null;
}

/** The statements of `loop` in order. A nested loop is one step. A branch is a step before the statements in it. */
export function iterationSteps(loop: ForLoop): readonly Step[] {
  const steps: Step[] = [];
  const visit = (body: readonly Statement[], guards: readonly Guard[], entered: StreamId | null): StreamId | null => {
    let stream = entered;
    for (const statement of body) {
      steps.push({ statement, guards, stream });
      if (statement.kind === "SetCurrentStream") stream = statement.stream;
      else if (statement.kind === "ForLoop") stream = null;
      else if (statement.kind === "IfThenElse") {
        const { predicate } = statement;
        const then = visit(statement.then, [...guards, { predicate, taken: true }], stream);
        const otherwise = visit(statement.else, [...guards, { predicate, taken: false }], stream);
        stream = then === otherwise ? then : null;
      }
    }
    return stream;
  };
  visit(loop.body, [], null);
  return steps;
}

/** Whether `given` implies all of `guards`. */
export function follows(guards: readonly Guard[], given: readonly Guard[]): boolean {
  return guards.every((guard) => given.some((other) => sameGuard(guard, other)));
}

/** Whether `given` implies that one of `alternatives` holds; of `p` and `not p` one always does. */
export function covers(alternatives: readonly (readonly Guard[])[], given: readonly Guard[]): boolean {
  if (alternatives.some((guards) => follows(guards, given))) return true;
  const possible = alternatives.filter(
    (guards) => !guards.some((guard) => given.some((other) => excludes(guard, other))),
  );
  const open = possible.flat().find((guard) => !given.some((other) => sameGuard(guard, other)));
  if (open === undefined) return false;
  return [true, false].every((taken) => covers(possible, [...given, { ...open, taken }]));
}

function sameGuard(a: Guard, b: Guard): boolean {
  return a.taken === b.taken && sameScalar(a.predicate, b.predicate);
}

function excludes(a: Guard, b: Guard): boolean {
  return a.taken !== b.taken && sameScalar(a.predicate, b.predicate);
}

/** Whether the stream is the one of index value `index`. */
export function isStreamOf({ streams }: Pick<HostProgram, "streams">, id: StreamId | null, index: Scalar): boolean {
  const own = id === null ? null : (streams[id]?.index ?? null);
  return own !== null && sameScalar(own, index);
}
