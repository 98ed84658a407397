/** What stands in a box: `Allgather · 3`, or the longest form that fits. A form is never cut: half a word says nothing. */

/** At most `room` characters; empty if nothing fits. The iteration stays longest, because it tells boxes of one name apart. */
export function fittedLabel(name: string, iteration: string, room: number): string {
  const forms =
    iteration === ""
      ? [name, briefly(name)]
      : [`${name} · ${iteration}`, `${name} ${iteration}`, `${briefly(name)} ${iteration}`, iteration];
  return forms.find((form) => form.length <= room) ?? "";
}

/** As papers and BLAS abbreviate them. */
const abbreviations: Readonly<Record<string, string>> = {
  Allgather: "AG",
  Allreduce: "AR",
  ReduceScatter: "RS",
  Broadcast: "BC",
  AllToAll: "A2A",
  linear: "lin",
  matmul: "mm",
};

/** Kinds whose next word says more. */
const general: ReadonlySet<string> = new Set([
  "unary",
  "binary",
  "reduction",
  "combine",
  "opaque",
  "record",
  "alloc",
  "free",
]);

/** `AG` of `Allgather`, `add` of `binary add`, `e1` of `wait for e1`, `←1` of `from rank 1`. */
function briefly(name: string): string {
  const peers = [...name.matchAll(/\b(to|from) (?:rank )?(\d+)/gu)];
  if (peers.length > 0) return peers.map(([, way, peer = ""]) => `${way === "from" ? "←" : "→"}${peer}`).join(" ");
  const [first = "", second = first] = name.replace(/^wait for /u, "").split(/,? /u);
  return abbreviations[first] ?? (general.has(first) ? second : first);
}
