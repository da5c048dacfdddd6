/** Splits a text at spaces into lines of at most `width` characters. A longer word has a line of its own, wider than that. */
export const wrap = (text: string, width: number): string[] =>
  [...text.matchAll(new RegExp(`(\\S.{0,${width - 1}}|\\S+)(?: |$)`, 'g'))].map(([, line = '']) => line);
