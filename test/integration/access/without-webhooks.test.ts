import assert from 'node:assert/strict';
import { type ApiAnswer, callApi } from '../../../sandbox/api-call.ts';
import { issue } from '../../../sandbox/pki.ts';
import { accessTemplate, role } from '../../support/access-manifests.ts';
import {
  accessUrl,
  conditionOf,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';

/** The user in a review. */
interface Claimed {
  readonly username: string;
  readonly groups: readonly string[];
}

const privileged = accessTemplate('PodAccessTemplate', 'node-shell', {
  allowPrivilegedPod: true,
  podSpec: {
    hostPID: true,
    containers: [{ name: 'sh', image: 'sh:1', securityContext: { privileged: true } }],
    volumes: [{ name: 'root', hostPath: { path: '/' } }],
  },
});

const writesTemplates = role(
  'writes-templates',
  { apiGroups: ['crds.wizardofoz.co'], resources: ['podaccesstemplates'], verbs: ['get', 'create', 'patch'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch', 'create'] },
  { apiGroups: [''], resources: ['pods/exec'], verbs: ['get', 'create'] },
);

describe('without the webhooks, for a caller who reaches their port', () => {
  let stage: AccessStage;
  /** A user who may write templates, and read, create, and enter pods. */
  let mallory: Person;
  const admin = { username: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'] };
  const self = { username: 'mallory', groups: ['editors', 'system:authenticated'] };
  const alice = { username: 'alice', groups: ['devs', 'system:authenticated'] };

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    mallory = await Person.of(stage.plane, 'mallory', ['editors']);
    await stage.apply(writesTemplates);
    await stage.kubectl('create', 'rolebinding', 'mallory', '--role=writes-templates', '--user=mallory');
    await stage.removeWebhooksOnly();
    await stage.policiesAre('in force');
  });
  after(() => stage?.close());

  /**
   * The manifest as the mutating webhook returns it if `user` creates it. Any client that reaches the port can send such a review; the server
   * cannot distinguish it from a review of the API server.
   */
  const filledIn = async (manifest: Manifest, user: Claimed): Promise<Manifest & { readonly spec: object }> => {
    const { kind } = manifest;
    const { authority } = stage.plane;
    const [, , group = '', version = '', , , resource = ''] = accessUrl(kind, stage.namespace).split('/');
    const request = {
      uid: '7f0c1a52-3b77-4d5e-8b52-0d3a2f0e9c11',
      kind: { group, version, kind },
      resource: { group, version, resource },
      name: manifest.metadata.name,
      namespace: stage.namespace,
      operation: 'CREATE',
      userInfo: user,
      object: manifest,
    };
    const { status, body } = await callApi(
      {
        server: `https://localhost:${stage.server.installation.port}`,
        authority: authority.certificate,
        identity: issue(authority, { commonName: 'passer-by' }),
      },
      'POST',
      `/mutate-${group.replaceAll('.', '-')}-${version}-${kind.toLowerCase()}`,
      { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request },
    );
    const { response } = body as { response?: { patch?: string } };
    assert.ok(status === 200 && response?.patch, JSON.stringify(body));
    const patches = JSON.parse(Buffer.from(response.patch, 'base64').toString()) as { path: string; value?: unknown }[];
    const valueAt = (at: RegExp): object =>
      Object.fromEntries(
        patches.filter(({ path }) => at.test(path)).map(({ path, value }) => [path.split('/')[2], value]),
      );
    return {
      ...manifest,
      metadata: { ...manifest.metadata, ...valueAt(/^\/metadata\/finalizers$/) },
      spec: { ...(manifest['spec'] as object), ...valueAt(/^\/spec\/(requester|author)$/) },
    };
  };
  const stored = ({ status, body }: ApiAnswer): StoredRequest => {
    assert.ok(status < 300, `${status} ${JSON.stringify(body)}`);
    return body as StoredRequest;
  };
  const refused = ({ status, body }: ApiAnswer, code: string): void => {
    assert.equal(status, 403, JSON.stringify(body));
    assert.match((body as { message: string }).message, new RegExp(`ValidatingAdmissionPolicy .* ${code}: `));
  };

  it('the API server stores no template in the name of an administrator', async () => {
    refused(await stage.create(mallory, await filledIn(privileged, admin)), 'IdentityForged');
    const more = { ...self, groups: [...self.groups, 'system:masters'] };
    refused(await stage.create(mallory, await filledIn(privileged, more)), 'IdentityForged');
    refused(await stage.create(mallory, privileged), 'AuthorMissing');
  });

  it('the API server stores no change of a template in the name of an administrator, or of its earlier author', async () => {
    const url = stage.urlOf('PodAccessTemplate', 'payments-shell');
    const { author } = (await filledIn(privileged, admin)).spec as { author?: object };
    const change = { allowPrivilegedPod: true };
    refused(await mallory.call('PATCH', url, { spec: { ...change, author } }), 'IdentityForged');
    refused(await mallory.call('PATCH', url, { spec: { author } }), 'IdentityForged');
    refused(await mallory.call('PATCH', url, { spec: change }), 'IdentityForged');
    refused(await mallory.call('PATCH', url, { spec: { author: null } }), 'AuthorMissing');
    stored(await mallory.call('PATCH', url, { metadata: { labels: { team: 'payments' } } }));
  });

  it('the API server stores no request in the name of another user', async () => {
    const asked = podRequest('as-the-boss');
    for (const user of [
      { username: 'ceo', groups: alice.groups },
      { username: 'alice', groups: ['devs', 'admins', 'system:authenticated'] },
    ]) {
      refused(await stage.create(stage.alice, await filledIn(asked, user)), 'IdentityForged');
    }
    refused(await stage.create(stage.alice, asked), 'MissingIdentity');
  });

  it('the caller’s own template opens no privileged pod', async () => {
    stored(await stage.create(mallory, await filledIn(privileged, self)));
    const judged = await stage.templateReady('PodAccessTemplate', 'node-shell', false);
    assert.equal(conditionOf(judged, 'AuthorHoldsRights')?.reason, 'AuthorLacksRights');
    const asked = podRequest('node', { templateName: 'node-shell' });
    const request = stored(await stage.create(stage.alice, await filledIn(asked, alice)));
    const denied = await stage.requestUntil('to be denied', request, ({ status }) =>
      (status?.conditions ?? []).some(({ status: is }) => is === 'False'),
    );
    assert.equal(denied.status?.grant, undefined);
    assert.deepEqual(await stage.children(request.metadata.uid), []);
  });

  it('the caller’s own request is granted', async () => {
    await stage.ready(stored(await stage.create(stage.alice, await filledIn(podRequest('proper'), alice))));
  });
});
