/**
 * Negative when `a` is older than `b`, 0 when equal, positive when newer; undefined when one of them is not a decimal number
 * and so says nothing about order.
 */
export function compareResourceVersions(a: string, b: string): number | undefined {
  if (a === b) return 0;
  if (!isDecimal(a) || !isDecimal(b)) return undefined;
  // Without leading zeros the longer number is the larger, and they may exceed what a double holds.
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** True only when both are numbers and `a` is the smaller. */
export function isOlder(a: string, b: string): boolean {
  const order = compareResourceVersions(a, b);
  return order !== undefined && order < 0;
}

const isDecimal = (text: string): boolean => /^(0|[1-9]\d*)$/.test(text);
