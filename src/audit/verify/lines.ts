import { hash } from 'node:crypto';
import { own } from '../../kit/json-value.ts';

/** Characters; lines of the journal are far shorter. */
const MAX_LINE = 256 * 1024;
/** Of a container runtime, in the log of a Pod. `P`: a part of a line over 16 KiB, `F`: its end. */
const criPrefix = /^\d{4}-\S+ (stdout|stderr) ([PF]) /;

/**
 * One character for each byte (latin1): UTF-8 would give different files the same text. Drops a
 * carriage return before the newline, and joins lines that a container runtime has split.
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

/** As the line states them. */
export interface ChainLine {
  readonly chain: string;
  readonly seq: number;
  /** `hash` of the line before; empty for the first. */
  readonly prev: string;
  readonly hash: string;
  /** Lines before this one that could not be written. */
  readonly lost: number;
  /** The line matches its own hash. */
  readonly intact: boolean;
}

type LineReading =
  | { readonly is: 'line'; readonly line: ChainLine }
  /** Not in the format of the journal. */
  | { readonly is: 'recordLike' }
  /** The beginning of a line, which a failed write leaves behind. */
  | { readonly is: 'stump'; readonly chain: string | undefined }
  /** Such as of another program. */
  | { readonly is: 'unrelated' };

const journalStart = '{"chain":"';
const journalLine =
  /^\{"chain":"([0-9a-f]{24})","seq":([1-9]\d{0,14}),(?:"lost":([1-9]\d{0,14}),)?.*,"prev":"([0-9a-f]{64}|)","hash":"([0-9a-f]{64})"\}$/;

const journalStartWithChain = /^\{"chain":"([0-9a-f]{24})"/;

/** A log collector may have put a prefix, such as a time, before the line. */
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
  // jq would still find a record in such a line, for example if it has two JSON documents.
  return json.includes(journalStart) || json.includes('"verdict":') ? { is: 'recordLike' } : { is: 'unrelated' };
}

/** Of `,"hash":"…"}`. */
const TAIL = ',"hash":""}'.length + 64;

/** A JSON parser would read it as an audit record. */
function isRecordLike(json: string): boolean {
  try {
    return own(JSON.parse(json), 'verdict') !== undefined || json.startsWith(journalStart);
  } catch {
    return false;
  }
}

/** The last one may be cut off. */
const jsonStrings = /"(?:[^"\\]|\\.)*(?:"|\\?$)/g;

/** It ends before its first object is closed. */
function isUnfinished(json: string): boolean {
  let depth = 0;
  for (const character of json.replace(jsonStrings, '')) {
    if (character === '{') depth++;
    else if (character === '}' && --depth === 0) return false;
  }
  return true;
}
