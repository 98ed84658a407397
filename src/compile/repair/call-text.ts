/** A statement that a repair adds, as the call to add to the user's code, at its line. */
import type { HostProgram } from "../../host/nodes.ts";
import { walk } from "../../host/traverse.ts";
import { printScalar } from "../../ir/scalar/scalar.ts";
import { siteText } from "../../support/call-site.ts";
import { at } from "../../support/invariant.ts";
import type { AddedStatement } from "./repair-hosts.ts";

/** `h.wait(posted) after ring.ts:20:17, ...`; null where the lines of the program's calls are not known: of a dump. */
export function addedCall(host: HostProgram, added: AddedStatement): string | null {
  const { calls = [], body } = host;
  const statements = walk(body);
  // A program that was edited after it was built.
  if (calls.length !== statements.length) return null;
  const siteAt = (index: number): string | null => {
    const site = calls[index] ?? null;
    return site === null ? null : siteText(site);
  };
  const call = callText(host, added, (made) => siteAt(statements.findIndex(made)));
  const place = placeText(added, siteAt, added.inside >= 0 && at(statements, added.inside).kind === "ForLoop");
  if (call === null || place === null) return null;
  const where = call.of === null ? "" : `, where ${place.endsWith(call.of) ? call.its : call.where + call.of}`;
  return `add \`${call.code}\` ${place}${where}`;
}

interface AddedCall {
  readonly code: string;
  /** What its operand is: the result of the call at `of`, in words for that and for the call that it follows. */
  readonly where: string;
  readonly its: string;
  readonly of: string | null;
}

function callText(
  { streams }: HostProgram,
  { statement }: AddedStatement,
  siteWhere: (isMade: (statement: HostProgram["body"][number]) => boolean) => string | null,
): AddedCall | null {
  if (statement.kind === "Wait") {
    const site = siteWhere((each) => each.kind !== "Wait" && "id" in each && each.id === statement.target);
    return site === null
      ? null
      : { code: "h.wait(posted)", where: "posted is the result of ", its: "posted is its result", of: site };
  }
  if (statement.kind !== "Synchronize") return null;
  const { index } = at(streams, statement.stream);
  if (index !== null && index.kind === "constant")
    return { code: `h.synchronize(h.stream(${printScalar(index)}))`, where: "", its: "", of: null };
  const site = siteWhere((each) => "stream" in each && each.stream === statement.stream);
  return site === null
    ? null
    : { code: "h.synchronize(stream)", where: "stream is that of ", its: "stream is its stream", of: site };
}

function placeText(
  { after, inside, opensElse }: AddedStatement,
  siteAt: (index: number) => string | null,
  isLoop: boolean,
): string | null {
  if (after >= 0) {
    const site = siteAt(after);
    return site === null ? null : `after the call at ${site}`;
  }
  if (inside < 0) return "before the first statement";
  const site = siteAt(inside);
  const scope = isLoop ? "loop" : opensElse ? "else branch" : "then branch";
  return site === null ? null : `first in the ${scope} of ${site}`;
}
