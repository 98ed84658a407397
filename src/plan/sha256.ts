import { createHash } from "node:crypto";

/** 64 hexadecimal digits. */
export function sha256(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
