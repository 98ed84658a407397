/** The host programs as the report shows them: without what follows the container, and each text once. */
import type { HostProgram } from "../../host/nodes.ts";
import { print } from "../../host/print/print.ts";
import { printedLines } from "../../host/print/statement-lines.ts";
import { containerEnd } from "../../host/syntax/sections.ts";
import type { HostText } from "../data/report-data.ts";
import type { HostLines } from "./works.ts";

export interface HostTexts {
  readonly texts: readonly HostText[];
  readonly lines: HostLines;
}

export function hostTexts(hosts: readonly HostProgram[]): HostTexts {
  const known = new Map<HostProgram, string>();
  const ranksOf = new Map<string, number[]>();
  for (const [rank, host] of hosts.entries()) {
    const text = known.get(host) ?? containerText(host);
    known.set(host, text);
    const ranks = ranksOf.get(text) ?? [];
    ranksOf.set(text, ranks);
    ranks.push(rank);
  }
  const texts = [...ranksOf].map(([text, ranks]) => ({ ranks, lines: text.split("\n") }));
  return {
    texts,
    lines: {
      hostOf: (rank) => texts.findIndex(({ ranks }) => ranks.includes(rank)),
      lineOf: printedLines(hosts),
    },
  };
}

/** The first line of a dump is empty; it stays, because lines are numbered from it. */
function containerText(host: HostProgram): string {
  const lines = print(host).split("\n");
  const end = lines.indexOf(containerEnd);
  return lines.slice(0, end < 0 ? lines.length : end + 1).join("\n");
}
