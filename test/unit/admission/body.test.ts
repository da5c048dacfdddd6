import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import { type BodyLimits, readBody } from '../../../src/admission/body.ts';
import { FairQueue } from '../../../src/admission/fair-queue.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { FairShare } from '../../../src/kit/fair-share.ts';
import { type Listening, listenHttp } from '../../../src/kit/listen.ts';

const BYTES = 1_000_000;

describe('the body of a review', () => {
  let limits: BodyLimits;
  let read: PromiseWithResolvers<{ readonly body: Buffer; readonly response: ServerResponse }>;
  let listening: Listening;
  const server = createServer((call, response) => {
    readBody(call, response, limits).then((body) => read.resolve({ body, response }), read.reject);
  });

  before(async () => {
    listening = await listenHttp(server, '127.0.0.1', 0);
  });
  beforeEach(() => {
    limits = { memory: new FairShare({ total: 2 * BYTES }), queue: new FairQueue({ clock: systemClock }) };
    read = Promise.withResolvers();
  });
  after(() => listening.close());

  const send = () => {
    const headers = { 'content-type': 'application/json', 'content-length': BYTES };
    const sent = request({ host: '127.0.0.1', port: listening.port, method: 'POST', headers, agent: false });
    sent.on('error', () => {});
    sent.end('x'.repeat(BYTES));
    return sent;
  };
  const inMemory = (body: Buffer): object => ({ held: limits.memory.inUse, bytes: body.buffer.byteLength });

  it('is freed when the client closes the connection before the answer', async () => {
    const sent = send();
    const { body, response } = await read.promise;
    assert.deepEqual(inMemory(body), { held: BYTES, bytes: BYTES });
    sent.destroy();
    await once(response, 'close');
    assert.deepEqual(inMemory(body), { held: 0, bytes: 0 });
  });

  it('is freed when the call is answered, though nothing parsed it', async () => {
    const sent = send();
    const { body, response } = await read.promise;
    sent.on('response', (answer) => answer.resume());
    response.end();
    await once(response, 'close');
    assert.deepEqual(inMemory(body), { held: 0, bytes: 0 });
  });
});
