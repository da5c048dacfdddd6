import { hash } from 'node:crypto';
import { own } from '../../kit/json-value.ts';

/** Maximum length of a line, characters. Longer ones may be truncated; lines of the journal are far shorter. */
const MAX_LINE = 256 * 1024;
/** What a container runtime puts in front of each line in the log file of a Pod. It splits lines of over 16 KiB: `P` is a part, `F` the end. */
const criPrefix = /^\d{4}-\S+ (stdout|stderr) ([PF]) /;

/**
 * The lines of a file, byte for byte: each byte is one character (latin1), because decoding as UTF-8 replaces invalid bytes, so two
 * different files could give the same text. Drops a carriage return before the newline. The last line may lack its newline. Joins the
 * parts of a line that a container runtime has split.
 */
export async function* byteLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  const parts = new Map<string, string>();
  const whole = (line: string): string[] => {
    const [prefix, stream = '', kind] = criPrefix.exec(line) ?? [];
    if (prefix === undefined) return [withoutReturn(line)];
    const joined = `${parts.get(stream) ?? ''}${line.slice(prefix.length)}`.slice(0, MAX_LINE);
    if (kind === 'P') parts.set(stream, joined);
    else parts.delete(stream);
    return kind === 'P' ? [] : [joined];
  };
  for await (const chunk of chunks) {
    const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1');
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = (lines.pop() ?? '').slice(0, MAX_LINE);
    for (const line of lines) yield* whole(line);
  }
  if (rest !== '') yield* whole(rest);
  yield* parts.values();
}

const withoutReturn = (line: string): string => (line.endsWith('\r') ? line.slice(0, -1) : line);

/** The chain fields of a line, as the line states them. */
export interface ChainLine {
  readonly chain: string;
  readonly seq: number;
  /** `hash` of the line before; empty for the first line of a chain. */
  readonly prev: string;
  readonly hash: string;
  /** Number of lines before this one that could not be written. */
  readonly lost: number;
  /** Whether the line matches its own hash. */
  readonly intact: boolean;
}

type LineReading =
  /** A line of a journal. */
  | { readonly is: 'line'; readonly line: ChainLine }
  /** Resembles an audit record, but does not have the format of the journal. */
  | { readonly is: 'recordLike' }
  /** The beginning of a journal line, which a failed write leaves behind. */
  | { readonly is: 'stump'; readonly chain: string | undefined }
  /** Any other line, such as one of another program. */
  | { readonly is: 'unrelated' };

const journalStart = '{"chain":"';
const journalLine =
  /^\{"chain":"([0-9a-f]{24})","seq":([1-9]\d{0,14}),(?:"lost":([1-9]\d{0,14}),)?.*,"prev":"([0-9a-f]{64}|)","hash":"([0-9a-f]{64})"\}$/;

const journalStartWithChain = /^\{"chain":"([0-9a-f]{24})"/;

/** Classifies one line of a log. A log collector may have put a prefix before a journal line, for example a time. */
export function readLine(text: string): LineReading {
  const at = text.indexOf('{');
  if (at < 0) return { is: 'unrelated' };
  const json = text.slice(at);
  const found = json.startsWith(journalStart) && journalLine.exec(json);
  if (found) {
    const [, chain = '', seq = '', lost = '0', prev = '', lineHash = ''] = found;
    const bytes = Buffer.from(`${json.slice(0, -TAIL)}}`, 'latin1');
    const intact = hash('sha256', bytes, 'hex') === lineHash;
    return { is: 'line', line: { chain, seq: Number(seq), prev, hash: lineHash, lost: Number(lost), intact } };
  }
  if (isRecordLike(json)) return { is: 'recordLike' };
  if (json.startsWith(journalStart) && isUnfinished(json))
    return { is: 'stump', chain: journalStartWithChain.exec(json)?.[1] };
  // A parser of JSON streams, such as jq, would still find a record in such a line, for example if it has two JSON documents.
  return json.includes(journalStart) || json.includes('"verdict":') ? { is: 'recordLike' } : { is: 'unrelated' };
}

/** Length of `,"hash":"…"}`, characters. */
const TAIL = ',"hash":""}'.length + 64;

/** Whether a JSON parser would read the line as an audit record. */
function isRecordLike(json: string): boolean {
  try {
    return own(JSON.parse(json), 'verdict') !== undefined || json.startsWith(journalStart);
  } catch {
    return false;
  }
}

/** Every JSON string of a text; the last one may be cut off. */
const jsonStrings = /"(?:[^"\\]|\\.)*(?:"|\\?$)/g;

/** Whether the text ends before its first object is closed. */
function isUnfinished(json: string): boolean {
  let depth = 0;
  for (const character of json.replace(jsonStrings, '')) {
    if (character === '{') depth++;
    else if (character === '}' && --depth === 0) return false;
  }
  return true;
}
