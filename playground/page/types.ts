/**
 * Completion, and signatures under the pointer, from TypeScript's service in a worker. The editor loads this module when
 * the program is first edited or pointed at; the worker's script has most of TypeScript.
 */
import { autocompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import type { Extension } from "@codemirror/state";
import { hoverTooltip, type Tooltip } from "@codemirror/view";
import type { TypedName, TypesAnswer, TypesRequest } from "../typescript/messages.ts";
import { startWorker } from "./workers.ts";

/** The first answer takes longest: TypeScript reads the declarations. */
const timeout = 20_000;

type Ask = (request: Omit<TypesRequest, "id">) => Promise<TypesAnswer | null>;

export function typesExtension(): Extension {
  const ask = createAsk();
  return [
    autocompletion({ override: [async (context) => complete(ask, context)] }),
    hoverTooltip(async ({ state }, position) => explain(ask, state.doc.toString(), position)),
  ];
}

/** Answers null after a time-out. */
function createAsk(): Ask {
  const worker = startWorker("types-worker.js");
  const waiting = new Map<number, (answer: TypesAnswer | null) => void>();
  let last = 0;
  worker.onmessage = ({ data }: MessageEvent<TypesAnswer>) => {
    waiting.get(data.id)?.(data);
  };
  return (request) =>
    new Promise((resolve) => {
      const id = ++last;
      const finish = (answer: TypesAnswer | null): void => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve(answer);
      };
      const timer = setTimeout(finish, timeout, null);
      waiting.set(id, finish);
      worker.postMessage({ ...request, id } satisfies TypesRequest);
    });
}

async function complete(ask: Ask, context: CompletionContext): Promise<CompletionResult | null> {
  const word = context.matchBefore(/[\w$]+/u);
  const opens = context.matchBefore(/[.'"]$/u);
  if (word === null && opens === null && !context.explicit) return null;
  const { state, pos } = context;
  const answer = await ask({ kind: "complete", text: state.doc.toString(), position: pos });
  if (answer?.kind !== "names") return null;
  return { from: word?.from ?? pos, options: answer.names.map(optionOf), validFor: /^[\w$]*$/u };
}

/** Members, and what the program names, come before keywords and globals. */
function optionOf({ name, kind }: TypedName): { label: string; type: string; boost: number } {
  const type = types[kind] ?? "variable";
  return { label: name, type, boost: kind === "keyword" ? -20 : kind === "var" || kind === "module" ? -10 : 0 };
}

/** CodeMirror's icons by TypeScript's kinds. */
const types: Readonly<Record<string, string>> = {
  method: "method",
  function: "function",
  property: "property",
  getter: "property",
  class: "class",
  interface: "interface",
  type: "type",
  const: "constant",
  keyword: "keyword",
  string: "text",
};

async function explain(ask: Ask, text: string, position: number): Promise<Tooltip | null> {
  const answer = await ask({ kind: "explain", text, position });
  if (answer?.kind !== "explanation" || answer.explanation === null) return null;
  const { from, to, signature, documentation } = answer.explanation;
  return {
    pos: from,
    end: to,
    above: true,
    create: () => {
      const dom = document.createElement("div");
      dom.className = "signature";
      dom.append(element("code", signature), ...(documentation === "" ? [] : [element("p", documentation)]));
      return { dom };
    },
  };
}

function element(name: "code" | "p", text: string): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
