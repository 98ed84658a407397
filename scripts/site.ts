/**
 * Makes dist/site/, a folder for any static host, by `npm run site`: the pages of docs/, the API reference, one search
 * for both, and the playground. Run `npm run build:playground` first. Fails on a link that leads nowhere.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Application, KindRouter, type PageEvent, type Reflection, OptionDefaults } from "typedoc";
import { brokenLinks } from "./site/broken-links.ts";
import { sitePages } from "./site/site-pages.ts";
import { playgroundMark } from "./site/stage-page.ts";

const root = path.dirname(import.meta.dirname);
const staged = path.join(root, "dist/site-pages");
const out = path.join(root, "dist/site");
const played = path.join(root, "dist/playground");
const { pages, groups } = sitePages(root);

function stage(): void {
  rmSync(staged, { recursive: true, force: true });
  for (const [page, { text, linked }] of pages) {
    mkdirSync(path.dirname(path.join(staged, page)), { recursive: true });
    writeFileSync(path.join(staged, page), text);
    for (const file of linked) if (!pages.has(file)) cpSync(path.join(root, file), path.join(staged, file));
  }
}

/** Pages have the addresses of their files. */
class PageRouter extends KindRouter {
  protected override getIdealBaseName(reflection: Reflection): string {
    const page = reflection.isDocument() ? reflection.frontmatter["page"] : undefined;
    return typeof page === "string" ? page : super.getIdealBaseName(reflection);
  }
}

async function buildSite(): Promise<void> {
  stage();
  const router = ({ renderer }: Application): void => renderer.defineRouter("page", PageRouter);
  const app = await Application.bootstrapWithPlugins({
    plugin: [router],
    options: path.join(root, "typedoc.json"),
    readme: path.join(staged, "README.md"),
    projectDocuments: [...pages.keys()].slice(1).map((page) => path.join(staged, page)),
    out,
    router: "page",
    customCss: path.join(root, "scripts/site/site.css"),
    searchInDocuments: true,
    navigation: { includeGroups: true },
    groupOrder: [...groups, "More", "*"],
    locales: { en: { kind_plural_module: "API reference" } },
    highlightLanguages: [...OptionDefaults.highlightLanguages, "python"],
    ignoredHighlightLanguages: ["console"],
    favicon: path.join(root, "scripts/site/icon.svg"),
    sort: ["source-order"],
    navigationLinks: { Playground: playgroundMark },
    treatWarningsAsErrors: true,
    cleanOutputDir: true,
    // `npm run check` has reported them.
    skipErrorChecking: true,
  });
  app.renderer.on("endPage", (page: PageEvent) => {
    const up = "../".repeat(page.url.split("/").length - 1);
    const { contents = "" } = page;
    page.contents = contents.replaceAll(playgroundMark, `${up}playground/index.html`);
  });
  const project = await app.convert();
  if (project === undefined) throw new Error("the API reference was not made: see above");
  app.validate(project);
  await app.generateOutputs(project);
  if (app.logger.hasErrors() || app.logger.hasWarnings()) throw new Error("the site has faults: see above");
  cpSync(played, path.join(out, "playground"), { recursive: true });
  const broken = brokenLinks(filesOf(out));
  if (broken.length > 0) throw new Error(`links that lead nowhere:\n${broken.join("\n")}`);
}

/** The text of each page, and null for other files. */
function filesOf(folder: string): ReadonlyMap<string, string | null> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) =>
    name.split(path.sep).join("/"),
  );
  return new Map(
    names.map((name) => [name, name.endsWith(".html") ? readFileSync(path.join(folder, name), "utf8") : null]),
  );
}

await buildSite();
