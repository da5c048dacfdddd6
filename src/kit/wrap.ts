/**
 * Splits a text at spaces into lines of at most `width` characters. A longer word has a line of its own, which is wider. Other white space
 * counts as part of a word, so only spaces are lost.
 */
export const wrap = (text: string, width: number): string[] =>
  [...text.matchAll(new RegExp(`([^ ].{0,${width - 1}}|[^ ]+)(?: |$)`, 'g'))].map(([, line = '']) => line);
