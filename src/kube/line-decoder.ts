const NEWLINE = 0x0a;
/** Objects are bounded by etcd at 1.5 MiB; anything near this is a broken stream. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/**
 * Cuts a byte stream into lines, whatever the chunks: the newline byte never occurs inside a UTF-8 character, so bytes are cut first
 * and decoded after. Empty lines are left out; what follows the last newline stays behind and is never given out.
 */
export class LineDecoder {
  #rest: Uint8Array[] = [];
  #restBytes = 0;

  /** The lines that `chunk` completes. Throws RangeError when a line grows beyond 16 MiB. */
  push(chunk: Uint8Array): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const line = this.#take(chunk.subarray(start, end));
      if (line.trim() !== '') lines.push(line);
      start = end + 1;
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
    return lines;
  }

  #take(end: Uint8Array): string {
    const bytes = this.#rest.length === 0 ? end : Buffer.concat([...this.#rest, end]);
    this.#rest = [];
    this.#restBytes = 0;
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  }

  #keep(bytes: Uint8Array): void {
    this.#rest.push(bytes);
    this.#restBytes += bytes.byteLength;
    if (this.#restBytes > MAX_LINE_BYTES) throw new RangeError(`a line of the stream exceeds ${MAX_LINE_BYTES} bytes`);
  }
}
