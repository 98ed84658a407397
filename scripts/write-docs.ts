/** Writes the generated parts of docs/: `npm run docs`. */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { writeGeneratedDocs } from "./generated-docs.ts";

writeGeneratedDocs(dirname(dirname(fileURLToPath(import.meta.url))));
