/**
 * Makes the JavaScript of dist/ as a part of `npm run build`: bundles the modules of src/, and those of bench/ that
 * `braid bench` loads, into some 100 files. Opening a file takes Node longer than running it, and a command would load
 * up to 490 of them. `npm run build:types` writes the declarations of src/.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { build } from "rolldown";
import { thirdParty } from "./third-party.ts";

const root = path.dirname(import.meta.dirname);
const dist = path.join(root, "dist");

/**
 * The files that package.json names, those of worker threads, and what running-braid.ts loads by name. Paths are those
 * of src/, without `.ts`.
 */
const entries = [
  "index",
  "cpu",
  "cuda",
  "mpi",
  "internals",
  "cli/main",
  "cli/terminal/progress-worker",
  "cli/program/apart/build-thread",
  "launch/parent/parent-watch",
  "backends/mpi/probe-process",
  "host/build/builder",
  "backends/cpu/threads/worker",
];

const { output } = await build({
  input: Object.fromEntries(entries.map((entry) => [entry, path.join(root, "src", `${entry}.ts`)])),
  // Not "node", whose helpers import node:module: `braid` runs in browsers.
  platform: "neutral",
  // Imports of packages and of `node:` stay imports.
  external: /^[a-z@]/,
  transform: { target: "es2022" },
  // Groups move modules of entries into chunks; the entries keep what they export.
  preserveEntrySignatures: "allow-extension",
  // A module that several entries or `import()`s use is in one chunk, which all of them load. All modules of a chunk
  // are needed together.
  output: {
    dir: dist,
    chunkFileNames: "chunks/[name].js",
    sourcemap: true,
    sourcemapExcludeSources: true,
    // Readers of model files need some of the ops, program files all of them, and most of Braid the small modules of
    // support: one file for each of the two, not one for each module.
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        { name: "ops", test: /src[\\/]ir[\\/]api[\\/]ops[\\/.]/ },
        { name: "support", test: /src[\\/]support[\\/](?:exact-text|invariant|repeats|system-reason|wording)\.ts$/ },
      ],
    },
  },
});

/** The script of report pages, which the command line writes into them: one file with the packages that it uses. */
const page = path.join("report", "page.js");
const packages = thirdParty();
await build({
  input: path.join(root, "src/report/page/main.ts"),
  plugins: [packages.plugin],
  platform: "browser",
  moduleTypes: { ".css": "text" },
  transform: { target: "es2022" },
  output: { file: path.join(dist, page), format: "esm", minify: true },
});
const script = readFileSync(path.join(dist, page), "utf8");
writeFileSync(path.join(dist, page), `/*!\n${packages.text()}\n*/\n${script}`);

// Files of an earlier build would be packed too. Those of the playground are of another build.
const built = new Set([...output.map(({ fileName }) => path.normalize(fileName)), page]);
for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
  if (/\.js(\.map)?$/.test(file) && !built.has(file) && !file.startsWith(`playground${path.sep}`))
    rmSync(path.join(dist, file));
}
