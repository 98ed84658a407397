/** Texts of files, without TextDecoder, which the core's types do not have. */

/** Few enough for the arguments of a call. */
const pieceBytes = 8192;

/** Throws a URIError for bytes that are no UTF-8. */
export function utf8Text(bytes: Uint8Array): string {
  const pieces: string[] = [];
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    pieces.push(String.fromCharCode(...bytes.subarray(start, start + pieceBytes)));
  }
  const text = pieces.join("");
  if (!/[\u0080-\u00ff]/u.test(text)) return text;
  const hex = (byte: string): string => `%${byte.charCodeAt(0).toString(16).padStart(2, "0")}`;
  return decodeURIComponent(text.replaceAll(/[%\u0080-\u00ff]/gu, hex));
}
