/** The label of an implementation in DDLB's form: `braid (form=rotated, protocol=get)`. */
export function labelOf({ name, option }: { readonly name: string; readonly option: string }): string {
  return option === "" ? name : `${name} (${option})`;
}
