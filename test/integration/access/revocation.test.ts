import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { until } from '../../../sandbox/wait.ts';
import { execRequest, type Manifest, podRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { attested } from '../../support/attested.ts';
import { Person } from '../../support/person.ts';

const limitMs = 1000;

describe('a revoked request', () => {
  let stage: AccessStage;
  /** A user without permissions. */
  let dave: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    dave = await Person.of(stage.plane, 'dave', ['marketing']);
  });

  after(() => stage?.close());

  const patch = (who: Pick<Person, 'call'>, { kind, metadata }: StoredRequest, spec: object): Promise<ApiAnswer> =>
    who.call('PATCH', stage.urlOf(kind, metadata.name), { spec });

  const revoke = async (who: Pick<Person, 'call'>, request: StoredRequest): Promise<void> => {
    const { status, body } = await patch(who, request, { revoked: true });
    assert.equal(status, 200, JSON.stringify(body));
  };

  const assertRefused = ({ status, body }: ApiAnswer, expected: number, message: RegExp): void => {
    assert.equal(status, expected, JSON.stringify(body));
    assert.match((body as { message: string }).message, message);
  };

  const openings: [string, Manifest, () => Pick<Person, 'call'> & { readonly name?: string }, string][] = [
    ['by its requester, with a new pod', podRequest('own-pod', { duration: '10m' }), () => stage.alice, 'alice'],
    ['by its requester, with a running pod', execRequest('own-exec', { duration: '10m' }), () => stage.alice, 'alice'],
    ['by an administrator', podRequest('admin-pod', { duration: '10m' }), () => stage.plane, ''],
  ];
  for (const [title, manifest, revoker, user] of openings) {
    it(`${title}: access is closed within a second`, async () => {
      const request = await stage.createReady(stage.alice, manifest);
      const pod = request.status?.podName ?? '';
      await stage.alice.entering(stage.namespace, pod);

      await revoke(revoker(), request);
      const revokedAt = Date.now();
      await stage.shutTo(stage.alice, pod, 30_000);
      const closedMs = Date.now() - revokedAt;
      await until('the children to be gone', async () => (await stage.children(request.metadata.uid)).length === 0, {
        timeoutMs: 30_000,
        everyMs: 25,
      });
      const childrenMs = Date.now() - revokedAt;
      console.log(`      ${closedMs} ms until no exec, ${childrenMs} ms until the children were gone`);
      assert.ok(closedMs <= limitMs && childrenMs <= limitMs, `${closedMs} ms and ${childrenMs} ms`);
      await stage.closed(request);

      const { name } = request.metadata;
      const end = await stage.auditLine(
        'the revocation',
        ({ event, what }) => event === 'revocation' && what.name === name && what.kind === request.kind,
      );
      assert.deepEqual([end.verdict, end['code'], end.who.user], ['revoked', 'Revoked', 'alice']);
      const [admitted] = await stage.audit(
        ({ event, what, message }) =>
          event === 'admission' &&
          what.name === name &&
          what.operation === 'UPDATE' &&
          message === 'revokes the access',
      );
      assert.equal(admitted?.verdict, 'allowed');
      if (user !== '') assert.equal(admitted?.who.user, user);
    });
  }

  it('that was denied before stays denied: there is nothing to revoke', async () => {
    const manifest = execRequest('denied', { targetPod: 'nobody', duration: '10m' });
    const request = await stage.requestUntil(
      'to be denied',
      await stage.createOk(stage.alice, manifest),
      ({ status }) => (status?.conditions ?? []).some((condition) => condition.status === 'False'),
    );
    assertRefused(await patch(stage.alice, request, { revoked: true }), 403, /WrongState: .*nothing to revoke/);
    const revocations = await stage.audit(({ event, what }) => event === 'revocation' && what.name === 'denied');
    assert.deepEqual(revocations, [], 'there was no access that could have ended');
    await stage.kubectl('wait', 'execaccessrequest/denied', '--for=condition=Stalled', '--timeout=20s');
  });

  describe('allows no other change:', () => {
    let request: StoredRequest;

    before(async () => {
      request = await stage.createReady(stage.alice, podRequest('steady', { duration: '10m' }));
    });

    const refusals: [string, object][] = [
      ['of the duration in the same patch', { revoked: true, duration: '20m' }],
      ['that removes the duration in the same patch', { revoked: true, duration: null }],
      ['of the template in the same patch', { revoked: true, templateName: 'other' }],
      ['of the duration alone', { duration: '20m' }],
    ];
    for (const [title, spec] of refusals) {
      it(title, async () => assertRefused(await patch(stage.alice, request, spec), 422, /SpecImmutable/));
    }

    it('of the requester', async () => {
      const requester = { ...request.spec?.requester, username: 'carol' };
      assertRefused(await patch(stage.alice, request, { revoked: true, requester }), 422, /SpecImmutable/);
    });

    it('to a value that is no boolean', async () =>
      assertRefused(await patch(stage.alice, request, { revoked: 'yes' }), 422, /spec\.revoked/));

    it('by a user who may not update requests', async () =>
      assertRefused(await patch(dave, request, { revoked: true }), 403, /cannot patch/));

    it('and false is the same as unset', async () => {
      assert.equal((await patch(stage.alice, request, { revoked: false })).status, 200);
      await stage.alice.entering(stage.namespace, request.status?.podName ?? '');
      await revoke(stage.alice, request);
      await stage.closed(request);
    });
  });

  it('stays closed even if a foreign finalizer keeps the request', async () => {
    const request = await stage.createReady(stage.alice, podRequest('held', { duration: '10m' }));
    const finalizers = [...(request.metadata.finalizers ?? []), 'example.com/hold'];
    const url = stage.urlOf(request.kind, 'held');
    await stage.plane.call('PATCH', url, { metadata: { finalizers } });
    await revoke(stage.alice, request);
    const closed = async (): Promise<boolean> => (await stage.children(request.metadata.uid)).length === 0;
    await until('the children to be gone', closed, { timeoutMs: 30_000, everyMs: 25 });
    for (const revoked of [false, null]) {
      assertRefused(
        await patch(stage.alice, request, { revoked }),
        422,
        /SpecImmutable: a revoked request stays revoked/,
      );
    }
    await stage.plane.call('PATCH', url, { metadata: { finalizers: null } });
    await stage.gone(request);
  });

  it('is denied if it is created as revoked', async () =>
    assertRefused(
      await stage.create(stage.alice, podRequest('stillborn', { revoked: true })),
      422,
      /InvalidRequest: spec\.revoked is true/,
    ));

  it('is never granted if it is created as revoked without the webhooks', async () => {
    await stage.stop();
    await stage.removeWebhooksOnly();
    const request = await stage.createOk(stage.alice, attested(podRequest('unseen', { revoked: true })));
    await stage.start();
    await stage.gone(request);
    assert.deepEqual(await stage.audit(({ what, event }) => event === 'grant' && what.name === 'unseen'), []);
  });
});
