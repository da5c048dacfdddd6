import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import type { Reply } from '../../../src/inventory/ports.ts';
import { own } from '../../../src/kit/json-value.ts';
import { ConformanceWorld, callers, component } from './conformance-world.ts';
import { type Address, post } from './plain-client.ts';

/** A component under test, in any language and process. `config.play` of the entry selects its behavior. */
export interface Candidate {
  invoke(request: ReconcileRequest): Promise<Reply>;
  readonly address: Address;
  close(): Promise<void>;
}

const waiting = { timeoutMs: 30_000, everyMs: 20 };

/** Tests of the contract for every component. */
export function describeConformance(title: string, start: (world: ConformanceWorld) => Promise<Candidate>): void {
  const world = new ConformanceWorld();
  describe(`the contract with ${title}`, function () {
    this.timeout(60_000);
    let candidate: Candidate;
    before(async () => {
      await world.start();
      candidate = await start(world);
    });
    after(async () => {
      await candidate?.close();
      await world.close();
    });

    for (const [play, outcome] of [
      ['done', { outcome: 'Done', outputs: { [component]: { seen: 'something' } } }],
      ['notReady', { outcome: 'NotReady', missing: [{ path: '/spec/cluster/region', want: 'present' }] }],
      ['progressing', { outcome: 'Progressing', requeueAfterSeconds: 7 }],
      ['retry', { outcome: 'Retry', message: 'try again' }],
      ['failed', { outcome: 'Failed', message: 'never' }],
    ] as const) {
      it(`reads the entry by its URL and answers ${outcome.outcome}`, async () => {
        world.begin(play);
        const request = world.request();
        assert.deepEqual(await candidate.invoke(request), { kind: 'outcome', outcome });
        assert.deepEqual(world.calls, [`GET ${new URL(request.entry.url).pathname}`]);
        assert.deepEqual(world.reports, []);
      });
    }

    it('answers repeated calls equally', async () => {
      world.begin('done');
      const request = world.request();
      assert.deepEqual(await candidate.invoke(request), await candidate.invoke(request));
    });

    it('answers concurrent calls independently', async () => {
      world.begin('done');
      const requests = Array.from({ length: 8 }, () => world.request());
      const replies = await Promise.all(requests.map((request) => candidate.invoke(request)));
      assert.ok(replies.every((reply) => reply.kind === 'outcome' && reply.outcome.outcome === 'Done'));
    });

    it('writes its outputs by a merge patch of the status', async () => {
      world.begin('patch', 'written');
      assert.deepEqual(await candidate.invoke(world.request()), { kind: 'outcome', outcome: { outcome: 'Done' } });
      assert.deepEqual(world.status, { outputs: { [component]: { seen: 'written' } } });
    });

    it('tears down if the entry cannot be read', async () => {
      world.begin('done');
      const reply = await candidate.invoke(world.request('delete'));
      assert.deepEqual(reply, { kind: 'outcome', outcome: { outcome: 'Deleted' } });
    });

    for (const play of ['done', 'patch']) {
      it(`answers Retry and never Failed to ${play} if its run has ended or the API server is unavailable`, async () => {
        world.begin(play);
        const over = world.request();
        world.live.clear();
        const retried = await candidate.invoke(over);
        assert.equal(retried.kind === 'outcome' && retried.outcome.outcome, 'Retry');
        world.outage = 503;
        const away = await candidate.invoke(world.request());
        assert.equal(away.kind === 'outcome' && away.outcome.outcome, 'Retry');
      });
    }

    it('continues after 202, sends heartbeats, and reports its outcome with the token of the run', async () => {
      world.begin('goOn');
      const { run, auth } = await goOn();
      assert.deepEqual(
        world.reports.map(({ body }) => own(body, 'heartbeat') ?? own(body, 'outcome')),
        [{ leaseSeconds: 5 }, 'Done'],
      );
      assert.ok(world.reports.every(({ token, body }) => token === auth.token && own(body, 'run') === run.id));
    });

    it('repeats a report until it is accepted', async () => {
      world.begin('goOn');
      world.refusals.push(503, 503);
      await goOn();
      assert.equal(world.reports.length, 2);
    });

    it('uses the token from the answer to a heartbeat', async () => {
      world.begin('goOn');
      const request = world.request();
      const renewed = world.renew();
      await goOn(request);
      assert.deepEqual(
        world.reports.map(({ token }) => token),
        [request.auth.token, renewed],
      );
    });

    async function goOn(request = world.request()): Promise<ReconcileRequest> {
      assert.deepEqual(await candidate.invoke(request), { kind: 'accepted', heartbeatTimeoutMs: 5_000 });
      const ended = (): boolean => world.reports.some(({ body }) => own(body, 'outcome') !== undefined);
      await until('the outcome', ended, waiting);
      return request;
    }

    describe('over HTTP', () => {
      let address: Address;
      before(() => {
        address = candidate.address;
      });

      for (const [who, token] of [
        ['a call without a token', undefined],
        ['another user', callers.otherUser],
        ['a token for another component', callers.otherAudience],
        ['a forged token', callers.forged],
      ] as const) {
        it(`rejects reconcile and delete by ${who}`, async () => {
          world.begin('patch');
          for (const operation of ['reconcile', 'delete'] as const) {
            assert.equal((await post(address, world.request(operation), token)).status, 401);
          }
          assert.equal((await post(address, 'no JSON', token)).status, 401, 'answered before the body is read');
          assert.deepEqual([world.calls, world.reports], [[], []]);
        });
      }

      for (const [what, changes] of [
        ['of another API server', { entry: { url: 'http://127.0.0.1:1/x', id: 'x', resourceVersion: '1' } }],
        ['with another CA', { auth: { token: 'run', expires: '2099-01-01T00:00:00Z', ca: 'another CA' } }],
        ['with another callback', { callback: 'http://127.0.0.1:1/v1/runs/x' }],
        ['for another component', { component: 'other' }],
      ] as const) {
        it(`rejects a request ${what} and sends its token nowhere`, async () => {
          world.begin('patch');
          assert.equal((await post(address, world.request('reconcile', changes), callers.server)).status, 400);
          assert.deepEqual([world.calls, world.reports], [[], []]);
        });
      }

      for (const [what, body, status] of [
        ['no JSON', 'no JSON', 400],
        ['a list', [], 400],
        ['empty', {}, 400],
        ['too large', JSON.stringify({ x: 'x'.repeat(140_000) }), 413],
      ] as const) {
        it(`rejects a body that is ${what}`, async () => {
          world.begin('patch');
          assert.equal((await post(address, body, callers.server)).status, status);
        });
      }
    });
  });
}
