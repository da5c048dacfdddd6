import { own } from '../kit/json-value.ts';
import { LineDecoder } from '../kube/line-decoder.ts';
import { exits } from './command-spec.ts';
import { Problem } from './problem.ts';

/** The first line of a recording. Sizes are those of the session's terminal, in characters. */
export interface CastHeader {
  readonly width: number;
  readonly height: number;
  /** In recordings of the gateway, the name of the session. */
  readonly title: string | undefined;
}

export interface CastEvent {
  /** Since the start of the recording. */
  readonly atMs: number;
  /** `o`: output, `i`: input, `r`: new size, `m`: marker. Others may occur. */
  readonly code: string;
  readonly text: string;
}

/** Its unchanged text, and its parsed header or event. */
export type CastLine = { readonly line: string } & (
  | { readonly header: CastHeader }
  | { readonly event: CastEvent }
  /** A comment. */
  | object
);

/** Parses asciicast v2 or v3 as it arrives. Rejects with a Problem for the first invalid line. */
export async function* readCast(chunks: AsyncIterable<Uint8Array>): AsyncIterable<CastLine> {
  const decoder = new LineDecoder();
  let version: number | undefined;
  let number = 0;
  let atMs = 0;
  for await (const chunk of chunks) {
    for (const line of decoder.push(chunk)) {
      number += 1;
      if (version === undefined) {
        const found = headerIn(line);
        if (!found) throw noHeader();
        version = found.version;
        yield { line, header: found.header };
      } else if (version === 3 && line.startsWith('#')) yield { line };
      else {
        const event = eventIn(line);
        if (!event)
          throw new Problem(
            exits.failed,
            `line ${number} of the recording is not an event [TIME, CODE, TEXT]; the recording is damaged, and only the lines before it can be shown`,
          );
        // In v3, each time counts from the previous event.
        atMs = version === 3 ? atMs + event.atMs : event.atMs;
        yield { line, event: { ...event, atMs } };
      }
    }
  }
  if (version === undefined) throw noHeader();
}

function headerIn(line: string): { readonly version: number; readonly header: CastHeader } | undefined {
  const value = parsed(line);
  const version = own(value, 'version');
  if (version !== 2 && version !== 3) return undefined;
  const [size, names] = version === 2 ? [value, ['width', 'height']] : [own(value, 'term'), ['cols', 'rows']];
  const [width, height] = names.map((name) => own(size, name));
  if (typeof width !== 'number' || typeof height !== 'number') return undefined;
  const title = own(value, 'title');
  return { version, header: { width, height, title: typeof title === 'string' ? title : undefined } };
}

function eventIn(line: string): CastEvent | undefined {
  const value = parsed(line);
  if (!Array.isArray(value) || value.length !== 3) return undefined;
  const [seconds, code, text] = value as unknown[];
  const isTime = typeof seconds === 'number' && Number.isFinite(seconds) && seconds >= 0;
  if (!isTime || typeof code !== 'string' || typeof text !== 'string') return undefined;
  return { atMs: seconds * 1000, code, text };
}

/** Undefined for other text. */
export function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const noHeader = (): Problem =>
  new Problem(
    exits.failed,
    'line 1 is not the header of a recording in asciicast v2 or v3; give the name of a session, or the file of a recording',
  );
