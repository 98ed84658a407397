/** Modules that scripts/bundle-playground.ts makes from files of the repository. */
declare module "virtual:examples" {
  /** In the order of the menu. */
  export const examples: readonly {
    /** `transformer/mlp` */
    readonly name: string;
    /** The first sentence of the file's comment. */
    readonly sentence: string;
  }[];
  /** The text of the first one. */
  export const firstText: string;
}

declare module "virtual:example-texts" {
  /** By name. */
  export const texts: Readonly<Record<string, string>>;
}

declare module "virtual:profiles" {
  export const profiles: readonly { readonly name: string; readonly text: string }[];
}

declare module "*.css";
