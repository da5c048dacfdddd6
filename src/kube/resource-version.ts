/** Negative if `a` is older. Versions that are not decimal numbers have no order. */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!isDecimal(a) || !isDecimal(b)) return undefined;
  // Without leading zeros, the longer number is larger. A double is not precise enough.
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

export function isOlder(a: string, b: string): boolean {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
}

const isDecimal = (text: string): boolean => /^(0|[1-9]\d*)$/.test(text);
