/** Plans with one document changed, as a member of another form, a number that names nothing, or a text that is no JSON. */
import type { PlanFiles } from "../../src/plan/make-plan.ts";
import { sha256 } from "../../src/plan/plan-document.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom, type Random } from "../../src/support/random.ts";

/** JSON texts, among them some that JavaScript cannot print. */
const texts = [
  ["null", "true", "false", '""', '"x"', '"T0"', "[]", "{}", "[[]]", "[0]", "[1,2,3]", "[[0,1,2]]", '{"0":"a"}'],
  ["0", "-0", "1", "2", "3", "7", "-1", "2.5", "3.0", "1e1", "1e6", "1e300", "1e400", "-1e400", "4294967296"],
  ["9007199254740991", "9007199254740992", "9007199254740993", "123456789012345678901234567890"],
  ['{"constructor":"x"}', '{"__proto__":"x"}', '{"prototype":"x"}', '{"toString":"x"}', '{"--schedule streams":2}'],
  ['"\\ud800"', '"\\u0000"', '"rank-0.json\\n"', "NaN", "Infinity", "'x'", "01", "[1,]", '{"a":1,"a":2}', "\u{feff}1"],
  ["[".repeat(200) + "]".repeat(200), '{"x":'.repeat(150) + "0" + "}".repeat(150)],
].flat();
const names = [
  "constructor",
  "__proto__",
  "prototype",
  "toString",
  "length",
  "x",
  "--x",
  "rank-9.json",
  "space",
  "kind",
];

interface Node {
  readonly path: readonly (string | number)[];
  readonly value: unknown;
}

function nodesOf(value: unknown, path: readonly (string | number)[] = []): readonly Node[] {
  const below = Array.isArray(value)
    ? value.flatMap((each: unknown, i) => nodesOf(each, [...path, i]))
    : typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, each]: [string, unknown]) => nodesOf(each, [...path, name]))
      : [];
  return [{ path, value }, ...below];
}

/** The JSON text of a value with another text at a path; without the member or item if `text` is null. */
function textWith(value: unknown, [step, ...rest]: readonly (string | number)[], text: string | null): string | null {
  if (step === undefined) return text;
  const parts = (
    entries: readonly (readonly [string | number, unknown])[],
    print: (key: string | number) => string,
  ): string =>
    entries
      .flatMap(([key, each]) => {
        const own = key === step ? textWith(each, rest, text) : JSON.stringify(each);
        return own === null ? [] : [`${print(key)}${own}`];
      })
      .join(",");
  if (Array.isArray(value)) return `[${parts([...value.entries()], () => "")}]`;
  return `{${parts(Object.entries(value as object), (key) => `${JSON.stringify(key)}:`)}}`;
}

const pick = <T>(items: readonly T[], random: Random): T => at(items, random.integer(items.length));

/** The text of a node after a change. Null removes it. */
function changedText({ value }: Node, nodes: readonly Node[], random: Random): string | null {
  const text = JSON.stringify(value);
  const other = (): string => JSON.stringify(pick(nodes, random).value);
  const isList = Array.isArray(value);
  const isObject = typeof value === "object" && value !== null && !isList;
  switch (random.integer(8)) {
    case 0:
      return null;
    case 1:
      return other();
    case 2:
      return `[${text}]`;
    case 3:
      if (typeof value === "number") return String(value + 1 - 2 * random.integer(2));
      return isList ? JSON.stringify([value, value].flat()) : pick(texts, random);
    case 4:
      if (isList) return `[${[...value.map((each) => JSON.stringify(each)), pick(texts, random)].join()}]`;
      if (!isObject) return pick(texts, random);
      return `{${JSON.stringify(pick(names, random))}:${pick(texts, random)}${text === "{}" ? "" : ","}${text.slice(1)}`;
    case 5:
      return isList ? JSON.stringify(value.toReversed()) : pick(texts, random);
    default:
      return pick(texts, random);
  }
}

/** One document of the plan is changed; hashes are right. */
export function mutatedPlan(plans: readonly PlanFiles[], seed: number): PlanFiles {
  const random = createRandom(seed);
  const files = new Map(pick(plans, random));
  const file = pick(
    [...files.keys()].filter((name) => name.endsWith(".json")),
    random,
  );
  const before = files.get(file) ?? "";
  const document: unknown = JSON.parse(before);
  const nodes = nodesOf(document);
  // Lists are long: members of the document itself are as likely.
  const node =
    random.integer(3) === 0
      ? pick(
          nodes.filter(({ path }) => path.length < 3),
          random,
        )
      : pick(nodes, random);
  const after = textWith(document, node.path, changedText(node, nodes, random)) ?? "";
  files.set(file, after);
  const plan = files.get("plan.json") ?? "";
  if (file !== "plan.json") files.set("plan.json", plan.replace(sha256(before), sha256(after)));
  return files;
}
