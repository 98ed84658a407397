/**
 * The examples as the playground's menu has them: each with the first sentence of its comment. It has no orders of
 * pipelines (bundle-playground.ts), and none that imports another: a document there is one file.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

export interface ExampleRow {
  /** `transformer/mlp` */
  readonly name: string;
  readonly sentence: string;
  readonly text: string;
}

/** Simple ones first, as in docs/examples.md; others follow by name. */
const first = [
  "allgather-matmul",
  "ring-allgather-matmul",
  "matmul-allreduce",
  "matmul-reduce-scatter",
  "mlp",
  "set",
  "allgather",
  "reduce-scatter",
  "allreduce",
  "pipeline",
  "hand-built",
];

export function exampleRows(root: string): readonly ExampleRow[] {
  const folder = path.join(root, "examples");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const names = files.map((file) => file.slice(0, -".ts".length).split(path.sep).join("/")).sort();
  const place = (name: string): number => (first.includes(name) ? first.indexOf(name) : first.length);
  return names
    .sort((a, b) => place(a) - place(b))
    .map((name) => {
      const text = readFileSync(path.join(folder, `${name}.ts`), "utf8");
      return { name, sentence: firstSentence(text), text };
    })
    .filter(({ text }) => !text.includes("pipelineOrders") && !text.includes('from "./'));
}

/** Of the comment with which the file begins. */
export function firstSentence(text: string): string {
  const [, comment = ""] = /^\/\*\*([\s\S]*?)\*\//u.exec(text) ?? [];
  const words = comment
    .replaceAll(/^\s*\* ?/gmu, " ")
    .replaceAll(/\s+/gu, " ")
    .trim();
  return /^.*?[.:](?= |$)/u.exec(words)?.[0].replace(/:$/u, ".") ?? words;
}
