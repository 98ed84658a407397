/**
 * Patterns of the field, each with a fault that people make, as a change of the host programs that `braid lower` prints.
 */
import type { DiagnosticCode } from "@braid-compiler/braid";

export interface BrokenPattern {
  /** In examples/transformer. */
  readonly example: string;
  readonly fault: string;
  readonly devices: number;
  /** Small sizes that still have the fault. */
  readonly params: Readonly<Record<string, number>>;
  /** The lines of a rank's program, with the fault in them. */
  readonly edit: Edit;
  readonly code: DiagnosticCode;
  /** What the first finding says, in any place of its text. */
  readonly says: readonly string[];
  /** The line that the repair adds on all ranks; null where waits do not mend it. */
  readonly repair: string | null;
}

type Edit = (lines: readonly string[], rank: number) => readonly string[];

/** The place of the n-th line that has `text`. */
function placeOf(lines: readonly string[], text: string, n = 0): number {
  const place = lines.flatMap((line, i) => (line.includes(text) ? [i] : []))[n];
  if (place === undefined) throw new Error(`no line ${n} has ${text}`);
  return place;
}

function without(text: string, n = 0): Edit {
  return (lines) => lines.toSpliced(placeOf(lines, text, n), 1);
}

function changed(text: string, from: string, to: string, { n = 0, after = 0 } = {}): Edit {
  return (lines) => {
    const place = placeOf(lines, text, n) + after;
    const line = lines[place] ?? "";
    if (!line.includes(from)) throw new Error(`${line} does not have ${from}`);
    return lines.with(place, line.replace(from, to));
  };
}

/** With two lines in each other's place. */
function swapped(text: string, other: string): Edit {
  return (lines) => {
    const [place, place2] = [placeOf(lines, text), placeOf(lines, other)];
    return lines.with(place, lines[place2] ?? "").with(place2, lines[place] ?? "");
  };
}

/** With the buffer of the first line that has `text` in the n-th one, too. */
function intoFirstBuffer(text: string, n: number): Edit {
  const bufferIn = (line = ""): string => /buffer=(.*), peer=/u.exec(line)?.[1] ?? "";
  return (lines, rank) => {
    const [own, first] = [n, 0].map((k) => bufferIn(lines[placeOf(lines, text, k)]));
    return changed(text, own ?? "", first ?? "", { n })(lines, rank);
  };
}

function onRank(rank: number, ...edits: readonly Edit[]): Edit {
  return (lines, own) => (own === rank ? edits.reduce((now, edit) => edit(now, own), lines) : lines);
}

function onAll(...edits: readonly Edit[]): Edit {
  return (lines, own) => edits.reduce((now, edit) => edit(now, own), lines);
}

const fsdp = { example: "fsdp", devices: 2, params: { LAYERS: 3, M: 4, H: 2 } };
const hsdp = { example: "hsdp", devices: 4, params: { LAYERS: 2, M: 4, H: 2 } };
const ring = { example: "ring-attention", devices: 3, params: { L: 6, HEADS: 1, D: 2 } };
const ulysses = { example: "ulysses", devices: 2, params: { BACKWARD: 0, L: 2, H: 4, HEADS: 2 } };
const moe = { example: "moe-experts", devices: 2, params: { T: 4, H: 4, E: 2, FFN: 4 } };

export const brokenPatterns: readonly BrokenPattern[] = [
  {
    ...fsdp,
    fault: "a weight is gathered into a buffer one step too early, while a layer still reads it",
    edit: without("Synchronize Stream 0", 2),
    code: "data-race",
    says: ["T9 on rank 1", "Communication 2 (type=Allgather", "T15 = linear("],
    repair: "Synchronize Stream 0",
  },
  {
    ...fsdp,
    fault: "a layer does not wait for the gather of its weight",
    edit: without("Wait Communication 1"),
    code: "transfer-not-waited",
    says: ["T10 on rank 0", "T18 = linear("],
    repair: "Wait Communication 1",
  },
  {
    ...fsdp,
    fault: "a gradient is computed into a buffer that is still being scattered",
    edit: without("Wait Communication 4"),
    code: "transfer-not-waited",
    says: ["T11 on rank 0", "Communication 4 (type=ReduceScatter"],
    repair: "Wait Communication 4",
  },
  {
    ...fsdp,
    fault: "rank 1 gathers the weights of two layers in the other order",
    edit: onRank(1, swapped("Communication 0 (", "Communication 1 (")),
    code: "transfer-mismatch",
    says: ["rank 1", "rank 0", "Communication 0 (type=Allgather"],
    repair: null,
  },
  {
    ...hsdp,
    fault: "the sum over replicas does not wait for the scatter within each, on another stream",
    edit: without("Wait Communication 2"),
    code: "transfer-not-waited",
    says: ["T22 on rank", "Communication 3 (type=Allreduce", "Communication 2 (type=ReduceScatter"],
    repair: "Wait Communication 2",
  },
  {
    ...ring,
    fault: "a block is sent from the buffer that the next one is received into",
    edit: intoFirstBuffer("type=recv", 1),
    code: "operands-overlap",
    says: ["T3", "rank"],
    repair: null,
  },
  {
    ...ring,
    fault: "a device attends to a block before it is there",
    edit: without("Wait Communication 2"),
    code: "transfer-not-waited",
    says: ["T3 on rank", "EndCoalescing 2"],
    repair: "Wait Communication 2",
  },
  {
    ...ring,
    fault: "a send and a receive are not one group",
    edit: onAll(without("StartCoalescing"), without("EndCoalescing 2"), changed("Wait Communication 2", "2", "1")),
    code: "deadlock",
    says: ["P2PCommunication 0 (type=recv", "rank 0", "rank 1", "rank 2"],
    repair: null,
  },
  {
    ...ulysses,
    fault: "rank 1 has the ranks of the exchange in the other order",
    edit: onRank(1, changed("Communication 0 (", "(0 1)", "(1 0)")),
    code: "transfer-mismatch",
    says: ["ranks 0 and 1", "team [1, 0] on rank 1, [0, 1] on rank 0", "Communication 0 (type=AllToAll"],
    repair: null,
  },
  {
    ...ulysses,
    fault: "attention starts before its heads have come",
    edit: without("Wait Communication 0"),
    code: "transfer-not-waited",
    says: ["T19 on rank", "Communication 0 (type=AllToAll"],
    repair: "Wait Communication 0",
  },
  {
    example: "context-parallel",
    devices: 4,
    params: { BACKWARD: 0, CAUSAL: 0, L: 2, H: 4, HEADS: 2 },
    fault: "rank 0 gathers keys and values over the team of its heads",
    edit: onRank(0, changed("Communication 0 (", "(0 2)", "(0 1)")),
    code: "transfer-mismatch",
    says: ["rank 0", "Allgather", "Allreduce"],
    repair: null,
  },
  {
    example: "vocabulary-parallel",
    devices: 2,
    params: { BACKWARD: 0, S: 1, T: 2, H: 2, V: 4 },
    fault: "the maxima of the logits are not reduced over the devices",
    edit: onAll(without("Communication 1 ("), without("Wait Communication 1")),
    code: "unwritten-read",
    says: ["T50", "rank"],
    repair: null,
  },
  {
    example: "triangle-update",
    devices: 2,
    params: { N: 2, C: 4 },
    fault: "all chunks of channels are gathered into one slot",
    edit: changed("HirAliasSelect( T53_", "index = i16", "index = 0"),
    code: "data-race",
    says: ["T53", "rank"],
    repair: null,
  },
  {
    example: "latent-attention",
    devices: 2,
    params: { L: 2, H: 4, HEADS: 2, Q: 2, KV: 2, D: 2, R: 2 },
    fault: "the streams of the chunks do not wait for the caller",
    edit: without("Synchronize Stream 0"),
    code: "data-race",
    says: ["rank"],
    repair: "Synchronize Stream 0",
  },
  {
    ...moe,
    fault: "the experts read the numbers of their rows before these have come",
    edit: without("Wait Communication 1"),
    code: "transfer-not-waited",
    says: ["T68 on rank", "grouped_matmul("],
    repair: "Wait Communication 1",
  },
  {
    ...moe,
    params: { ...moe.params, E: 4, GROUPS: 2, SHARED: 1 },
    fault: "rank 1, whose experts got no tokens, leaves the exchange out",
    edit: onRank(1, without("Communication 2 ("), without("Wait Communication 2")),
    code: "transfer-mismatch",
    says: ["rank 1 does not take part", "2 collectives of rank 1", "3, as on rank 0"],
    repair: null,
  },
  {
    example: "deepseek-block",
    devices: 2,
    params: { L: 2, H: 4, HEADS: 2, Q: 2, KV: 2, D: 2, R: 2, FFN: 2, E: 4, GROUPS: 2, TOP_GROUPS: 1 },
    fault: "the sums of experts begin before the rows have returned",
    edit: without("Wait Communication 5"),
    code: "transfer-not-waited",
    says: ["T182 on rank", "Communication 5 (type=AllToAll"],
    repair: "Wait Communication 5",
  },
];

/** Tokens beyond the capacity are not left out of the numbers of rows that an expert gets. */
export const beyondCapacity: Pick<BrokenPattern, "example" | "devices" | "params" | "edit"> = {
  ...moe,
  params: { ...moe.params, C: 1 },
  edit: changed("= fmin(", ", 1)", ", 100)", { after: 1 }),
};
