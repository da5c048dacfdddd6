/** The files of the page, as the build found them. */
declare const CONSOLE_ASSETS: Readonly<Record<string, string>> | undefined;

/** By path, such as `/main.js`: gzip in base64. Empty without the build, in unit tests. */
export const assets: Readonly<Record<string, string>> = typeof CONSOLE_ASSETS === 'undefined' ? {} : CONSOLE_ASSETS;
