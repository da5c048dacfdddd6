/** The first of `nearestNames`. */
export const nearest = (text: string, names: readonly string[]): string | undefined => nearestNames(text, names)[0];

/**
 * The names with the fewest edits first: at most two, and under half the length. A name that begins
 * with `text` counts as none, and one that contains it as one.
 */
export const nearestNames = (text: string, names: readonly string[]): string[] =>
  names
    .map((name) => ({ name, edits: editsFor(text, name) }))
    .filter(({ name, edits }) => edits <= 2 && edits * 2 < Math.max(name.length, 2))
    .sort((a, b) => a.edits - b.edits)
    .map(({ name }) => name);

function editsFor(text: string, name: string): number {
  if (text.length > 1 && name.startsWith(text)) return 0;
  return text.length > 3 && name.includes(text) ? 1 : editsBetween(text, name);
}

/** Insertions, deletions, substitutions, swaps. Infinity over 64 characters bounds the work. */
function editsBetween(a: string, b: string): number {
  if (a.length > 64) return Number.POSITIVE_INFINITY;
  let older: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min((row[j - 1] ?? 0) + 1, (last[j] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) least = Math.min(least, (older[j - 2] ?? 0) + 1);
      row.push(least);
    }
    [older, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
