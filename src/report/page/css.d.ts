/** Style sheets are imported as texts. */
declare module "*.css" {
  const text: string;
  export default text;
}
