/** Names, reasons, and messages may contain control sequences for a terminal. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');

/** As `printable`, but line ends and tabs stay. */
export const printableLines = (text: string): string =>
  text.replace(/\r(?!\n)|[^\P{Cc}\t\r\n]|[\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
