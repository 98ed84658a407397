/**
 * The loader of program files. It is loaded by `require`, because `import` would first search its 190 KB of minified
 * CommonJS for exports, which takes 30 ms.
 */
import { createRequire } from "node:module";
import type * as Jiti from "jiti";

// oxlint-disable-next-line typescript/no-unsafe-assignment -- require gives any
const jiti: typeof Jiti = createRequire(import.meta.url)("jiti");

export const createJiti = jiti.createJiti;
