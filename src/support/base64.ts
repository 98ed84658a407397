/** Decodes base64. Every host has a decoder, but the ECMAScript library that the core compiles with does not. */
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** `text` uses the standard alphabet with padding. */
export function decodeBase64(text: string): Uint8Array {
  const digits = text.replace(/=+$/u, "");
  const bytes = new Uint8Array(Math.floor((digits.length * 3) / 4));
  let bits = 0;
  let held = 0;
  let next = 0;
  for (const digit of digits) {
    bits = ((bits << 6) | alphabet.indexOf(digit)) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes[next++] = (bits >>> held) & 0xff;
  }
  return bytes;
}
