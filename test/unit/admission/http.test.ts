import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import supertest from 'supertest';
import { createAdmissionApp } from '../../../src/admission/app.ts';
import { FairQueue } from '../../../src/admission/fair-queue.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { pluck } from '../../support/pluck.ts';
import { accessRequest, paths, requester, reviewOf, World } from './support.ts';

const json = 'application/json';
const review = (request: unknown): string =>
  JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request });
const create = reviewOf('podaccessrequests', 'CREATE', { object: accessRequest({ requester }) });

describe('the webhook endpoint', () => {
  const world = new World();
  const post = (body: string | Buffer, type = json, path: string = paths.validatePod) =>
    supertest(world.app)
      .post(path)
      .set('content-type', type)
      .serialize((sent) => sent as string)
      .send(body as string);

  const refused: [string, string, number, RegExp][] = [
    ['an empty body', '', 400, /^InvalidJson/],
    ['text that is not JSON', '{"a":', 400, /^InvalidJson/],
    ['a key that is there twice', '{"kind":"AdmissionReview","kind":"AdmissionReview"}', 400, /^DuplicateKey/],
    ['__proto__ as a key', '{"__proto__":{"uid":"x"}}', 400, /^ForbiddenKey/],
    ['__proto__ written with escapes', '{"\\u005f_proto__":{}}', 400, /^ForbiddenKey/],
    ['deep nesting', '['.repeat(10_000) + ']'.repeat(10_000), 400, /^TooDeep/],
    [
      'too many keys',
      JSON.stringify(Object.fromEntries(Array.from({ length: 20_001 }, (_, i) => [i, 0]))),
      400,
      /^TooManyKeys/,
    ],
    ['a million values', `{"kind":[${'1,'.repeat(1_000_000)}1]}`, 400, /^TooManyValues/],
    ['half a surrogate pair', '"\\ud800"', 400, /^LoneSurrogate/],
    ['no request', review(null), 400, /^InvalidReview: request must be an object; found null/],
    [
      'another kind of object',
      review({ ...create, resource: { group: '', version: 'v1', resource: 'pods' } }),
      400,
      /found CREATE of "pods {2}v1"; \/validate-\S+ allows CREATE, UPDATE, DELETE of podaccessrequests/,
    ],
    ['a subresource', review({ ...create, subResource: 'status' }), 400, /found CREATE of .*status/],
    ['an operation that it is not registered for', review({ ...create, operation: 'CONNECT' }), 400, /found CONNECT/],
  ];
  for (const [title, body, status, message] of refused) {
    it(`answers ${status} to ${title}`, async () => {
      const before = world.lines.length;
      const answer = await post(body);
      assert.equal(answer.status, status);
      assert.match(answer.text, message);
      assert.equal(world.lines.length, before);
    });
  }

  it('names each subresource of a path with its resource', async () => {
    const answer = await supertest(world.app).post('/watch-v1-pod').set('content-type', json).send(review(create));
    assert.equal(answer.status, 400);
    assert.match(answer.text, /allows CONNECT, UPDATE of pods\/exec, pods\/attach, /);
  });

  it('answers 400 to invalid UTF-8', async () => {
    const answer = await supertest(world.app)
      .post(paths.validatePod)
      .set('content-type', json)
      .serialize((sent) => sent)
      .send(Buffer.from([0x22, 0xff, 0x22]) as unknown as string);
    assert.equal(answer.status, 400);
    assert.match(answer.text, /^InvalidUtf8/);
  });

  it('accepts only application/json, with parameters, and nothing compressed', async () => {
    for (const type of ['text/plain', 'application/jsonp', 'application/vnd.kubernetes.protobuf']) {
      assert.equal((await post(review(create), type)).status, 415, type);
    }
    assert.equal((await post(review(create), 'Application/JSON; charset=utf-8')).status, 200);
    const gzip = await post('\u001f\u008b').set('content-encoding', 'gzip');
    assert.equal(gzip.status, 415);
  });

  it('answers 413 to a body beyond the limit', async () => {
    const answer = await post(`"${'x'.repeat(4 * 1024 * 1024)}"`).catch((error: NodeJS.ErrnoException) => error);
    if (answer instanceof Error) assert.ok(['EPIPE', 'ECONNRESET'].includes(answer.code ?? ''), answer.message);
    else assert.equal(answer.status, 413);
  });

  it('answers 404 elsewhere and 405 to other methods, without naming its framework', async () => {
    const elsewhere = await supertest(world.app).post('/').send({});
    assert.equal(elsewhere.status, 404);
    assert.equal(elsewhere.headers['x-powered-by'], undefined);
    const get = await supertest(world.app).get(paths.validatePod);
    assert.equal(get.status, 405);
    assert.equal(get.headers['allow'], 'POST');
    assert.equal((await supertest(world.app).post(paths.validatePod.toUpperCase()).send({})).status, 404);
  });

  it('answers 404 to unknown paths, before it reads the body, and counts them', async () => {
    let unknown = 0;
    const app = createAdmissionApp({ access: world.ports }, world.ports, { onUnknownPath: () => unknown++ });
    const server = createServer(app).listen(0, '127.0.0.1');
    try {
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const lines = world.lines.length;
      for (const path of ['/', `${paths.validatePod}/`, `${paths.validatePod}/more`, '/elsewhere']) {
        const before = unknown;
        const sent = request({
          host: '127.0.0.1',
          port,
          path,
          method: 'POST',
          headers: { 'content-length': 4_000_000 },
        });
        sent.on('error', () => {});
        sent.write('{');
        const [answer] = await once(sent, 'response');
        assert.deepEqual([answer.statusCode, answer.headers.connection, unknown - before], [404, 'close', 1], path);
        sent.destroy();
      }
      assert.equal(world.lines.length, lines);
      assert.equal(unknown, 4);
      const extended = await supertest(server)
        .post(`${paths.validatePod}/${'0a'.repeat(16)}?timeout=2s`)
        .send({});
      assert.match(extended.text, /^InvalidReview/, 'some configurations have a random segment');
    } finally {
      server.close();
    }
  });

  it('replaces invalid timeouts by its own', async () => {
    for (const timeout of ['', 'x', '-1s', '1s&timeout=2s', '0s', '9999h']) {
      assert.equal((await post(review(create), json, `${paths.validatePod}?timeout=${timeout}`)).status, 200, timeout);
    }
  });

  it('decides by own properties: constructor and its like are ordinary label names', async () => {
    const labels = { constructor: 'a', prototype: 'b', toString: 'c', hasOwnProperty: 'd' };
    const object = accessRequest({ requester }, { labels });
    const answer = await post(review({ ...create, object }));
    assert.equal(answer.body.response.allowed, true);
  });

  it('closes the connection after any answer that is not a review', async () => {
    for (const [path, body] of [
      ['/', '{}'],
      [paths.validatePod, '{'],
      [paths.guardPod, '{}'],
    ] as const) {
      assert.equal((await post(body, json, path)).headers['connection'], 'close', path);
    }
  });

  it('decides no review that waited for its turn until its deadline', async () => {
    const late = new World();
    const queue = new FairQueue({ clock: systemClock });
    const run = queue.run.bind(queue);
    let waitedMs = 0;
    queue.run = async (...job) => {
      await late.clock.advance(waitedMs);
      return run(...job);
    };
    const app = createAdmissionApp({ access: late.ports }, late.ports, { queue });
    const answerAfter = async (ms: number, path: string, request: unknown) => {
      waitedMs = ms;
      const sent = supertest(app).post(`${path}?timeout=3s`).set('content-type', json);
      return (await sent.send(review(request)).expect(200)).body.response;
    };
    assert.equal((await answerAfter(2_799, paths.validatePod, create)).allowed, true);
    assert.notDeepEqual(late.asked, []);
    late.asked.length = 0;
    const { status } = await answerAfter(2_800, paths.validatePod, create);
    assert.equal(status.code, 504);
    assert.match(status.message, /^DeadlineExceeded: no decision within 2800 ms; try again/);
    assert.deepEqual(late.asked, []);
    assert.deepEqual(pluck(late.lines, 'verdict', 'code'), [
      ['allowed', undefined],
      ['denied', 'DeadlineExceeded'],
    ]);
  });

  it('answers a large review at once', async () => {
    const finalizers = Array.from({ length: 5_000 }, (_, index) => `example.com/${index}`);
    const groups = Array.from({ length: 1_000 }, (_, index) => `group-${index}`);
    const object = accessRequest({ requester, note: 'x'.repeat(1_400_000) }, { finalizers });
    const answer = await post(review({ ...create, object, userInfo: { username: 'alice', uid: 'u-1', groups } }));
    assert.equal(answer.body.response.allowed, false);
    assert.match(answer.body.response.status.message, /^NotEligible: .*and 980 more/);
  });
});
