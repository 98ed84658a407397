/** Every dump of nvFuser's that the fixtures have is read, printed back and recorded. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse, print } from "braid";
import { normaliseDump } from "../../support/normalise-dump.ts";

const folder = path.resolve(import.meta.dirname, "../../fixtures/dumps");
const files = readdirSync(folder).filter((file) => file.endsWith(".hir"));

describe.each(files)("%s", (file) => {
  const text = readFileSync(path.join(folder, file), "utf8");
  it("prints back", () => {
    const style = file.startsWith("e1") ? "2025-04" : file.startsWith("e2") ? "2025-05" : "2025-10";
    expect(normaliseDump(print(parse(text, { file }), { style })).text).toBe(normaliseDump(text).text);
  });
});
