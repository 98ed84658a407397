/**
 * `npm run bundle:offline [FOLDER]` makes a folder that runs on a Linux x64 machine with GPUs but without network or
 * Node. It holds the Node that runs this script (compressed), the built package and its production dependencies. The
 * target machine needs a shell, and Python to unpack Node once.
 *
 *     sh braid-offline/braid run examples/allgather-matmul.ts --on cuda --devices 8
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const target = path.resolve(process.argv[2] ?? path.join(root, "braid-offline"));
const mostMiB = 44;

/** Files that run, and files that source maps and test programs refer to. Build tools are left out. */
const copied = [
  "package.json",
  "LICENSE",
  "README.md",
  "bench/cli",
  "bench/compare",
  "bench/configs",
  "bench/harness",
  "bench/peers",
  "dist",
  "profiles",
  "src",
  "examples",
  "scripts/gpu",
  "test/conformance",
  "node_modules/fast-check",
  "node_modules/pure-rand",
  "test/gpu",
  "test/properties",
  "test/routes",
  "test/support",
];

/** Unpacks Node on the first start: beside the bundle, or in a folder of the user if the bundle cannot be written. */
const starter = `#!/bin/sh
# Starts Braid with the Node of this bundle. The first start unpacks it.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
node="$here/node"
if [ ! -x "$node" ] && [ ! -w "$here" ]; then
  node="\${XDG_CACHE_HOME:-$HOME/.cache}/braid/node"
fi
if [ ! -x "$node" ]; then
  mkdir -p "$(dirname -- "$node")" || exit 3
  python3 -c '
import lzma, os, shutil, sys
source, target = sys.argv[1:]
unfinished = f"{target}.{os.getpid()}"
with lzma.open(source) as packed, open(unfinished, "wb") as out:
    shutil.copyfileobj(packed, out, 1 << 20)
os.chmod(unfinished, 0o755)
try:
    os.link(unfinished, target)
    os.unlink(unfinished)
except FileExistsError:
    # Another first start was faster: its ranks start the file that it runs from.
    os.unlink(unfinished)
except OSError:
    os.replace(unfinished, target)
' "$here/node.xz" "$node" || { echo "braid: Node could not be unpacked; python3 with lzma is needed once" >&2; exit 3; }
fi
case "$1" in
  --node) shift; exec "$node" "$@" ;;
  --script)
    script="$2"
    shift 2
    [ ! -f "$here/$script" ] || script="$here/$script"
    exec "$node" "$here/node_modules/jiti/lib/jiti-cli.mjs" "$script" "$@" ;;
  *) exec "$node" "$here/dist/cli/main.js" "$@" ;;
esac
`;

const packPython = `
import lzma, shutil, sys
source, target = sys.argv[1:]
with open(source, "rb") as plain, lzma.open(target, "wb", preset=9) as packed:
    shutil.copyfileobj(plain, packed, 1 << 20)
`;

function main(): void {
  requireLinux();
  const packedNode = path.join(target, "node.xz");
  for (const name of existsSync(target) ? readdirSync(target) : []) {
    // Packing Node takes a minute, so a packed copy of this Node is kept.
    if (/^node\.(xz|version)$/.test(name) && isPackedNode(packedNode)) continue;
    rmSync(path.join(target, name), { recursive: true });
  }
  mkdirSync(target, { recursive: true });
  for (const name of copied) copy(name);
  for (const name of productionPackages()) copy(name);
  writeFileSync(path.join(target, "braid"), starter);
  chmodSync(path.join(target, "braid"), 0o755);
  if (!existsSync(packedNode)) {
    execFileSync("python3", ["-c", packPython, process.execPath, packedNode], { stdio: "inherit" });
    writeFileSync(path.join(target, "node.version"), nodeMark());
  }
  const mib = bytesOf(target) / 2 ** 20;
  if (mib > mostMiB) throw new Error(`the bundle has ${mib.toFixed(1)} MiB; at most ${mostMiB} are allowed`);
  console.log(
    `${target}: ${mib.toFixed(1)} MiB, Node ${process.version}\nstart: sh ${path.basename(target)}/braid doctor`,
  );
}

function requireLinux(): void {
  const here = `${process.platform} ${process.arch}`;
  if (here !== "linux x64") throw new Error(`the bundle is for Linux x64 and takes this machine's Node: found ${here}`);
  if (!existsSync(path.join(root, "dist/cli/main.js"))) throw new Error("dist/ is missing: npm run build first");
}

function copy(name: string): void {
  const from = path.join(root, name);
  if (!existsSync(from)) return;
  cpSync(from, path.join(target, name), { recursive: true, dereference: true, filter: isNeeded });
}

/**
 * Leaves out the playground and the site, declarations and build records, which only compilers use, tests, and what
 * koffi has beside the binary for this Node: its sources, and the binary for musl.
 */
function isNeeded(file: string): boolean {
  if (["dist/playground", "dist/site", "dist/site-pages"].some((name) => file === path.join(root, name))) return false;
  if (/[\\/](?:musl_x64|koffi[\\/](?:lib[\\/]native|vendor))$/.test(file)) return false;
  return !/(\.tsbuildinfo|\.test\.ts|\.d\.(ts|mts|cts)(\.map)?)$/.test(file);
}

/**
 * Folders of the lock file's packages that run. npm marks a package `devOptional` if only development and an optional
 * peer of a dependency need it, such as TypeScript, a peer of valibot.
 */
function productionPackages(): readonly string[] {
  const lock = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly devOptional?: boolean }>>;
  };
  return Object.entries(lock.packages)
    .filter(([name, { dev, devOptional }]) => name !== "" && dev !== true && devOptional !== true)
    .map(([name]) => name);
}

function isPackedNode(packed: string): boolean {
  const mark = path.join(path.dirname(packed), "node.version");
  return existsSync(mark) && readFileSync(mark, "utf8") === nodeMark();
}

function nodeMark(): string {
  return `${process.version} ${statSync(process.execPath).size}\n`;
}

function bytesOf(place: string): number {
  if (!statSync(place).isDirectory()) return statSync(place).size;
  return readdirSync(place).reduce((sum, name) => sum + bytesOf(path.join(place, name)), 0);
}

main();
