/**
 * MLIR's textual form as data, without a meaning: operations with operands, attributes, regions and types. The same
 * nodes stand for pretty and generic forms; `attributes.ts` beside `ops` reads what an op needs from either.
 */

/** `tensor<4x8xf32>`; a null extent is `?`. */
export interface TensorType {
  readonly kind: "tensor";
  readonly shape: readonly (number | null)[];
  /** As MLIR spells it: `f32`, `i1`. */
  readonly element: string;
}

export type Type = TensorType | { readonly kind: "other"; readonly text: string };

export type Attribute =
  /** `4`, `-1.5e-3`, `0xFF800000` */
  | { readonly kind: "number"; readonly text: string }
  | { readonly kind: "string"; readonly text: string }
  /** A keyword, a sign between parts of a sequence, or a type of one word. */
  | { readonly kind: "word"; readonly text: string }
  /** `@name` */
  | { readonly kind: "symbol"; readonly name: string }
  /** `[..]`, `{..}`, `<..>` or `(..)`: what stands alone, and what stands after `key =`. */
  | {
      readonly kind: "group";
      readonly open: GroupOpen;
      readonly items: readonly Attribute[];
      readonly entries: ReadonlyMap<string, Attribute>;
    }
  /** Parts without a comma between them: `0:2`, `[1] x [0]`, `{"x"}p1`. */
  | { readonly kind: "sequence"; readonly parts: readonly Attribute[] }
  /** `#sdy.sharding<..>`, `dense<..>`, `array<..>`; the body is a group. */
  | { readonly kind: "named"; readonly name: string; readonly body: Attribute }
  | { readonly kind: "type"; readonly type: Type };

export type GroupOpen = "[" | "{" | "<" | "(";

export interface BlockArgument {
  readonly name: string;
  readonly type: Type;
  readonly attributes: ReadonlyMap<string, Attribute>;
  readonly position: number;
}

export interface OpRegion {
  readonly arguments: readonly BlockArgument[];
  readonly operations: readonly Operation[];
}

export interface Operation {
  /** `stablehlo.add` */
  readonly name: string;
  /** `%0`; of several results `%0#0`, `%0#1`. */
  readonly results: readonly string[];
  readonly operands: readonly string[];
  readonly attributes: ReadonlyMap<string, Attribute>;
  /** What a pretty form has between its commas beside operands and `key = value`. */
  readonly items: readonly Attribute[];
  readonly regions: readonly OpRegion[];
  readonly operandTypes: readonly Type[];
  readonly resultTypes: readonly Type[];
  /** Of the op's name in the text. */
  readonly position: number;
  /** The op of the first line that differs from its own in names alone; null where it has no such line. */
  readonly like: Operation | null;
}

export interface MlirFunction {
  readonly name: string;
  readonly isPublic: boolean;
  readonly arguments: readonly BlockArgument[];
  readonly resultTypes: readonly Type[];
  readonly resultAttributes: readonly ReadonlyMap<string, Attribute>[];
  /** Null for a declaration. */
  readonly body: readonly Operation[] | null;
  readonly position: number;
}

export interface MlirModule {
  readonly attributes: ReadonlyMap<string, Attribute>;
  readonly functions: ReadonlyMap<string, MlirFunction>;
  /** Other ops of the module, such as `sdy.mesh`. */
  readonly operations: readonly Operation[];
}
