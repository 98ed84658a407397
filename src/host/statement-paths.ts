/**
 * The way to a statement: `body[4].then[2]` is the third statement of the then branch of the program's fifth. It tells statements
 * apart that print alike, and needs no valid ids. It is looked for where something is wrong, not kept for every statement.
 */
import type { Statement } from "./nodes.ts";

/** Where `statement`, the object itself, first stands in the scope or the scopes in it; null where it does not. */
export function pathOf(scope: readonly Statement[], statement: Statement, scopePath = "body"): string | null {
  for (const [i, each] of scope.entries()) {
    const path = `${scopePath}[${i}]`;
    if (each === statement) return path;
    const inside =
      each.kind === "ForLoop"
        ? pathOf(each.body, statement, `${path}.body`)
        : each.kind === "IfThenElse"
          ? (pathOf(each.then, statement, `${path}.then`) ?? pathOf(each.else, statement, `${path}.else`))
          : null;
    if (inside !== null) return inside;
  }
  return null;
}
