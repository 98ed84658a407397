/** Opens programs, dumps and machine profiles: examples, and files of the user. */
import { DiagnosticError, renderDiagnostic } from "../../src/diagnostics/diagnostic.ts";
import { gpuSizes, kindOfFile } from "../model/inputs.ts";
import type { Store } from "./store.ts";

async function openFile(file: File, store: Store): Promise<void> {
  try {
    const { name, text } = file.name.endsWith(".pt2")
      ? await openExported(file)
      : { name: file.name, text: await file.text() };
    const kind = kindOfFile(name, text);
    if (kind === "profile") await openProfile(name, text, store);
    else store.change({ kind: "open", document: { kind, name, text }, params: {} });
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    alert(error.diagnostics.map(renderDiagnostic).join("\n"));
  }
}

async function openProfile(name: string, text: string, store: Store): Promise<void> {
  const { parseProfile } = await import("../../src/simulate/parse-profile.ts");
  parseProfile(text, name);
  store.change({ kind: "profile", name: name.replace(/\.json$/u, ""), text });
}

/** A file of torch.export as the text of its graph, which can be shown, edited and shared. */
async function openExported(file: File): Promise<{ readonly name: string; readonly text: string }> {
  const { exportedText } = await import("../model/exported-text.ts");
  return exportedText(file.name, new Uint8Array(await file.arrayBuffer()));
}

/** Their texts come when the first is opened. An unknown name opens nothing. */
export async function openExample(name: string, store: Store): Promise<void> {
  const { texts } = await import("virtual:example-texts");
  const { [name]: text } = texts;
  if (text === undefined) return;
  const document = { kind: "program", name: `examples/${name}.ts`, text } as const;
  store.change({ kind: "open", document, params: gpuSizes[name] ?? {} });
}

export function chooseFile(accept: string, store: Store): void {
  const input = document.createElement("input");
  input.type = "file";
  input.accept = accept;
  input.onchange = () => {
    const file = input.files?.[0];
    if (file !== undefined) void openFile(file, store);
  };
  input.click();
}

/** Files that are dropped anywhere on the page. */
export function acceptDrops(store: Store): void {
  addEventListener("dragover", (event) => {
    event.preventDefault();
  });
  addEventListener("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    if (file === undefined) return;
    event.preventDefault();
    void openFile(file, store);
  });
}
