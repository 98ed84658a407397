/** Pages of the site: their links into the playground open programs that compile; links that lead nowhere are found. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { analyse } from "../../playground/compiler/analyse.ts";
import { buildProgram } from "../../playground/compiler/build-program.ts";
import type { Source } from "../../playground/compiler/messages.ts";
import { devicesOf } from "../../playground/model/inputs.ts";
import { decodeState } from "../../playground/model/share.ts";
import type { State } from "../../playground/model/state.ts";
import { passSentences } from "../../scripts/pass-rows.ts";
import { brokenLinks } from "../../scripts/site/broken-links.ts";
import { sitePages } from "../../scripts/site/site-pages.ts";
import { playgroundMark, stagePage } from "../../scripts/site/stage-page.ts";
import { passNames } from "../../src/passes/pipeline.ts";

const root = path.resolve(import.meta.dirname, "../..");
const { pages } = sitePages(root);
const profile = readFileSync(path.join(root, "profiles/4xH200.json"), "utf8");
const fragments = [...pages].flatMap(([page, { text }]) =>
  text
    .split(playgroundMark)
    .slice(1)
    .map((rest) => [page, rest.slice(1, rest.indexOf(")"))] as const),
);

describe("links into the playground", () => {
  const shared = fragments.filter(([, fragment]) => !fragment.startsWith("example="));

  it("are after programs and host programs, and where pages name examples", () => {
    expect(new Set(shared.map(([page]) => page))).toContain("README.md");
    expect(new Set(shared.map(([page]) => page))).toContain("docs/verifier.md");
    expect(fragments.map(([, fragment]) => fragment)).toContain("example=nvfuser/allgather-matmul");
  });

  it.each(shared.map(([page, fragment], i) => ({ page, fragment, i })))("$i: of $page open", ({ fragment }) => {
    const state = decodeState(fragment);
    if (state === null) throw new Error(fragment);
    const kinds: string[] = [];
    const given = { source: sourceOf(state), devices: devicesOf(state), options: state.options };
    analyse({ kind: "compile", id: 1, profile, rank: 0, edits: [], ...given }, ({ kind }) => void kinds.push(kind));
    expect(kinds.slice(0, 2)).toEqual(["lowered", "verdict"]);
  });
});

it("the table of passes has every pass, in order", () => {
  expect(Object.keys(passSentences(root))).toEqual(passNames);
});

it("pages whose headings pages link to are pages of the site", () => {
  const targets = [...pages].flatMap(([page, { text }]) =>
    [...text.matchAll(/\]\((?!https?:)([^)#\s]+\.md)#/gu)].map(([, to = ""]) =>
      path.posix.join(path.posix.dirname(page), to),
    ),
  );
  expect(targets).toContain("bench/NOTES.md");
  expect(targets.filter((target) => !pages.has(target))).toEqual([]);
});

function sourceOf(state: State): Source {
  const { kind, name: file, text } = state.document;
  if (kind === "dump") return { kind, file, text };
  const variants = [{ devices: devicesOf(state) ?? 1, hosts: 1, params: state.params }];
  // oxlint-disable-next-line no-eval -- as the playground's worker does
  const answer = buildProgram({ kind: "build", text, variants }, (code) => globalThis.eval(code) as unknown);
  const built = answer.kind === "built" ? (answer.variants[0] ?? null) : null;
  if (built === null) throw new Error(JSON.stringify(answer));
  return { kind: "built", data: structuredClone(built.data) };
}

describe("a page", () => {
  const context = {
    groups: new Map([["docs/some.md", "Some"]]),
    examples: new Set(["mlp"]),
    isFolder: (file: string) => file === "test/fixtures",
    read: (file: string) => `text of ${file}\n`,
  };

  it("shows the fixtures to which paragraphs link", () => {
    const inLine = "See [a](../../test/fixtures/b/a.txt).\n";
    const staged = stagePage("docs/passes/some.md", `# Some\n\n[A](../../test/fixtures/b/a.txt)\n\n${inLine}`, context);
    expect(staged.text).toContain(`\n\nA:\n\n\`\`\`text\ntext of test/fixtures/b/a.txt\n\`\`\`\n\n${inLine}`);
    expect(staged.linked).toEqual(["test/fixtures/b/a.txt"]);
  });

  it("is named by its heading, and links to pages, pictures and examples, but not to folders", () => {
    const text =
      "# Some `page`\n\n[a](other.md#b) [b](#values-of---print) [c](../test/fixtures/) [d](../examples/mlp.ts) ![e](../e.svg) [f](https://x.y/)\n";
    const staged = stagePage("docs/some.md", text, context);
    expect(staged.text).toBe(
      `---\ntitle: "Some page"\ngroup: "Some"\npage: "some"\n---\n\n# Some page\n\n[a](other.md#b) [b](#values-of-print) c [d](${playgroundMark}#example=mlp) ![e](../e.svg) [f](https://x.y/)\n`,
    );
    expect(staged.linked).toEqual(["docs/other.md", "e.svg"]);
  });

  it("opens no part of a program, and no text of a console", () => {
    const blocks = ["```ts\nconst f = new Fusion();\n```", "```console\n$ braid run [x](../examples/mlp.ts)\n```"];
    for (const block of blocks) expect(stagePage("docs/some.md", block, context).text).not.toContain(playgroundMark);
  });
});

it("links to a page or a place that is not there are found", () => {
  const files = new Map([
    ["index.html", '<h2 id="a">A</h2><a href="#a">1</a><a class="x" href="docs/b.html#c">2</a><a href="docs/">3</a>'],
    ["docs/b.html", '<a href="../index.html#d">4</a><a href="https://x.y/">5</a><a href="../media/e.svg">6</a>'],
    ["media/e.svg", null],
  ]);
  expect(brokenLinks(files)).toEqual([
    "index.html: docs/b.html#c",
    "index.html: docs/",
    "docs/b.html: ../index.html#d",
  ]);
});
