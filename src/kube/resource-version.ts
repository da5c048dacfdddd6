/**
 * Negative if `a` is older than `b`, 0 if equal, positive if newer. Undefined if they differ and one is not a decimal number, because
 * such versions have no order.
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!isDecimal(a) || !isDecimal(b)) return undefined;
  // Without leading zeros, the longer number is the larger one. Versions may exceed the precision of a double.
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** Whether both are numbers and `a` is smaller. */
export function isOlder(a: string, b: string): boolean {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
}

const isDecimal = (text: string): boolean => /^(0|[1-9]\d*)$/.test(text);
