/** The page loads this file when the first file of torch.export is opened. */
import { sourceOfBytes } from "../../src/import/byte-source.ts";
import { printFxText } from "../../src/import/torch-export/fx-print.ts";
import { readExportedProgram } from "../../src/import/torch-export/read.ts";

/** Throws what `readExportedProgram` throws. */
export function exportedText(file: string, bytes: Uint8Array): { readonly name: string; readonly text: string } {
  const text = printFxText(readExportedProgram(sourceOfBytes(bytes), file));
  return { name: file.replace(/\.pt2$/u, ".fx"), text };
}
