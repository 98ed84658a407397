/** The messages of diagnostics in the sources, and whether a row of a page's table is one of them. */
import { readFileSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");

export interface Message {
  readonly code: string;
  readonly text: string;
}

interface Written extends Message {
  /** Whether the diagnostic has a fix. */
  readonly hasFix: boolean;
}

/** The code and message of every diagnostic in a file, as an object or two arguments; what a template fills in is "...". */
export function messagesIn(file: string): readonly Written[] {
  const text = readFileSync(path.join(root, file), "utf8");
  const said = /code: "([a-z-]+)",\s*message:([^\n]+),\n|[( ]"([a-z-]+)", ([^\n]+), \{\n/g;
  return [...text.matchAll(said)].flatMap(({ index, 0: begin, 1: property, 2: written, 3: argument, 4: passed }) => {
    const [fields = ""] = text.slice(index + begin.length).split(/^ *\}\)?[;,]?$/m);
    return [...(written ?? passed ?? "").matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|`([^`]*)`/g)].map(
      ([, double, single, template]) => ({
        code: property ?? argument ?? "",
        text: (double ?? single ?? template ?? "").replaceAll(/\$\{[^}]*\}/g, "..."),
        hasFix: /^ *help[:,]/m.test(fields),
      }),
    );
  });
}

/** The rows of the table of trouble-shooting, the last section of a page. */
export function rowsOf(page: string): readonly Message[] {
  const troubles = page.slice(page.indexOf("## Trouble-shooting"));
  return [...troubles.matchAll(/^\| `([a-z-]+)`: (.+?) +\| /gm)].map(([, code = "", text = ""]) => ({ code, text }));
}

export function fits({ code, text }: Message, row: Message): boolean {
  const pattern = text.split("...").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  return code === row.code && new RegExp(`^${pattern.join(".+")}$`).test(row.text);
}
