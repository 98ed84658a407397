/**
 * Builds a TypeScript file of the tests into one module that Node runs as a process of its own. A loader of TypeScript
 * would take half a second in each process, and six the first time.
 */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { rolldown } from "rolldown";

const root = path.resolve(import.meta.dirname, "../..");
// Below the repository, so that the modules find its packages.
const folder = path.join(root, "node_modules/.cache/braid-tests");

/** The path of the built module. `file` is relative to the repository. */
export async function nodeScript(file: string): Promise<string> {
  const build = await rolldown({
    input: path.join(root, file),
    platform: "node",
    external: (id) => /^[^./]/.test(id) && !id.startsWith("@braid-compiler/braid"),
    resolve: {
      alias: {
        "@braid-compiler/braid/cpu": path.join(root, "src/cpu.ts"),
        "@braid-compiler/braid/cuda": path.join(root, "src/cuda.ts"),
        "@braid-compiler/braid/internals": path.join(root, "src/internals.ts"),
        "@braid-compiler/braid/mpi": path.join(root, "src/mpi.ts"),
        "@braid-compiler/braid": path.join(root, "src/index.ts"),
      },
    },
  });
  const { output } = await build.generate({ codeSplitting: false });
  await build.close();
  const built = path.join(folder, `${path.basename(file, ".ts")}.mjs`);
  // Another file's tests may build the same module at this moment.
  const own = `${built}.${process.pid}`;
  mkdirSync(folder, { recursive: true });
  writeFileSync(own, output[0].code);
  renameSync(own, built);
  return built;
}
