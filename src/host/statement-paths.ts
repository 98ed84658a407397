/**
 * The way to every statement: `body[4].then[2]` is the third statement of the then branch of the program's fifth. It tells statements
 * apart that print alike, and needs no valid ids.
 */
import type { Statement } from "./nodes.ts";

export interface PlacedStatement {
  readonly statement: Statement;
  readonly path: string;
}

/** All statements of the scope and of the scopes in it, in program order. */
export function placedStatements(scope: readonly Statement[], scopePath = "body"): readonly PlacedStatement[] {
  return scope.flatMap((statement, i) => {
    const path = `${scopePath}[${i}]`;
    const own = { statement, path };
    if (statement.kind === "ForLoop") return [own, ...placedStatements(statement.body, `${path}.body`)];
    if (statement.kind !== "IfThenElse") return [own];
    return [
      own,
      ...placedStatements(statement.then, `${path}.then`),
      ...placedStatements(statement.else, `${path}.else`),
    ];
  });
}
