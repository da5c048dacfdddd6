/**
 * Splits a text at spaces into lines of at most `width` characters. A longer word has a line of its own, wider than that. Other white space
 * belongs to its word, so no character but a space is lost.
 */
export const wrap = (text: string, width: number): string[] =>
  [...text.matchAll(new RegExp(`([^ ].{0,${width - 1}}|[^ ]+)(?: |$)`, 'g'))].map(([, line = '']) => line);
