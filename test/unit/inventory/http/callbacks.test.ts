import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from '../../../../sandbox/wait.ts';
import { callbackListener } from '../../../../src/inventory/http/callbacks.ts';
import type { ReportAnswer } from '../../../../src/inventory/ports.ts';
import { listen } from '../../../../src/kit/listen.ts';
import { type LogFields, noLog } from '../../../../src/observe/log.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

const waiting = { timeoutMs: 30_000, everyMs: 5 };
const account = 'system:serviceaccount:fleet:inventory-u-1.network';

describe('the callback listener', () => {
  let server: Server;
  let url: string;
  let leads = true;
  let answer: ReportAnswer = { status: 200, extension: undefined };
  let reviews = 0;
  let blocked = Promise.withResolvers<void>();
  const reports: unknown[] = [];
  const rejected: unknown[] = [];
  const clock = new SimulatedClock();
  const warnings: LogFields[] = [];

  before(async () => {
    server = createServer(
      callbackListener({
        reports: {
          report: async (run, credentialId, body) => {
            reports.push({ run, credentialId, body });
            if (run.seq === 99) await blocked.promise;
            return answer;
          },
          rejected: async (run, credentialId, code) => void rejected.push({ run, credentialId, code }),
        },
        tokens: {
          read: async (token) => {
            reviews += 1;
            if (token === 'slow') await blocked.promise;
            if (token === 'away') throw new Error('the API server is away');
            if (token === 'good') return { account, credentialId: 'JTI=1' };
            if (token === 'elsewhere') return { account: account.replace('fleet', 'other'), credentialId: 'JTI=3' };
            return token === 'foreign' ? { account: `${account}x`, credentialId: 'JTI=2' } : undefined;
          },
        },
        namespaceOf: (uid) => (uid === 'u-9' ? undefined : 'fleet'),
        leads: () => leads,
        log: { ...noLog, warn: (_message, fields = {}) => void warnings.push(fields) },
        clock,
      }),
    );
    await listen(server, '127.0.0.1', 0);
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/runs/`;
  });
  beforeEach(() => {
    leads = true;
    answer = { status: 200, extension: undefined };
    reports.length = 0;
    rejected.length = 0;
    warnings.length = 0;
    reviews = 0;
    blocked = Promise.withResolvers<void>();
  });
  after(() => server.close());

  const post = async (run: string, token: string | undefined, body: string, method = 'POST') => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(`${url}${run}`, { method, headers, ...(method === 'POST' ? { body } : {}) });
    return {
      status: response.status,
      body: (await response.json()) as { code?: string; leaseSeconds?: number; message?: string },
    };
  };

  it('forwards reports from the account of the run', async () => {
    answer = { status: 200, extension: { leaseSeconds: 60 } };
    assert.deepEqual(await post('u-1.network.3', 'good', '{"run":"u-1.network.3","heartbeat":{}}'), {
      status: 200,
      body: { leaseSeconds: 60 },
    });
    assert.deepEqual(reports, [
      {
        run: { entryUid: 'u-1', component: 'network', seq: 3 },
        credentialId: 'JTI=1',
        body: { run: 'u-1.network.3', heartbeat: {} },
      },
    ]);
  });

  it('sends no TokenReview for an unknown entry', async () => {
    assert.equal((await post('u-9.network.3', 'good', '{}')).status, 401);
    assert.equal(reviews, 0);
  });

  it('completes accepted reports while other callers exhaust the TokenReview limit', async () => {
    const slow = post('u-1.network.99', 'good', '{}');
    await until('the report', async () => reports.length === 1, waiting);
    const strangers = Array.from({ length: 256 }, () => post('u-1.network.3', 'slow', '{}'));
    await until('their tokens', async () => reviews === 257, waiting);
    assert.equal((await post('u-1.network.3', 'good', '{}')).body.code, 'Unavailable');
    assert.deepEqual([reviews, reports.length], [257, 1]);
    blocked.resolve();
    assert.equal((await slow).status, 200);
    assert.deepEqual(new Set((await Promise.all(strangers)).map(({ status }) => status)), new Set([401]));
    assert.equal((await post('u-1.network.3', 'good', '{}')).status, 200);
  });

  it('answers why the outputs of a report were rejected', async () => {
    const rejection = { code: 'ForeignPath', message: 'may write /status/outputs/network' };
    answer = { status: 200, extension: undefined, rejection };
    assert.deepEqual((await post('u-1.network.3', 'good', '{}')).body, rejection);
  });

  it('names the account of a foreign token', async () => {
    const { body } = await post('u-1.network.3', 'foreign', '{}');
    assert.match(body.message ?? '', /^the token is of the account \S+, not of the reported run;/);
  });

  it('names the token to send', async () => {
    const { body } = await post('u-1.network.3', 'forged', '{}');
    assert.equal(
      body.message,
      'the token is missing, invalid, or expired, or the entry is gone; send the latest auth.token that the call or an answer to a heartbeat contained, as Authorization: Bearer TOKEN; if you did, stop working on the run',
    );
  });

  const refused: [what: string, run: string, token: string | undefined, body: string, status: number, code: string][] =
    [
      ['no token', 'u-1.network.3', undefined, '{}', 401, 'Unauthorized'],
      ['a forged token', 'u-1.network.3', 'forged', '{}', 401, 'Unauthorized'],
      ['the token of another account', 'u-1.network.3', 'foreign', '{}', 403, 'ForeignCredential'],
      ['the token of an account in another namespace', 'u-1.network.3', 'elsewhere', '{}', 403, 'ForeignCredential'],
      ['the token of another component', 'u-1.cluster.3', 'good', '{}', 403, 'ForeignCredential'],
      ['the token of another entry', 'u-2.network.3', 'good', '{}', 403, 'ForeignCredential'],
      ['a body that is not JSON', 'u-1.network.3', 'good', '{', 400, 'InvalidReport'],
      ['a body that is too large', 'u-1.network.3', 'good', `"${'x'.repeat(140_000)}"`, 413, 'TooLarge'],
      ['a path without a run', 'nothing', 'good', '{}', 404, 'NotFound'],
      ['a report while TokenReviews fail', 'u-1.network.3', 'away', '{}', 503, 'Unavailable'],
    ];
  for (const [what, run, token, body, status, code] of refused) {
    it(`answers ${status} to ${what}`, async () => {
      const { status: found, body: answerBody } = await post(run, token, body);
      assert.deepEqual([found, answerBody.code], [status, code]);
      assert.deepEqual(reports, []);
      const isFaulty = code === 'InvalidReport' || code === 'TooLarge';
      const read = { run: { entryUid: 'u-1', component: 'network', seq: 3 }, credentialId: 'JTI=1', code };
      assert.deepEqual(rejected, isFaulty ? [read] : []);
    });
  }

  it('logs refused reports of known entries, at most one line a minute', async () => {
    const run = 'u-1.network.3';
    await clock.advance(60_000);
    // The other tests caused refusals, too.
    await post(run, 'forged', '{}');
    await clock.advance(60_000);
    warnings.length = 0;
    for (const token of ['forged', 'foreign', undefined]) await post(run, token, '{}');
    await post('u-9.network.3', 'forged', '{}');
    answer = { status: 403, code: 'ForeignCredential', message: 'of another run' };
    await post(run, 'good', '{}');
    assert.deepEqual(warnings, [{ run, code: 'Unauthorized', omitted: 0 }]);
    await clock.advance(60_000);
    await post(run, 'good', '{}');
    assert.deepEqual(warnings.slice(1), [{ run, code: 'ForeignCredential', omitted: 3 }]);
  });

  it('answers 405 to other methods than POST', async () => {
    assert.equal((await post('u-1.network.3', 'good', '', 'GET')).status, 405);
  });

  it('answers 503 while this replica is not the leader', async () => {
    leads = false;
    assert.deepEqual(await post('u-1.network.3', 'good', '{}').then(({ body }) => body.code), 'NotLeading');
  });

  it('returns the answer of the manager', async () => {
    answer = { status: 409, code: 'RunOver', message: 'too late' };
    const { status, body } = await post('u-1.network.3', 'good', '{}');
    assert.deepEqual([status, body.code], [409, 'RunOver']);
  });
});
