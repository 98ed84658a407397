/** Answers the editor's questions about types. Nothing of the user's program is evaluated. */
import { types } from "virtual:types";
import type { TypesAnswer, TypesRequest } from "./messages.ts";
import { createTypesService } from "./service.ts";

const service = createTypesService(new Map(Object.entries(types)));

addEventListener("message", ({ data: { id, kind, text, position } }: MessageEvent<TypesRequest>) => {
  const answer: TypesAnswer =
    kind === "complete"
      ? { kind: "names", id, names: service.complete(text, position) }
      : { kind: "explanation", id, explanation: service.explain(text, position) };
  postMessage(answer);
});
