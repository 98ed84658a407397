/** The JSON schemas of plan files, made from those that read them: for people in docs, for the package in python. */
import { toJsonSchema } from "@valibot/to-json-schema";
import { planDocument } from "../src/plan/plan-document.ts";
import { address, rankDocument } from "../src/plan/rank-document.ts";

/** By path from the root of the project. */
export function planSchemas(): readonly (readonly [path: string, text: string])[] {
  const texts = [
    ["plan.schema.json", jsonText(toJsonSchema(planDocument))],
    ["plan-rank.schema.json", jsonText(toJsonSchema(rankDocument, { definitions: { address } }))],
  ] as const;
  return ["docs", "python/src/braid_torch/schemas"].flatMap((folder) =>
    texts.map(([file, text]) => [`${folder}/${file}`, text] as const),
  );
}

function jsonText(schema: object): string {
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}
