/** `v0.1.0` out of `0.1.0`, `v0.1.0-rc.1` or `v0.1.0+build`: what backends and kubectl plugins compare. Undefined when it is no version. */
export function konnectorVersion(version: string): string | undefined {
  const [, numbers] = /^v?(\d+\.\d+\.\d+)(?:[-+][0-9A-Za-z.+-]+)?$/.exec(version) ?? [];
  return numbers === undefined ? undefined : `v${numbers}`;
}
