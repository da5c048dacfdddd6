/** Literal in every POSIX shell and in fish. At the beginning, zsh expands =, and fish %self. */
export const isPlainWord = (text: string): boolean => /^(?![=%])[A-Za-z0-9_@%+=:./-]+$/.test(text);

/** One word or a part of one. In single quotes, fish reads `\'` and `\\` as escapes. */
export function shellWord(text: string): string {
  if (text === '') return "''";
  if (isPlainWord(text)) return text;
  return text.replace(/[^'\\]+|['\\]/g, (part) => (part === "'" || part === '\\' ? `\\${part}` : `'${part}'`));
}
