import assert from 'node:assert/strict';
import { accessEvents } from '../../../src/api/notify/events.ts';
import { notificationProviders } from '../../../src/api/notify/notification-provider.ts';
import { notificationSubscriptions } from '../../../src/api/notify/notification-subscription.ts';
import { accessTemplate, approverRights } from '../../support/access-manifests.ts';
import { execRequest, type StoredRequest } from '../../support/access-requests.ts';
import type { Received } from '../../support/notification-receiver.ts';
import { NotifyStage } from '../../support/notify-stage.ts';
import { Person } from '../../support/person.ts';

/** Other fields of the data of an event are tested where it is made. */
interface Data {
  readonly requester: string;
  readonly reason: string;
  readonly template: string;
  readonly pod?: string;
  readonly permissions: readonly string[];
  readonly votes: readonly { readonly voter: string; readonly reason?: string }[];
  readonly link?: string;
  readonly command?: string;
}

describe('people are told by a signed webhook', () => {
  let stage: NotifyStage;
  let dave: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await NotifyStage.open();
    const { access } = stage;
    dave = await Person.of(access.plane, 'dave', ['oncall']);
    await access.kubectl('create', 'rolebinding', 'oncall', '--role=request-access', '--group=oncall');
    await access.apply(
      accessTemplate('ExecAccessTemplate', 'approved', undefined, {
        approvals: { all: [{ name: 'peer', groups: ['devs'] }] },
        extension: { times: 1, total: '10m', approvals: 'Same' },
        emergency: { groups: ['oncall'], maxDuration: '1m', reviewWithin: '1h' },
      }),
      ...approverRights('execaccesstemplates', 'alice', 'carol'),
    );
    await access.templateReady('ExecAccessTemplate', 'approved');
    await stage.provider('all', { linkBase: 'https://console.example.org' });
    await stage.subscribe('all', { events: [...accessEvents] });
    await stage.ready(notificationSubscriptions, 'all', 'Ready');
  });
  after(() => stage?.close());

  const ask = (who: Person, name: string, spec: object = {}): Promise<StoredRequest> =>
    stage.access.createOk(who, execRequest(name, { templateName: 'approved', reason: 'INC-42 disk full', ...spec }));
  const dataOf = ({ body }: Received): Data => body['data'] as Data;
  const revoke = (request: StoredRequest): Promise<unknown> =>
    stage.access.plane.call('PATCH', stage.access.urlOf(request.kind, request.metadata.name), {
      spec: { revoked: true },
    });

  it('who asks, why, for which permissions, and how to answer', async () => {
    await ask(stage.access.alice, 'asked');
    const data = dataOf(await stage.told('requested', 'asked'));
    assert.equal(data.requester, 'alice');
    assert.equal(data.reason, 'INC-42 disk full');
    assert.equal(data.template, 'approved');
    assert.equal(data.link, `https://console.example.org/requests/${stage.access.namespace}/ExecAccessRequest/asked`);
    assert.match(data.command ?? '', new RegExp(`^kubectl drawbridge approve \\S*asked -n ${stage.access.namespace}$`));
  });

  it('who approved, that access is open on which pod, and that it ended; each once', async function () {
    this.timeout(60_000);
    const { access } = stage;
    const request = await ask(access.alice, 'opened', { duration: '12s' });
    await stage.told('requested', 'opened');
    const vote = await access.vote(access.carol, request, { reason: 'seen with her' });
    assert.equal(vote.status, 201, JSON.stringify(vote.body));
    assert.deepEqual(dataOf(await stage.told('approved', 'opened')).votes, [
      { voter: 'carol', decision: 'Approve', reason: 'seen with her' },
    ]);
    const { status } = await access.ready(request);
    const granted = dataOf(await stage.told('granted', 'opened'));
    assert.equal(granted.pod, status?.podName);
    assert.ok(granted.permissions.includes('exec'), granted.permissions.join(', '));
    await stage.told('ending', 'opened', 30_000);
    await stage.told('ended', 'opened', 30_000);
    assert.deepEqual(stage.typesOf('opened'), ['requested', 'approved', 'granted', 'ending', 'ended']);
    assert.equal(new Set(stage.receiver.received.map(({ id }) => id)).size, stage.receiver.received.length);
  });

  it('who denied, and why', async () => {
    const { access } = stage;
    const request = await ask(access.alice, 'refused');
    const vote = await access.vote(access.carol, request, { decision: 'Deny', reason: 'not today' });
    assert.equal(vote.status, 201, JSON.stringify(vote.body));
    assert.deepEqual(dataOf(await stage.told('denied', 'refused')).votes, [
      { voter: 'carol', decision: 'Deny', reason: 'not today' },
    ]);
  });

  it('an extension that waits, and that it was granted', async function () {
    this.timeout(60_000);
    const { access } = stage;
    const request = await ask(access.alice, 'longer', { duration: '1m' });
    await access.vote(access.carol, request);
    await access.ready(request);
    await access.alice.call('PATCH', access.urlOf(request.kind, 'longer'), {
      spec: { extensions: [{ by: '30s', reason: 'still reading' }] },
    });
    await stage.told('extension.requested', 'longer');
    const vote = await access.vote(access.carol, request, { about: 'Extension-1' });
    assert.equal(vote.status, 201, JSON.stringify(vote.body));
    await stage.told('extended', 'longer');
    await revoke(request);
    await stage.told('ended', 'longer');
  });

  it('an emergency, with the approvals that it skipped, and the review that it owes after its end', async function () {
    this.timeout(60_000);
    const request = await ask(dave, 'down', { emergency: true, duration: '5s' });
    const data = (await stage.told('emergency', 'down')).body['data'] as { approvals: readonly object[] };
    assert.deepEqual(data.approvals, [{ name: 'peer', have: 0, need: 1, groups: ['devs'] }]);
    await stage.told('ended', 'down', 30_000);
    await stage.told('review-owed', 'down', 30_000);
    assert.ok(!stage.typesOf('down').includes('requested'));
    await revoke(request);
  });

  it('a session that starts and ends', async function () {
    this.timeout(60_000);
    const { access } = stage;
    const request = await ask(access.alice, 'entered', { duration: '1m' });
    await access.vote(access.carol, request);
    const { metadata, status } = await access.ready(request);
    const { kind } = request;
    const owner = { apiVersion: 'access.drawbridge.dev/v1alpha1', kind, name: metadata.name, uid: metadata.uid };
    const url = `/apis/access.drawbridge.dev/v1alpha1/namespaces/${access.namespace}/accesssessions`;
    const name = crypto.randomUUID();
    // As the gateway does; its own tests run it.
    const created = await access.plane.call('POST', url, {
      apiVersion: 'access.drawbridge.dev/v1alpha1',
      kind: 'AccessSession',
      metadata: { name, ownerReferences: [owner] },
      spec: {
        user: 'alice',
        grant: 'entered',
        request: { kind, name: metadata.name },
        pod: status?.podName,
        stream: 'exec',
        tty: true,
        recording: 'Off',
        replica: 'gateway-0',
        startedAt: new Date().toISOString(),
      },
    });
    assert.equal(created.status, 201, JSON.stringify(created.body));
    await stage.told('session.started', 'entered');
    await access.plane.call('DELETE', `${url}/${name}`);
    await stage.told('session.ended', 'entered');
    await revoke(request);
  });

  it('and the provider is Ready', async () => {
    await stage.ready(notificationProviders, 'all', 'Ready');
  });

  it('without a write on a request', () => {
    const writes = stage.access.plane.auditLog
      .calls({ user: stage.process.user })
      .filter(({ verb }) => !['get', 'list', 'watch'].includes(verb))
      .map(({ resource }) => resource);
    const allowed = ['leases', 'configmaps', 'notificationproviders/status', 'notificationsubscriptions/status'];
    assert.deepEqual(
      writes.filter((resource) => !allowed.includes(resource)),
      [],
    );
  });
});
