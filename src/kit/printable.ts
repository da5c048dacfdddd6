/** Replaces control and invisible characters by `?`: names, reasons, and messages may contain control sequences for a terminal. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');

/** As `printable`, for a text of several lines: line ends and tabs stay. */
export const printableLines = (text: string): string =>
  text.replace(/\r(?!\n)|[^\P{Cc}\t\r\n]|[\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
