import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { revokeFinalizer } from '../../../src/api/access/names.ts';
import { accessTemplate, role, targetOf } from '../../support/access-manifests.ts';
import {
  conditionOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';
import { testNamespace } from '../../support/plane.ts';
import { attested, signerOf, signerOn } from '../../support/signers.ts';
import { attestationOf, type Claimed } from '../../support/signing-oracle.ts';

describe('without the webhooks', () => {
  let stage: AccessStage;
  /** Created before the test removed the webhooks. */
  let model: StoredRequest;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    model = await stage.createReady(stage.alice, podRequest('model', { duration: '10m' }));
  });
  after(() => stage?.close());

  describe('but with the policies, for a caller who reaches the signing webhook', () => {
    /** A user who may write templates, and read, create, and enter pods. */
    let mallory: Person;
    const admin = { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };
    const self = { username: 'mallory', groups: ['editors', 'system:authenticated'] };
    const privileged = accessTemplate('PodAccessTemplate', 'node-shell', {
      allowPrivilegedPod: true,
      podSpec: {
        hostPID: true,
        containers: [{ name: 'sh', image: 'sh:1', securityContext: { privileged: true } }],
        volumes: [{ name: 'root', hostPath: { path: '/' } }],
      },
    });

    before(async () => {
      mallory = await Person.of(stage.plane, 'mallory', ['editors']);
      await stage.apply(writesTemplates);
      await stage.kubectl('create', 'rolebinding', 'mallory', '--role=writes-templates', '--user=mallory');
      await stage.removeWebhooksOnly();
      await stage.policiesAre('in force');
    });

    const attested = async (
      field: 'requester' | 'author',
      manifest: Manifest,
      user: Claimed,
    ): Promise<Manifest & { readonly spec: object }> => {
      const { port } = stage.server.installation;
      const { namespace } = stage;
      const attestation = await attestationOf(stage.plane, port, field, manifest, { namespace, user });
      return { ...manifest, spec: { ...(manifest['spec'] as object), [field]: attestation } };
    };
    const create = (person: Person, manifest: Manifest, query = ''): Promise<ApiAnswer> =>
      person.call('POST', `${stage.urlOf(manifest.kind)}${query}`, manifest);
    const stored = ({ status, body }: ApiAnswer): StoredRequest => {
      assert.ok(status < 300, `${status} ${JSON.stringify(body)}`);
      return body as StoredRequest;
    };
    const refused = ({ status, body }: ApiAnswer, code: string): void => {
      assert.equal(status, 403, JSON.stringify(body));
      assert.match((body as { message: string }).message, new RegExp(`ValidatingAdmissionPolicy .* ${code}: `));
    };
    /** The manifest with the defaults that the API server stores, because the signature covers them. */
    const defaulted = async (person: Person, manifest: Manifest, field: string, user: Claimed): Promise<Manifest> => {
      const claimed = { ...user, uid: '', time: '2026-11-22T09:00:00Z', nonce: 'n', signature: 'x'.repeat(43) };
      const asked = { ...manifest, spec: { ...(manifest['spec'] as object), [field]: claimed } };
      const { spec } = stored(await create(person, asked, '?dryRun=All'));
      const { [field]: _, ...rest } = spec as Record<string, unknown>;
      return { ...manifest, spec: rest };
    };

    it('the API server stores no template with a stolen attestation of an administrator', async () => {
      refused(await create(mallory, await attested('author', privileged, admin)), 'IdentityForged');
      const more = { ...self, groups: [...self.groups, 'system:masters'] };
      refused(await create(mallory, await attested('author', privileged, more)), 'IdentityForged');
      refused(await create(mallory, privileged), 'AuthorMissing');
    });

    it('the API server stores no change of a template with a stolen attestation of an administrator', async () => {
      const url = stage.urlOf('PodAccessTemplate', 'payments-shell');
      const { author } = (await attested('author', privileged, admin)).spec as { author?: object };
      const change = { allowPrivilegedPod: true };
      refused(await mallory.call('PATCH', url, { spec: { ...change, author } }), 'IdentityForged');
      refused(await mallory.call('PATCH', url, { spec: { author } }), 'IdentityForged');
      // The attestation of the earlier author does not cover another user's change.
      refused(await mallory.call('PATCH', url, { spec: change }), 'IdentityForged');
      refused(await mallory.call('PATCH', url, { spec: { author: null } }), 'AuthorMissing');
      stored(await mallory.call('PATCH', url, { metadata: { labels: { team: 'payments' } } }));
    });

    it('the API server stores no request in the name of another user', async () => {
      const asked = podRequest('as-the-boss');
      for (const user of [
        { username: 'ceo', groups: ['devs', 'system:authenticated'] },
        { username: 'alice', groups: ['devs', 'admins', 'system:authenticated'] },
      ]) {
        refused(await create(stage.alice, await attested('requester', asked, user)), 'IdentityForged');
      }
    });

    it('no attestation of one template is valid for another spec under the same name', async () => {
      const harmless = { ...privileged, metadata: { name: 'swapped' }, spec: templateOf(['devs']) };
      const { author } = (await attested('author', harmless, self)).spec as { author?: object };
      stored(await create(mallory, { ...harmless, spec: { ...templateOf(['devs', 'qa']), author } }));
      const judged = await stage.templateReady('PodAccessTemplate', 'swapped', false);
      assert.equal(conditionOf(judged, 'AuthorHoldsRights')?.reason, 'AuthorUnknown');
    });

    it('the API server stores the caller’s own attestations, and such a template opens no privileged pod', async () => {
      const template = await attested('author', await defaulted(mallory, privileged, 'author', self), self);
      stored(await create(mallory, template));
      const judged = await stage.templateReady('PodAccessTemplate', 'node-shell', false);
      assert.equal(conditionOf(judged, 'AuthorHoldsRights')?.reason, 'AuthorLacksRights');
      const alice = { username: 'alice', groups: ['devs', 'system:authenticated'] };
      const asked = podRequest('node', { templateName: 'node-shell' });
      const own = await attested('requester', await defaulted(stage.alice, asked, 'requester', alice), alice);
      const request = stored(await create(stage.alice, own));
      const denied = await stage.requestUntil('to be denied', request, ({ status }) =>
        (status?.conditions ?? []).some(({ status: is }) => is === 'False'),
      );
      assert.equal(denied.status?.grant, undefined);
      assert.deepEqual(await stage.children(request.metadata.uid), []);
    });
  });

  describe('and without the policies', () => {
    beforeEach(() => stage.removeWebhooks());

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
        'an invalid signature',
        'StampInvalid',
        async () =>
          podRequest('junk', { requester: { ...(await requesterNow()), nonce: 'n', signature: 'x'.repeat(43) } }),
      ],
      [
        'a signature of another key',
        'StampInvalid',
        async () => attested(signerOf('mallory'), podRequest('other-key'), stage),
      ],
      ['the attestation of another request', 'StampInvalid', async () => podRequest('copied', { ...model.spec })],
      [
        'the attestation of a request of another kind',
        'StampInvalid',
        async () => {
          const { spec } = attested(
            await signerOn(stage.plane),
            podRequest('kind', { templateName: 'payments-exec' }),
            stage,
          );
          return execRequest('kind', spec as object);
        },
      ],
      [
        'an attestation for a shorter time',
        'StampInvalid',
        async () => {
          const { spec } = attested(await signerOn(stage.plane), podRequest('longer', { duration: '1m' }), stage);
          return podRequest('longer', { ...(spec as object), duration: '10m' });
        },
      ],
      [
        'a signature for another user',
        'StampInvalid',
        async () => {
          const { spec } = attested(await signerOn(stage.plane), podRequest('theirs'), { ...stage, groups: ['qa'] });
          const { requester } = spec as { requester: object };
          return podRequest('theirs', { requester: { ...requester, groups: ['devs'] } });
        },
      ],
      [
        'an attestation that is a minute old',
        'StampExpired',
        async () => attested(await signerOn(stage.plane), podRequest('old'), { ...stage, timeMs: Date.now() - 60_000 }),
      ],
      [
        'an attestation from the next minute',
        'StampExpired',
        async () =>
          attested(await signerOn(stage.plane), podRequest('early'), { ...stage, timeMs: Date.now() + 60_000 }),
      ],
    ];
    for (const [what, reason, make] of forgeries) {
      it(`a request with ${what} is never granted`, async () => {
        await assertDenied(await stage.createOk(stage.plane, withFinalizer(await make())), reason);
      });
    }

    it('an attestation from another namespace is denied', async () => {
      const elsewhere = await testNamespace('elsewhere');
      const manifest = attested(await signerOn(stage.plane), podRequest('carried'), { namespace: elsewhere });
      await assertDenied(await stage.createOk(stage.plane, manifest), 'StampInvalid');
      await stage.plane.call('DELETE', `/api/v1/namespaces/${elsewhere}`);
    });

    it('a request that the webhook would allow is granted if its attestation is valid', async () => {
      const manifest = attested(await signerOn(stage.plane), podRequest('proper'), stage);
      await stage.ready(await stage.createOk(stage.plane, manifest));
    });

    /**
     * A request that was granted and deleted, and a copy of it with its attestation, as its requester could create it. The attestation is
     * valid for ten seconds, so the test does not take the time to remove the webhooks in between.
     */
    const twice = async (name: string): Promise<[StoredRequest, Manifest]> => {
      const manifest = attested(await signerOn(stage.plane), podRequest(name, { duration: '10m' }), stage);
      const first = await stage.createReady(stage.alice, manifest);
      await stage.alice.call('DELETE', stage.urlOf(first.kind, name));
      return [first, podRequest(name, { ...first.spec })];
    };

    it('an ended request stays, without access, until its attestation is too old for a copy', async () => {
      const [first, copy] = await twice('lingers');
      await stage.shutTo(stage.alice, first.status?.podName ?? '', 30_000);
      assert.equal((await stage.create(stage.alice, copy)).status, 409);
      const goneMs = await stage.gone(first);
      const createdMs = Date.parse(String((first.metadata as { creationTimestamp?: string }).creationTimestamp));
      assert.ok(goneMs - createdMs >= 10_000, `gone after ${goneMs - createdMs} ms`);
      assert.ok(goneMs - createdMs < 15_000, `gone after ${goneMs - createdMs} ms`);
      await assertDenied(await stage.createOk(stage.alice, copy), 'StampExpired');
    });

    it('a copy of a request whose finalizer was removed by force is denied', async () => {
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
      await assertDenied(await stage.createOk(stage.alice, copy), 'StampReplayed');
    });
  });
});

const templateOf = (allowedGroups: readonly string[]): object => ({
  accessConfig: { allowedGroups },
  ...targetOf('payments'),
});

const writesTemplates = role(
  'writes-templates',
  { apiGroups: ['crds.wizardofoz.co'], resources: ['podaccesstemplates'], verbs: ['get', 'create', 'patch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'create'] },
  { apiGroups: [''], resources: ['pods/exec'], verbs: ['get', 'create'] },
);
