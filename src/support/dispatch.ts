/**
 * Rule tables over a union on `kind`: one function per kind, so that a new kind is a compile error in every table.
 * `dispatch` calls a node's rule. TypeScript cannot see that row and node have the same kind, so the cast is here,
 * once.
 */
export type RuleTable<Union extends { readonly kind: string }, Result, Rest extends readonly unknown[] = []> = {
  readonly [K in Union["kind"]]: (node: Extract<Union, { readonly kind: K }>, ...rest: Rest) => Result;
};

export function dispatch<Union extends { readonly kind: string }, Result, Rest extends readonly unknown[]>(
  table: RuleTable<Union, Result, Rest>,
  node: Union,
  ...rest: Rest
): Result {
  const kind: Union["kind"] = node.kind;
  const rule = table[kind] as (node: Union, ...rest: Rest) => Result;
  return rule(node, ...rest);
}
