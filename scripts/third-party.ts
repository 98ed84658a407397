/** The licenses of the packages in a bundle, which have to stand in every copy of it. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Plugin } from "rolldown";

export interface ThirdParty {
  /** Notes the packages of the modules that are bundled. */
  readonly plugin: Plugin;
  /** The name, version and license of each, after the build. */
  readonly text: () => string;
}

export function thirdParty(): ThirdParty {
  const folders = new Set<string>();
  return {
    plugin: {
      name: "third-party",
      moduleParsed: ({ id }) => {
        const [, folder] = /([^?\0]*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/.exec(id) ?? [];
        if (folder !== undefined) folders.add(folder);
      },
    },
    text: () => [...folders].sort().map(licenseOf).join("\n\n"),
  };
}

function licenseOf(folder: string): string {
  const { name, version } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")) as Named;
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} has no license file`);
  return `${name} ${version}\n\n${readFileSync(path.join(folder, file), "utf8").trim()}`;
}

interface Named {
  readonly name: string;
  readonly version: string;
}
