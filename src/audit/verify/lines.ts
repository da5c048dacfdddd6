/** Longer lines are cut; none of ours comes near. */
const MAX_LINE = 256 * 1024;

/**
 * The lines of a file, byte for byte: each byte is one character (latin1), because decoding could make two different files look the
 * same. A carriage return before the newline is dropped. The last line may lack its newline.
 */
export async function* byteLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1');
    const lines = text.split('\n');
    lines[0] = rest + lines[0];
    rest = (lines.pop() ?? '').slice(0, MAX_LINE);
    for (const line of lines) yield withoutReturn(line);
  }
  if (rest !== '') yield withoutReturn(rest);
}

const withoutReturn = (line: string): string => (line.endsWith('\r') ? line.slice(0, -1) : line);
