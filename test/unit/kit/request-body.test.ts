import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { type Listening, listenHttp } from '../../../src/kit/listen.ts';
import { collectBody, freeBody, parseBody } from '../../../src/kit/request-body.ts';

const maxBytes = 400_000;

describe('collectBody', () => {
  let read: (request: IncomingMessage) => Promise<Buffer | undefined>;
  let results: Promise<Buffer | undefined>[] = [];
  let listening: Listening;
  const server = createServer((request, response) => {
    const result = read(request);
    results.push(result);
    result.then(
      (body) => response.writeHead(body ? 200 : 413, { connection: 'close' }).end(),
      () => response.destroy(),
    );
  });

  before(async () => {
    listening = await listenHttp(server, '127.0.0.1', 0);
  });
  beforeEach(() => {
    results = [];
    read = (request) => collectBody(request, { maxBytes });
  });
  after(() => listening.close());

  /** Sends `text` unchanged and returns the first line of the answer; undefined without an answer. */
  const exchange = async (text: string, end: 'wait' | 'cut'): Promise<string | undefined> => {
    const socket = connect(listening.port, '127.0.0.1');
    const answer: Buffer[] = [];
    socket.on('data', (chunk) => answer.push(chunk));
    // The server closes the connection without reading the rest of a body that is too large.
    socket.on('error', () => undefined);
    socket.write(text);
    if (end === 'cut') await once(server, 'request').then(() => socket.destroy());
    else await new Promise((resolve) => socket.once('close', resolve));
    return Buffer.concat(answer).toString().split('\r\n')[0] || undefined;
  };
  const chunked = (...pieces: string[]): string =>
    `POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${pieces
      .map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`)
      .join('')}0\r\n\r\n`;
  const announced = (length: number, body: string): string =>
    `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n${body}`;

  it('reads a body with a content length, and a body in chunks of one byte', async () => {
    assert.equal(await exchange(announced(5, 'hello'), 'wait'), 'HTTP/1.1 200 OK');
    await exchange(chunked(...'hello'), 'wait');
    assert.deepEqual((await Promise.all(results)).map(String), ['hello', 'hello']);
  });

  it('reads up to the limit, whatever its first buffer size, and no byte more', async () => {
    const pieces = [...Array.from({ length: 7 }, () => 'x'.repeat(57_142)), 'x'.repeat(6)];
    await exchange(chunked(...pieces), 'wait');
    assert.equal((await results[0])?.length, maxBytes);
    assert.equal(await exchange(chunked(...pieces, 'x'), 'wait'), 'HTTP/1.1 413 Payload Too Large');
    assert.equal(await results[1], undefined);
  });

  it('reads nothing of a body with a content length above the limit', async () => {
    assert.equal(await exchange(announced(maxBytes + 1, ''), 'wait'), 'HTTP/1.1 413 Payload Too Large');
  });

  it('frees the memory of a large body at once, and leaves a small one to the garbage collector', async () => {
    await exchange(announced(300_000, 'x'.repeat(300_000)), 'wait');
    await exchange(announced(5, 'hello'), 'wait');
    const [large, small] = await Promise.all(results);
    assert.ok(large && small);
    assert.equal(String(large), 'x'.repeat(300_000));
    for (const body of [large, small]) freeBody(body);
    assert.deepEqual([large.buffer.byteLength, large.length, String(small)], [0, 0, 'hello']);
  });

  it('parses a large body and frees its memory, also if it is not JSON', async () => {
    const document = JSON.stringify(['é'.repeat(100_000)]);
    await exchange(announced(Buffer.byteLength(document), document), 'wait');
    await exchange(chunked('{'), 'wait');
    const [valid, invalid] = await Promise.all(results);
    assert.ok(valid && invalid);
    assert.deepEqual(parseBody(valid), JSON.parse(document));
    assert.throws(() => parseBody(invalid), { code: 'InvalidJson' });
    assert.deepEqual([valid.buffer.byteLength, invalid.buffer.byteLength], [0, 0]);
    assert.deepEqual(parseBody(Buffer.from('[1]')), [1]);
  });

  it('rejects when the operating system has no memory left', async () => {
    const { resize } = ArrayBuffer.prototype;
    ArrayBuffer.prototype.resize = function (bytes) {
      if (bytes && bytes > 262_144) throw new RangeError('out of memory');
      resize.call(this, bytes);
    };
    try {
      await exchange(announced(300_000, 'x'.repeat(300_000)), 'wait');
      await assert.rejects(results[0] ?? Promise.resolve(), /out of memory/);
    } finally {
      ArrayBuffer.prototype.resize = resize;
    }
    await exchange(announced(300_000, 'x'.repeat(300_000)), 'wait');
    assert.equal((await results[1])?.length, 300_000);
  });

  it('rejects if the connection ends before the body', async () => {
    await exchange(announced(5, 'hel'), 'cut');
    await assert.rejects(results[0] ?? Promise.resolve(), { code: 'IncompleteBody' });
  });

  it('waits for its turn after each 256 KiB, and rejects if the turn is refused', async () => {
    let turns = 0;
    const nextTurn = async (): Promise<void> => {
      turns += 1;
      if (turns > 1) throw new Error('refused');
    };
    read = (request) => collectBody(request, { maxBytes, nextTurn });
    await exchange(announced(300_000, 'x'.repeat(300_000)), 'wait');
    assert.deepEqual([turns, (await results[0])?.length], [1, 300_000]);
    await exchange(announced(300_000, 'x'.repeat(300_000)), 'wait');
    await assert.rejects(results[1] ?? Promise.resolve(), /refused/);
  });
});
