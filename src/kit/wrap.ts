/** At spaces. A longer word has a line of its own, and other white space belongs to words. */
export const wrap = (text: string, width: number): string[] =>
  [...text.matchAll(new RegExp(`([^ ].{0,${width - 1}}|[^ ]+)(?: |$)`, 'g'))].map(([, line = '']) => line);
