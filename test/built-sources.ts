/**
 * Tests load src/ as JavaScript modules of Node, one for each file, which rolldown makes in a second. As modules of vite
 * each worker would fetch and wrap all of them, and each use of an import would call a getter, in inner loops too.
 */
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { rolldown } from "rolldown";
import type { Plugin } from "vitest/config";

const root = path.dirname(import.meta.dirname);
const sources = path.join(root, "src");
// Below the repository, so that the modules find its packages.
const cache = path.join(root, "node_modules/.cache/braid-tests");
// The same name for all states of src/: vite keeps transformed tests, which have the paths of their imports.
const built = path.join(cache, "sources");
const stateFile = "state";

const extension = ".ts";
const withoutExtension = (file: string): string => file.slice(0, -extension.length);

/** Names of files below src/. The report page's script imports style sheets, which are vite's. */
function sourceFiles(): readonly string[] {
  return readdirSync(sources, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(extension) && !file.startsWith(path.join("report", "page")))
    .sort();
}

/** Builds the modules, unless those of this state of src/ are there. */
async function buildSources(): Promise<void> {
  const files = sourceFiles();
  const hash = createHash("sha256").update(readFileSync(import.meta.filename));
  for (const file of files) hash.update(file).update(readFileSync(path.join(sources, file)));
  const state = hash.digest("hex");
  const marker = path.join(built, stateFile);
  if (existsSync(marker) && readFileSync(marker, "utf8") === state) return;
  mkdirSync(cache, { recursive: true });
  const own = mkdtempSync(path.join(cache, "building-"));
  const build = await rolldown({
    input: Object.fromEntries(files.map((file) => [withoutExtension(file), path.join(sources, file)])),
    platform: "node",
    external: /^[a-z@]/,
    treeshake: false,
    transform: { target: "es2022" },
  });
  await build.write({
    dir: own,
    preserveModules: true,
    preserveModulesRoot: sources,
    entryFileNames: "[name].mjs",
    sourcemap: true,
    sourcemapExcludeSources: true,
  });
  await build.close();
  writeFileSync(path.join(own, stateFile), state);
  rmSync(built, { recursive: true, force: true });
  renameSync(own, built);
}

/** Tests that count steps need modules that they can load anew, which Node's are not. */
const countsSteps = (importer: string): boolean => readFileSync(importer, "utf8").includes("/count-steps.ts");

const isBelow = (file: string, folder: string): boolean => file.startsWith(folder + path.sep);

/** Resolves files of src/ to the built ones. In watch mode vite keeps the sources, which may change. */
export function builtSources(): Plugin {
  let isBuilt = false;
  const keepsSources = new Map<string, boolean>();
  return {
    name: "built-sources",
    enforce: "pre",
    async configResolved({ server }) {
      if (server.watch !== null || isBuilt) return;
      await buildSources();
      isBuilt = true;
    },
    resolveId(id, importer) {
      if (!isBuilt || importer === undefined || !id.endsWith(extension)) return null;
      const file = id.startsWith(".") ? path.resolve(path.dirname(importer), id) : id;
      if (!isBelow(file, sources) || isBelow(importer, sources)) return null;
      let keeps = keepsSources.get(importer);
      if (keeps === undefined) keepsSources.set(importer, (keeps = countsSteps(importer)));
      const found = path.join(built, `${withoutExtension(path.relative(sources, file))}.mjs`);
      return !keeps && existsSync(found) ? found : null;
    },
  };
}
