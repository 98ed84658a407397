/** The calls that a fake driver has logged (FAKE_CUDA_CALLS), in a form that two processes share. */

/** The calls of the run that was issued one by one, then of the captured one, without copies before and after each. */
export function perRun(calls: readonly string[], before: number, after: number): readonly string[] {
  const launches = calls.findIndex((call) => call.startsWith("graph "));
  const length = launches / 2;
  const own = (start: number): readonly string[] => calls.slice(start + before, start + length - after);
  return [...own(0), ...own(length), ...calls.slice(launches)];
}

/** With addresses, streams and events numbered in the order in which they appear. */
export function canonicalCalls(calls: readonly string[]): readonly string[] {
  const names = new Map<string, string>();
  return calls.map((call) =>
    call.replaceAll(/\b(device|host|peer|stream|event) \d+(\+\d+)?/g, (found: string, kind: string) => {
      const count = [...names.keys()].filter((name) => name.startsWith(kind)).length;
      const name = names.get(found) ?? `${kind} ${count}`;
      names.set(found, name);
      return name;
    }),
  );
}
