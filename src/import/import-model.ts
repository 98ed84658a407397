/** `importModel`: a model file of any format as a Fusion. */
import { fail } from "../diagnostics/diagnostic.ts";
import { type ByteSource, sourceOfBytes } from "./byte-source.ts";
import { withGradients } from "./gradients.ts";
import { flightRecords, type Loader, loaderOf, loaders, startBytes } from "./loader.ts";
import type { ImportedModel, ImportOptions } from "./model.ts";

/**
 * The program of a model file: its text, or its bytes where the format is not text, as a whole or read in parts. The
 * format is the one of the name
 * `file`, else of what the file begins with. Throws `model-syntax`, `model-unsupported`, `model-invalid`, with the place
 * in the file.
 */
export async function importModel(
  given: string | Uint8Array | ByteSource,
  options: ImportOptions = {},
): Promise<ImportedModel> {
  const model = given instanceof Uint8Array ? sourceOfBytes(given) : given;
  const start =
    typeof model === "string" ? model.slice(0, startBytes) : String.fromCharCode(...model.read(0, startBytes));
  const loader = loaderOf(options.file ?? "") ?? loaders.find(({ magic }) => magic.test(start));
  if (loader === undefined) {
    if (flightRecords.magic.test(start))
      return refused(
        options,
        `a record of ${flightRecords.name}`,
        known(),
        "compare the records of all ranks: braid verify FILES",
      );
    return refused(options, start === "" ? "an empty file" : "another start", known());
  }
  requireOptions(loader, options);
  if (loader.content === "text" && typeof model === "string")
    return withGradients((await loader.reader())(model, options), options);
  if (loader.content === "bytes" && typeof model !== "string")
    return withGradients((await loader.reader())(model, options), options);
  return refused(options, typeof model === "string" ? "text" : "bytes", `the ${loader.content} of ${loader.name}`);
}

/** Throws `bad-option` for an option of another format. */
function requireOptions(loader: Loader, options: ImportOptions): void {
  const { file = "model" } = options;
  for (const name of ["entry", "plan"] as const) {
    if (options[name] === undefined || loader.options.includes(name)) continue;
    const others = loaders.filter((each) => each.options.includes(name)).map((each) => each.name);
    fail("bad-option", `a file of ${loader.name} takes no ${name}`, {
      place: { kind: "file", path: file },
      found: name,
      expected: `${name} for a file of ${others.join(", ")}`,
      help: `leave out ${name}: the file says it itself`,
    });
  }
}

function known(): string {
  return loaders.map(({ name, suffixes }: Loader) => `${name} (${suffixes.join(", ")})`).join(", ");
}

function refused(
  { file = "model" }: ImportOptions,
  found: string,
  expected: string,
  help = "pass the file as the framework wrote it; docs/import.md says how",
): never {
  return fail("model-syntax", "the model has no format that Braid reads", {
    place: { kind: "file", path: file, line: 1, column: 1 },
    found,
    expected,
    help,
  });
}
