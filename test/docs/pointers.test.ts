/** Everything that pages refer to exists: links, paths, names in code, and flags of commands. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { cli } from "../cli/captured-cli.ts";

const root = path.resolve(import.meta.dirname, "../..");

function filesIn(folder: string): readonly string[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`);
}

const folders = ["src", "playground", "test", "bench", "docs", "examples", "profiles", "python", "scripts"];
const files = [...folders, ...folders.flatMap(filesIn), ...readdirSync(root)].filter(
  (name) => !name.startsWith("docs/api"),
);
/** Every file by its whole path and by the ends of it. */
const endings: ReadonlySet<string> = new Set(
  files.flatMap((file) => {
    const parts = file.split("/");
    return parts.map((_, i) => parts.slice(i).join("/"));
  }),
);
const markdown = (folder: string): readonly string[] => filesIn(folder).filter((name) => name.endsWith(".md"));
const pages = [
  "README.md",
  "CHANGELOG.md",
  "test/README.md",
  "test/nvfuser/README.md",
  ...[...markdown("bench"), ...markdown("docs")].filter((name) => files.includes(name)),
];

/** A page without fenced blocks, which are programs, dumps and what commands print. */
const prose = (page: string): string => read(page).replaceAll(/^ *```.*?^ *```$/gms, "");
const spans = (page: string): readonly string[] =>
  [...prose(page).matchAll(/`([^`\n]+)`/g)].map(([, text = ""]) => text);

it("the changelog says what users can do, in at most 80 lines and without figures", () => {
  const text = read("CHANGELOG.md");
  expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(80);
  expect(text.match(/^## \S+.*$/gmu)).toEqual(["## 0.1.0 (unreleased)"]);
  expect(text).not.toMatch(/\d(?: ?%|\.\d+ times| times as)|renamed|used to\b/u);
});

describe.each(pages)("%s", (page) => {
  it("has links that lead to a page, and to a heading of it", () => {
    const links = [...prose(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)];
    const broken = links.filter(([, to = "", heading]) => {
      const target = to === "" ? page : path.posix.normalize(path.posix.join(path.posix.dirname(page), to));
      if (!files.includes(target.replace(/\/$/, ""))) return true;
      return heading !== undefined && !headingsOf(target).includes(heading);
    });
    expect(broken.map(([text]) => text)).toEqual([]);
  });

  it("names paths that exist", () => {
    const paths = spans(page).filter((text) => /^[\w-][\w./-]*\/[\w./-]*$|^[\w-]+\.ts$/.test(text));
    const unknown = paths.filter((text) => !endings.has(text.replace(/\/$/, "")) && !otherPaths.has(text));
    expect(unknown).toEqual([]);
  });

  it("names types, fields and options that the code has", () => {
    const names = spans(page).filter((text) => /^[A-Za-z]\w*(\.[A-Za-z]\w*)*$/.test(text));
    const unknown = names
      .flatMap((name) => name.split("."))
      .filter((name) => !words.has(name) && !otherNames.has(name));
    expect(unknown).toEqual([]);
  });

  it("calls functions that the code has", () => {
    const calls = spans(page).flatMap((text) =>
      [...text.matchAll(/(?<![\w%])([a-z]\w*)\(/g)].map(([, name = ""]) => name),
    );
    expect(calls.filter((name) => !functions.has(name))).toEqual([]);
  });
});

/** Files that users have, subpaths of the package, and names that stand for several files. */
const otherPaths: ReadonlySet<string> = new Set([
  "@braid-compiler/braid/cpu",
  "@braid-compiler/braid/cuda",
  "@braid-compiler/braid/internals",
  "@braid-compiler/braid/mpi",
  "campaigns/results.md",
  "test/fixtures/findings/CODE.hir",
  "test/fixtures/findings/CODE.txt",
  "bench/configs/choice-PRIMITIVE.json",
  "dist/site",
  "pipeline.ts",
]);

/** Of libraries, and of lists that a page shows. */
const otherNames: ReadonlySet<string> = new Set([
  "CUDA_ERROR_ILLEGAL_ADDRESS",
  "NCCL_IB_HCA",
  "NCCL_MAX_CTAS",
  "NCCL_SOCKET_IFNAME",
  "TORCH_FR_BUFFER_SIZE",
  "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
  "TORCH_NCCL_TRACE_BUFFER_SIZE",
  "batch_isend_irecv",
  "cuMemcpyBatchAsync",
  "s5",
  "torchfrtrace",
]);

const codeFiles = ["src", "playground", "test", "bench", "examples", "python", "scripts"]
  .flatMap(filesIn)
  .filter((name) => /\.(ts|tsx|py|json|hir|cu)$/.test(name) && !name.endsWith("docs/pointers.test.ts"));
const code = [...codeFiles, "package.json"].map(read).join("\n");
const words: ReadonlySet<string> = new Set(code.match(/[A-Za-z_]\w*/g));
const functions: ReadonlySet<string> = new Set(
  [...code.matchAll(/([a-z]\w*)(?:<[^()]*>)?\(/g)].map(([, name = ""]) => name),
);

describe("flags", () => {
  const flagsOf = new Map<string, ReadonlySet<string>>();
  beforeAll(async () => {
    for (const command of [
      "lower",
      "run",
      "verify",
      "explain",
      "compile",
      "bench",
      "calibrate",
      "playground",
      "doctor",
    ]) {
      const { out } = await cli(command, "--help");
      flagsOf.set(command, new Set(out.match(flag)));
    }
  });

  it.each(pages)("of every command in %s are flags that it has", (page) => {
    const text = read(page).replaceAll(/\\\n */g, "");
    const unknown = [
      ...text.matchAll(/\bbraid (lower|run|verify|compile|bench|calibrate|playground|doctor)\b([^`\n]*)/g),
    ].flatMap(([line, command = "", rest = ""]) =>
      (rest.match(flag) ?? []).filter((name) => flagsOf.get(command)?.has(name) === false).map((name) => [name, line]),
    );
    expect(unknown).toEqual([]);
  });

  it("alone are flags of some command", () => {
    const all = [...flagsOf.values()];
    const alone = pages.flatMap((page) =>
      spans(page)
        .filter((text) => text.startsWith("-"))
        .map((text) => [page, text] as const),
    );
    expect(alone.length).toBeGreaterThan(100);
    const unknown = alone.filter(([, text]) =>
      (text.match(flag) ?? []).some((name) => !all.some((flags) => flags.has(name)) && !otherFlags.has(name)),
    );
    expect(unknown).toEqual([]);
  });
});

const flag = /(?<![\w-])--?[a-z](?:[a-z-]*[a-z])?(?![\w-])/g;

/** Of launchers, containers and vitest. */
const otherFlags: ReadonlySet<string> = new Set([
  "-u",
  "--node-rank",
  "--gpus-per-task",
  "--gpu-bind",
  "--gpus",
  "--nodes",
  "--ipc",
  "--shm-size",
]);

function read(file: string): string {
  return readFileSync(path.join(root, file), "utf8");
}

/** Anchors as GitHub makes them. */
function headingsOf(page: string): readonly string[] {
  if (statSync(path.join(root, page)).isDirectory()) return [];
  return [...prose(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}
