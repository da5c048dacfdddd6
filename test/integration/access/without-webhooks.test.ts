import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { revokeFinalizer } from '../../../src/api/access/names.ts';
import {
  conditionOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { testNamespace } from '../../support/plane.ts';
import { signerOf, signerOn, stamped } from '../../support/signers.ts';

describe('M4: without the webhooks', () => {
  let stage: AccessStage;
  /** Made in good order before the webhooks went away. */
  let model: StoredRequest;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    model = await stage.askUntilReady(stage.alice, podRequest('model', { duration: '10m' }));
  });
  beforeEach(() => stage.removeWebhooks());
  after(() => stage?.close());

  const forged = { username: 'alice', uid: '', groups: ['devs'], time: '2026-11-21T09:00:00Z' };
  const withFinalizer = ({ metadata, ...manifest }: Manifest): Manifest => ({
    ...manifest,
    metadata: { ...metadata, finalizers: [revokeFinalizer] },
  });

  const assertDenied = async (request: StoredRequest, reason: string): Promise<void> => {
    const denied = await stage.requestUntil('to be denied', request, (now) =>
      (now.status?.conditions ?? []).some(({ status }) => status === 'False'),
    );
    assert.equal(conditionOf(denied, 'AccessResourcesCreated')?.reason, reason);
    assert.equal(denied.status?.grant, undefined);
    assert.deepEqual(await stage.children(request.metadata.uid), []);
    const line = await stage.auditLine(
      'the denial',
      ({ verdict, what }) => verdict === 'denied' && what['uid' as 'name'] === request.metadata.uid,
    );
    assert.deepEqual([line['code'], line.who.user], [reason, '']);
  };

  const requesterNow = async (): Promise<object> => ({
    ...forged,
    time: new Date().toISOString().replace(/\.\d+/, ''),
  });

  const forgeries: [string, string, () => Promise<Manifest>][] = [
    ['no requester', 'StampMissing', async () => podRequest('nobody')],
    ['a requester without a signature', 'StampMissing', async () => podRequest('bare', { requester: forged })],
    [
      'a signature that is none',
      'StampInvalid',
      async () =>
        podRequest('junk', { requester: { ...(await requesterNow()), nonce: 'n', signature: 'x'.repeat(43) } }),
    ],
    [
      'a signature of another key',
      'StampInvalid',
      async () => stamped(signerOf('mallory'), podRequest('other-key'), stage),
    ],
    ['the stamp of another request', 'StampInvalid', async () => podRequest('copied', { ...model.spec })],
    [
      'the stamp of a request of another kind',
      'StampInvalid',
      async () => {
        const { spec } = stamped(
          await signerOn(stage.plane),
          podRequest('kind', { templateName: 'payments-exec' }),
          stage,
        );
        return execRequest('kind', spec as object);
      },
    ],
    [
      'a stamp for a shorter time',
      'StampInvalid',
      async () => {
        const { spec } = stamped(await signerOn(stage.plane), podRequest('longer', { duration: '1m' }), stage);
        return podRequest('longer', { ...(spec as object), duration: '10m' });
      },
    ],
    [
      'a stamp for somebody else',
      'StampInvalid',
      async () => {
        const { spec } = stamped(await signerOn(stage.plane), podRequest('theirs'), { ...stage, groups: ['qa'] });
        const { requester } = spec as { requester: object };
        return podRequest('theirs', { requester: { ...requester, groups: ['devs'] } });
      },
    ],
    [
      'a stamp of a minute ago',
      'StampExpired',
      async () => stamped(await signerOn(stage.plane), podRequest('old'), { ...stage, timeMs: Date.now() - 60_000 }),
    ],
    [
      'a stamp of the next minute',
      'StampExpired',
      async () => stamped(await signerOn(stage.plane), podRequest('early'), { ...stage, timeMs: Date.now() + 60_000 }),
    ],
  ];
  for (const [what, reason, make] of forgeries) {
    it(`a request with ${what} is never granted`, async () => {
      await assertDenied(await stage.askOk(stage.plane, withFinalizer(await make())), reason);
    });
  }

  it('a stamp that was carried to another namespace is refused', async () => {
    const elsewhere = await testNamespace('elsewhere');
    const manifest = stamped(await signerOn(stage.plane), podRequest('carried'), { namespace: elsewhere });
    await assertDenied(await stage.askOk(stage.plane, manifest), 'StampInvalid');
    await stage.plane.call('DELETE', `/api/v1/namespaces/${elsewhere}`);
  });

  it('a request that the webhook would have let in is granted all the same when its stamp is right', async () => {
    const manifest = stamped(await signerOn(stage.plane), podRequest('proper'), stage);
    await stage.ready(await stage.askOk(stage.plane, manifest));
  });

  /** A granted request, and the same once more as its requester could write it, stamp and all. */
  const twice = async (name: string): Promise<[StoredRequest, Manifest]> => {
    await stage.restoreWebhooks();
    const first = await stage.askUntilReady(stage.alice, podRequest(name, { duration: '10m' }));
    await stage.removeWebhooks();
    await stage.alice.call('DELETE', stage.urlOf(first.kind, name));
    return [first, podRequest(name, { ...first.spec })];
  };

  it('a request keeps its name until its stamp is too old for a copy, but not its access', async () => {
    const [first, copy] = await twice('lingers');
    const pod = first.status?.podName ?? '';
    await until('the access to end', async () => !(await stage.alice.mayExec(stage.namespace, pod)), {
      timeoutMs: 1000,
      everyMs: 10,
    });
    assert.equal((await stage.ask(stage.alice, copy)).status, 409);
    const goneMs = await stage.gone(first);
    const createdMs = Date.parse(String((first.metadata as { creationTimestamp?: string }).creationTimestamp));
    assert.ok(goneMs - createdMs >= 10_000, `gone after ${goneMs - createdMs} ms`);
    assert.ok(goneMs - createdMs < 15_000, `gone after ${goneMs - createdMs} ms`);
    await assertDenied(await stage.askOk(stage.alice, copy), 'StampExpired');
  });

  it('a request that is made again at once, its finalizer forced off, is refused', async () => {
    const [first, copy] = await twice('forced');
    await stage.kubectl(
      'patch',
      'podaccessrequest',
      'forced',
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":null}}',
    );
    await stage.gone(first);
    await assertDenied(await stage.askOk(stage.alice, copy), 'StampReplayed');
  });
});
