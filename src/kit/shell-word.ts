/** Text that is literal in every POSIX shell and in fish, with and without quotes. */
export const isPlainWord = (text: string): boolean => /^[A-Za-z0-9_@%+=:./-]+$/.test(text);

/**
 * Quotes the text as one word, or as a part of one, for POSIX shells and for fish. Escapes backslashes and single quotes outside of the
 * quotes: between single quotes, fish, unlike POSIX shells, reads a backslash before either of them as an escape.
 */
export function shellWord(text: string): string {
  if (text === '') return "''";
  if (isPlainWord(text)) return text;
  return text.replace(/[^'\\]+|['\\]/g, (part) => (part === "'" || part === '\\' ? `\\${part}` : `'${part}'`));
}
