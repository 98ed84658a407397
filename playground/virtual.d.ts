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

declare module "virtual:passes" {
  /** What each pass does, by its name. */
  export const sentences: Readonly<Record<string, string>>;
}

declare module "virtual:profiles" {
  /** Of the shipped ones. */
  export const profileNames: readonly string[];
  /** The text of the one that a first visit shows. */
  export const usualText: string;
}

declare module "virtual:profile-texts" {
  /** By name. */
  export const texts: Readonly<Record<string, string>>;
}

declare module "virtual:types" {
  /** Declarations of Braid and of the language, by path. */
  export const types: Readonly<Record<string, string>>;
}

declare module "*.css";
