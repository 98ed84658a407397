/** A state as the fragment of an address, compressed, and back. Edits of host programs and the profile go along. */
import { deflateSync, inflateSync, strFromU8, strToU8 } from "fflate";
import * as v from "valibot";
import { paneNames, type State } from "./state.ts";

const texts = v.record(v.string(), v.string());
const stateSchema = v.object({
  document: v.object({
    kind: v.picklist(["program", "dump", "model"]),
    name: v.string(),
    text: v.string(),
    isEdited: v.exactOptional(v.boolean()),
  }),
  options: texts,
  params: texts,
  profile: v.string(),
  customProfile: v.nullable(v.string()),
  edits: texts,
  rank: v.pipe(v.number(), v.integer(), v.minValue(0)),
  pane: v.picklist(paneNames),
});

/** The version of the format is its first character. */
const version = "1";

/** A link that inflates to more than this is refused. */
const mostBytes = 20_000_000;

export function encodeState(state: State): string {
  return version + base64Url(deflateSync(strToU8(JSON.stringify(state)), { level: 9 }));
}

/** Null for any other text. */
export function decodeState(text: string): State | null {
  if (!text.startsWith(version)) return null;
  try {
    const inflated = inflateSync(bytesOf(text.slice(version.length)), { out: new Uint8Array(mostBytes) });
    const parsed = v.safeParse(stateSchema, JSON.parse(strFromU8(inflated)));
    return parsed.success ? parsed.output : null;
  } catch {
    return null;
  }
}

function base64Url(bytes: Uint8Array): string {
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/u, "");
}

/** Throws for a text that is not base64. */
function bytesOf(text: string): Uint8Array {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}
