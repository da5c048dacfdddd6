const NEWLINE = 0x0a;
/** etcd limits objects to 1.5 MiB, so a longer line means a broken stream. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** Splits before it decodes: no newline is inside a UTF-8 character. Omits blank lines. */
export class LineDecoder {
  #rest: Uint8Array[] = [];
  #restBytes = 0;

  /** The lines that `chunk` completes. Throws RangeError beyond 16 MiB without a newline. */
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
