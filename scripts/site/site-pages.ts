/** The pages of the site, as TypeDoc gets them, in the order of the table of docs/README.md. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { exampleRows } from "../example-rows.ts";
import { groupsOf, type SiteContext, type StagedPage, stagePage } from "./stage-page.ts";

export interface SitePages {
  /** By path in the repository; README.md is the first page. */
  readonly pages: ReadonlyMap<string, StagedPage>;
  /** Headings of the contents. */
  readonly groups: readonly string[];
}

export function sitePages(root: string): SitePages {
  const read = (page: string): string => readFileSync(path.join(root, page), "utf8");
  const groups = groupsOf(read("docs/README.md"));
  const context: SiteContext = {
    groups,
    examples: new Set(exampleRows(root).map(({ name }) => name)),
    isFolder: (file) => statSync(path.join(root, file), { throwIfNoEntry: false })?.isDirectory() === true,
    read,
  };
  const others = ["docs/passes", "docs", "bench"].flatMap((folder) =>
    readdirSync(path.join(root, folder)).map((name) => `${folder}/${name}`),
  );
  const names = new Set(["README.md", ...groups.keys(), ...others.filter((name) => name.endsWith(".md"))]);
  return {
    pages: new Map([...names].map((page) => [page, stagePage(page, read(page), context)])),
    groups: [...new Set(groups.values())],
  };
}
