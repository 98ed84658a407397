/**
 * Makes dist/playground/, the static folder that `braid playground` serves, by `npm run build:playground`: the page, the
 * worker, the styles, and the examples and profiles as modules. Run it after a change of src/ or playground/.
 */
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { build, type Plugin } from "rolldown";
import { usualProfile } from "../playground/model/inputs.ts";
import { exampleRows } from "./example-rows.ts";
import { passSentences } from "./pass-rows.ts";
import { thirdParty } from "./third-party.ts";
import { typeFiles } from "./type-files.ts";

const root = path.dirname(import.meta.dirname);
const folder = path.join(root, "playground");
const out = path.join(root, "dist/playground");

const examples = exampleRows(root);

const modules: Readonly<Record<string, () => string>> = {
  "virtual:examples": () => {
    const rows = examples.map(({ name, sentence }) => ({ name, sentence }));
    return `export const examples = ${JSON.stringify(rows)}; export const firstText = ${JSON.stringify(examples[0]?.text)};`;
  },
  "virtual:example-texts": () =>
    `export const texts = ${JSON.stringify(Object.fromEntries(examples.map(({ name, text }) => [name, text])))};`,
  "virtual:passes": () => `export const sentences = ${JSON.stringify(passSentences(root))};`,
  "virtual:types": () => `export const types = ${JSON.stringify(typeFiles(root))};`,
  "virtual:profiles": () => {
    const texts = shippedProfiles();
    return `export const profileNames = ${JSON.stringify(Object.keys(texts))}; export const usualText = ${JSON.stringify(texts[usualProfile])};`;
  },
  "virtual:profile-texts": () => `export const texts = ${JSON.stringify(shippedProfiles())};`,
};

/** Texts by name, in the order of names. */
function shippedProfiles(): Readonly<Record<string, string>> {
  const files = readdirSync(path.join(root, "profiles")).filter((file) => file.endsWith(".json"));
  const rows = files
    .sort()
    .map((file) => [
      path.basename(file, ".json"),
      JSON.stringify(JSON.parse(readFileSync(path.join(root, "profiles", file), "utf8"))),
    ]);
  return Object.fromEntries(rows) as Readonly<Record<string, string>>;
}

const virtual: Plugin = {
  name: "virtual",
  resolveId: (id) => (Object.hasOwn(modules, id) ? `\0${id}` : null),
  load: (id) => modules[id.slice(1)]?.() ?? null,
};

const refusal = 'throw new Error("The playground compiles programs. The braid command runs them.");';

/** Back ends run in Node only; only a replay runs a program. */
function without(stubs: Readonly<Record<string, string>>): Plugin {
  return { name: "without", load: (id) => stubs[path.relative(root, id)] ?? null };
}

const backends = { "src/cpu.ts": refusal, "src/cuda.ts": refusal };
const sucrase = "node_modules/sucrase/dist/esm";
/** Of sucrase, what programs in TypeScript do not use: each export throws, and our own options are not checked. */
const otherSyntax = {
  [`${sucrase}/Options.js`]: "export function validateOptions() {}",
  ...Object.fromEntries(
    [
      "computeSourceMap",
      "parser/plugins/flow",
      "parser/plugins/jsx/index",
      "util/formatTokens",
      ...[
        "ESMImport",
        "JSX",
        "Flow",
        "JestHoist",
        "ReactHotLoader",
        "ReactDisplayName",
        "NumericSeparator",
        "OptionalCatchBinding",
        "OptionalChainingNullish",
      ].map((name) => `transformers/${name}Transformer`),
    ].map((name) => {
      const file = `${sucrase}/${name}.js`;
      const exported = readFileSync(path.join(root, file), "utf8").matchAll(
        /^export (default )?(?:class|function) (\w+)/gm,
      );
      const stubs = [...exported].map(
        ([, kind = "", each]) => `export ${kind}function ${each}() { throw new Error("${name}"); }`,
      );
      return [file, stubs.join("\n")];
    }),
  ),
};
/** sucrase's tree of keywords, of 27 numbers a node, is built when the page loads: as a literal it is the largest file. */
const { READ_WORD_TREE: tree } = (await import(path.join(root, sucrase, "parser/tokenizer/readWordTree.js"))) as {
  readonly READ_WORD_TREE: Int32Array;
};
function keywords(node = 0, word = ""): string {
  const letters = Array.from({ length: 26 }, (_, i) => i + 1).filter((letter) => (tree[node + letter] ?? -1) >= 0);
  const below = letters.map((letter) => keywords(tree[node + letter], word + String.fromCodePoint(96 + letter)));
  return (tree[node] === -1 ? "" : `${word}${tree[node]}`) + below.join("");
}
const keywordTree = {
  [`${sucrase}/parser/tokenizer/readWordTree.js`]: `
    const tree = [];
    const node = () => tree.push(...Array(27).fill(-1)) - 27;
    node();
    for (const [, word, value] of "${keywords()}".matchAll(/([a-z]+)(\\d+)/g)) {
      let at = 0;
      for (const letter of word) {
        const child = at + letter.charCodeAt(0) - 96;
        if (tree[child] < 0) { const made = node(); tree[child] = made; }
        at = tree[child];
      }
      tree[at] = Number(value);
    }
    export const READ_WORD_TREE = new Int32Array(tree);`,
};
/** sucrase's enums without the names by number, which it never reads. */
const enums = Object.fromEntries(
  ["util/charcodes", "tokenizer/types", "tokenizer/keywords"].map((name) => {
    const file = `${sucrase}/parser/${name}.js`;
    const text = readFileSync(path.join(root, file), "utf8");
    return [file, text.replaceAll(/(\w+)\[\1\["(\w+)"\] = (\w+)\] = "\2"/gu, '$1["$2"] = $3')];
  }),
);
/** What computes an element, which no compiler does. */
const functions = (name: string): string =>
  `export const ${name} = new Proxy({}, { get: () => () => { ${refusal} } });`;
/** What programs do not call while they are built. */
const afterwards = {
  "src/diagnostics/codes.ts": `export const diagnosticCodes = new Proxy({}, { get() { ${refusal} } });`,
  "src/numerics/scalar/float-functions.ts": `${functions("floatFunctions")} export const siluInFloat = null;`,
  "src/numerics/scalar/rounded-functions.ts": functions("roundedFunctions"),
  "src/numerics/scalar/wide-functions.ts": functions("wideFunctions"),
  "src/tune/choose/choose.ts": `export function choose() { ${refusal} } export function chooseFor() { ${refusal} }`,
  "src/schedule/by-region.ts": `export function applyByRegion() { ${refusal} }`,
  "src/explain/explain.ts": `export function explain() { ${refusal} } export function isTooSmall() { ${refusal} }`,
  "src/explain/measured-costs.ts": `export function measuredCosts() { ${refusal} }`,
  "src/import/import-model.ts": `export function importModel() { ${refusal} }`,
  "src/trace/align-traces.ts": `export function alignTraces() { ${refusal} } export function alignmentError() { ${refusal} }`,
  "src/trace/chrome/chrome-trace.ts": `export function chromeTrace() { ${refusal} } export function chromeTraceText() { ${refusal} }`,
};
const missing = (what: string): string =>
  `throw new Error("The playground has no ${what}: run the file by the braid command.");`;
/** What no example of the playground calls. */
const rare = {
  "src/compile/pipeline/build-pipeline.ts": `export function pipeline() { ${missing("pipelines")} }`,
  "src/compile/pipeline/orders.ts": `export const pipelineOrders = new Proxy({}, { get() { ${missing("pipelines")} } });`,
  "src/ir/api/ops/compositions/float8-linear.ts": ["float8Linear", "float8Product", "columnsOf", "quantize"]
    .map((name) => `export function ${name}() { ${missing("floats of 8 bits")} }`)
    .join(" "),
  "src/compile/split-backward.ts": `export function splitBackward() { ${missing("split passes")} }`,
};
/**
 * Devices are few: a rewrite is made for each of them, not for one of those that do the same, and all are compiled and
 * proven.
 */
const fewRanks = {
  "src/verify/classes/prove-classes.ts": `export function proveByClasses() { return null; } export function symmetryOf() { return null; }`,
  "src/schedule/draft/classes/image-list.ts": "export function imageList() { return null; }",
  "src/record/alike/replicas.ts": `export function replicaSize() { ${refusal} } export function withoutOthers() { ${refusal} }`,
};
const executor = `export class MultiDeviceExecutor { static async create() { ${refusal} } }`;

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const packages = thirdParty();
const common = { platform: "browser", transform: { target: "es2022" } } as const;
await build({
  ...common,
  input: { page: path.join(folder, "page/main.tsx") },
  plugins: [virtual, packages.plugin],
  // The timeline brings its style sheet as a text.
  moduleTypes: { ".css": "text" },
  output: { dir: out, entryFileNames: "[name].js", chunkFileNames: "chunks/[name].js", minify: true },
});
// Classic scripts: the page starts them by importScripts from a worker that has the page's security policy.
for (const [name, file, stubs] of [
  [
    "worker",
    "compiler/worker.ts",
    {
      ...backends,
      ...afterwards,
      ...rare,
      ...fewRanks,
      ...otherSyntax,
      ...keywordTree,
      ...enums,
      "src/executor/multi-device-executor.ts": executor,
    },
  ],
  ["replay-worker", "compiler/replay-worker.ts", backends],
  ["types-worker", "typescript/worker.ts", {}],
] as const) {
  await build({
    ...common,
    input: { [name]: path.join(folder, file) },
    plugins: [virtual, without(stubs), packages.plugin],
    output: { dir: out, entryFileNames: "[name].js", format: "iife", minify: true, codeSplitting: false },
  });
}
/** Without the marks of calls that have no effect: all bundlers are done with the text. */
function withoutMarks(text: string): string {
  const mark = /(?<=([\w$])?)\/\*\s?[@#]__(?:PURE|NO_SIDE_EFFECTS)__\s?\*\/ ?/gu;
  return text.replaceAll(mark, (_, before?: string) => (before === undefined ? "" : " "));
}

writeFileSync(path.join(out, "licenses.txt"), packages.text());
const own = readdirSync(path.join(folder, "styles")).sort();
const sheets = [
  path.join(root, "node_modules/uplot/dist/uPlot.min.css"),
  ...own.map((file) => path.join(folder, "styles", file)),
];
const styles = sheets.map((file) => readFileSync(file, "utf8")).join("\n");
// Without comments and indents: no string of ours has either.
writeFileSync(path.join(out, "page.css"), styles.replaceAll(/\/\*[^]*?\*\/\s*/gu, "").replaceAll(/\n\s+/gu, "\n"));
copyFileSync(path.join(folder, "index.html"), path.join(out, "index.html"));

for (const file of readdirSync(out, { recursive: true, encoding: "utf8" })) {
  const full = path.join(out, file);
  if (!statSync(full).isFile()) continue;
  if (/^(?:page|worker)\.js$/u.test(file)) writeFileSync(full, withoutMarks(readFileSync(full, "utf8")));
  const bytes = readFileSync(full);
  console.log(`${file.padEnd(32)} ${size(bytes.length)} ${size(gzipSync(bytes).length)} gzip`);
}

function size(bytes: number): string {
  return `${(bytes / 1000).toFixed(1).padStart(9)} kB`;
}
