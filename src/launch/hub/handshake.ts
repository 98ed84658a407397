/**
 * Decides who may join: both sides prove that they know the token without sending it. The hub sends a nonce. The rank
 * answers with its own nonce and an HMAC over both and its claim. The hub answers with an HMAC in the other direction.
 * A stranger on either side learns nothing reusable.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

export const nonceBytes = 16;
const proofBytes = 32;
const version = 1;

/** What a rank claims to be. */
export interface JoinClaim {
  readonly rank: number;
  readonly worldSize: number;
}

export function newNonce(): Uint8Array {
  return randomBytes(nonceBytes);
}

/** 256 random bits as text, for an environment variable or a file. */
export function newToken(): string {
  return randomBytes(32).toString("hex");
}

/** The body of a hello: version, rank, worldSize, nonce, proof. */
export function encodeHello(token: string, hubNonce: Uint8Array, rankNonce: Uint8Array, claim: JoinClaim): Uint8Array {
  const head = helloHead(claim);
  return Buffer.concat([head, rankNonce, proof(token, "rank", [head, hubNonce, rankNonce])]);
}

/** The claim and nonce of a hello; null if it is malformed, of another version, or without proof of the token. */
export function readHello(
  token: string,
  hubNonce: Uint8Array,
  body: Uint8Array,
): { readonly claim: JoinClaim; readonly nonce: Uint8Array } | null {
  if (body.length !== 12 + nonceBytes + proofBytes) return null;
  const head = body.subarray(0, 12);
  const nonce = body.subarray(12, 12 + nonceBytes);
  if (!timingSafeEqual(body.subarray(12 + nonceBytes), proof(token, "rank", [head, hubNonce, nonce]))) return null;
  const view = new DataView(head.buffer, head.byteOffset, head.length);
  if (view.getUint32(0, true) !== version) return null;
  return { claim: { rank: view.getUint32(4, true), worldSize: view.getUint32(8, true) }, nonce };
}

export function encodeWelcome(token: string, hubNonce: Uint8Array, rankNonce: Uint8Array): Uint8Array {
  return proof(token, "hub", [hubNonce, rankNonce]);
}

export function isWelcome(token: string, hubNonce: Uint8Array, rankNonce: Uint8Array, body: Uint8Array): boolean {
  return body.length === proofBytes && timingSafeEqual(body, encodeWelcome(token, hubNonce, rankNonce));
}

/** The body of a refusal: a proof over the text, then the text. */
export function encodeRefusal(
  token: string,
  hubNonce: Uint8Array,
  rankNonce: Uint8Array,
  text: Uint8Array,
): Uint8Array {
  return Buffer.concat([proof(token, "refusal", [hubNonce, rankNonce, text]), text]);
}

/** The text of a refusal; null if it does not come from a hub that knows the token. */
export function readRefusal(
  token: string,
  hubNonce: Uint8Array,
  rankNonce: Uint8Array,
  body: Uint8Array,
): Uint8Array | null {
  if (body.length < proofBytes) return null;
  const text = body.subarray(proofBytes);
  const expected = proof(token, "refusal", [hubNonce, rankNonce, text]);
  return timingSafeEqual(body.subarray(0, proofBytes), expected) ? text : null;
}

function helloHead({ rank, worldSize }: JoinClaim): Uint8Array {
  const head = new Uint8Array(12);
  const view = new DataView(head.buffer);
  view.setUint32(0, version, true);
  view.setUint32(4, rank, true);
  view.setUint32(8, worldSize, true);
  return head;
}

function proof(token: string, side: "rank" | "hub" | "refusal", parts: readonly Uint8Array[]): Uint8Array {
  const hmac = createHmac("sha256", token).update(`braid ${side} ${version} `);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

/** An address and a port in messages: IPv6 addresses in brackets; null for all addresses. */
export function hostPort(host: string | null, port: number): string {
  return `${host === null ? "*" : host.includes(":") ? `[${host}]` : host}:${port}`;
}
