/** `braid (form=rotated, protocol=get)`, as DDLB labels implementations. */
export function labelOf({ name, option }: { readonly name: string; readonly option: string }): string {
  return option === "" ? name : `${name} (${option})`;
}
