/** What the page and the worker of TypeScript's service send each other. */

export interface TypesRequest {
  readonly id: number;
  readonly kind: "complete" | "explain";
  /** The whole program. */
  readonly text: string;
  readonly position: number;
}

export interface TypedName {
  readonly name: string;
  /** TypeScript's kind: `method`, `const`. */
  readonly kind: string;
}

export interface Explanation {
  /** Of the word that is explained. */
  readonly from: number;
  readonly to: number;
  /** `(method) Fusion.output(tensor: TensorView): void` */
  readonly signature: string;
  readonly documentation: string;
}

export type TypesAnswer =
  | { readonly kind: "names"; readonly id: number; readonly names: readonly TypedName[] }
  /** Null where there is nothing with a type. */
  | { readonly kind: "explanation"; readonly id: number; readonly explanation: Explanation | null };
