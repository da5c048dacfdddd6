import { StringDecoder } from 'node:string_decoder';

/** In characters. */
export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/** Events of asciicast v2: output, input, resize, marker. */
export type CastCode = 'o' | 'i' | 'r' | 'm';

/** A placeholder: the header is stored before the client sends its size as the first `r` event. */
export const headerSize: TerminalSize = { width: 80, height: 24 };
/** Characters that a client may send as width or height. */
const MAX_SIDE = 10_000;

/** The first line of a recording or a live view. `startedAtMs`: epoch ms. */
export const castHeader = (session: string, startedAtMs: number, size: TerminalSize = headerSize): string =>
  `${JSON.stringify({ version: 2, ...size, timestamp: Math.floor(startedAtMs / 1000), title: session })}\n`;

/** `afterMs`: since the start of the recording. */
export const castEvent = (afterMs: number, code: CastCode, text: string): string =>
  `[${(afterMs / 1000).toFixed(6)},"${code}",${JSON.stringify(text)}]\n`;

/** UTF-8 of one channel. A character may span several parts; invalid bytes become U+FFFD. */
export class Utf8Decoder {
  readonly #decoder = new StringDecoder('utf8');

  read(part: Buffer): string {
    return this.#decoder.write(part);
  }
}

/** A message of the resize channel. No size may be 0 or over the maximum. */
export function parseTerminalSize(text: string): TerminalSize | undefined {
  const [, width, height] = /^\s*\{\s*"Width"\s*:\s*(\d{1,5})\s*,\s*"Height"\s*:\s*(\d{1,5})\s*\}\s*$/.exec(text) ?? [];
  if (width === undefined || height === undefined) return undefined;
  const size = { width: Number(width), height: Number(height) };
  const isSide = (side: number): boolean => side > 0 && side <= MAX_SIDE;
  return isSide(size.width) && isSide(size.height) ? size : undefined;
}
