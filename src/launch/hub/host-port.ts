/** An address and a port in messages: IPv6 addresses in brackets; null for all addresses. */
export function hostPort(host: string | null, port: number): string {
  return `${host === null ? "*" : host.includes(":") ? `[${host}]` : host}:${port}`;
}
