/** The JSON schemas of plan files, made from those that read them. */
import { toJsonSchema } from "@valibot/to-json-schema";
import { planDocument } from "../src/plan/plan-document.ts";
import { address, rankDocument } from "../src/plan/rank-document.ts";

/** By path from the root of the project. */
export function planSchemas(): readonly (readonly [path: string, text: string])[] {
  return [
    ["docs/plan.schema.json", jsonText(toJsonSchema(planDocument))],
    ["docs/plan-rank.schema.json", jsonText(toJsonSchema(rankDocument, { definitions: { address } }))],
  ];
}

function jsonText(schema: object): string {
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}
