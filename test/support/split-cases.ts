/** Which cases of a matrix the quick suite runs, and which are left to the long one. */

/** All combinations of the dimensions' values, as records; the last dimension varies fastest. */
export function combinations<Case extends object>(dimensions: {
  readonly [Name in keyof Case]: readonly Case[Name][];
}): readonly Case[] {
  const entries = Object.entries<readonly unknown[]>(dimensions);
  return entries.reduce<readonly object[]>(
    (rows, [name, values]) => rows.flatMap((row) => values.map((value) => ({ ...row, [name]: value }))),
    [{}],
  ) as readonly Case[];
}

/**
 * Quick has every n-th case, and the first case with each value of a property that is still missing then. Long has the
 * rest.
 */
export function splitCases<Case extends object>(
  cases: readonly Case[],
  every: number,
): { readonly quick: readonly Case[]; readonly long: readonly Case[] } {
  const seen = new Map<string, Set<unknown>>();
  const take = (row: Case): boolean => {
    let isNew = false;
    for (const [name, value] of Object.entries(row)) {
      const values = seen.get(name) ?? new Set();
      seen.set(name, values);
      if (values.has(value)) continue;
      values.add(value);
      isNew = true;
    }
    return isNew;
  };
  const quick = new Set(cases.filter((_, i) => i % every === 0));
  for (const row of quick) take(row);
  for (const row of cases) if (!quick.has(row) && take(row)) quick.add(row);
  return { quick: cases.filter((row) => quick.has(row)), long: cases.filter((row) => !quick.has(row)) };
}
