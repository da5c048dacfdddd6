import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { voteName } from '../../../src/access/policy/vote-policy.ts';
import type { VoteSpec } from '../../../src/api/access/access-vote.ts';
import { requestLabel } from '../../../src/api/access/names.ts';
import type { RequestStatus } from '../../../src/api/access/status.ts';
import { accessTemplate, approverRights } from '../../support/access-manifests.ts';
import { execRequest, type Manifest, reviewed, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';
import { accountUser } from '../../support/server-token.ts';

const votes = 'access.drawbridge.dev';

const template = (name: string, approvals: object): Manifest =>
  accessTemplate('ExecAccessTemplate', name, undefined, { approvals });

describe('votes on real requests, under attack', () => {
  let stage: AccessStage;
  let erin: Person;
  let robot: Person;
  /** A client with the identity of the server. */
  let server: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    erin = await Person.of(stage.plane, 'erin', ['secops']);
    const account = `system:serviceaccount:${stage.namespace}:on-call`;
    server = await accountUser(stage.plane, 'drawbridge');
    robot = await Person.of(stage.plane, account, ['system:serviceaccounts']);
    const templates = [
      template('one', { all: [{ name: 'peer' }] }),
      template('two', { all: [{ name: 'peer', count: 2 }] }),
      template('robots', { all: [{ name: 'peer' }], serviceAccounts: true }),
    ];
    await stage.kubectl('create', 'role', 'edit-votes', '--verb=patch', `--resource=accessvotes.${votes}`);
    await stage.kubectl('create', 'rolebinding', 'edit-votes', '--role=edit-votes', `--user=${server.name}`);
    await stage.apply(...approverRights('execaccesstemplates', 'alice', 'carol', 'erin', account), ...templates);
    await Promise.all(templates.map(({ metadata }) => stage.templateReady('ExecAccessTemplate', metadata.name ?? '')));
  });
  after(() => stage?.close());

  const vote = (person: Person, name: string, spec: object = {}): Promise<ApiAnswer> =>
    stage.vote(person, execRequest(name), spec);
  const messageOf = ({ body }: ApiAnswer): string => (body as { message?: string }).message ?? '';
  const created = (answer: ApiAnswer): StoredRequest => {
    assert.equal(answer.status, 201, messageOf(answer));
    return answer.body as StoredRequest;
  };
  const approvalOf = ({ status }: StoredRequest): RequestStatus['approval'] =>
    (status as RequestStatus | undefined)?.approval;
  const ignoredIn = (request: StoredRequest): (string | undefined)[] =>
    (approvalOf(request)?.votes ?? []).map(({ ignored }) => ignored?.split(':')[0]);
  const ask = (name: string, templateName: string): Promise<StoredRequest> =>
    stage.createOk(stage.alice, execRequest(name, { templateName }));
  /** Pending, and seen with as many votes. */
  const pending = (request: StoredRequest, voted: number): Promise<StoredRequest> =>
    stage.requestUntil(`to be pending with ${voted} votes`, request, (now) => {
      const approval = approvalOf(now);
      return approval?.state === 'Pending' && (approval.votes ?? []).length === voted;
    });

  it('count each person once, however many votes come in parallel', async () => {
    const request = await ask('parallel', 'two');
    const own = Promise.all(Array.from({ length: 10 }, () => reviewed(() => vote(stage.alice, 'parallel'))));
    const answers = await Promise.all(Array.from({ length: 50 }, () => reviewed(() => vote(stage.carol, 'parallel'))));
    assert.equal(answers.filter(({ status }) => status === 201).length, 1, answers.map(messageOf).join());
    for (const answer of await own) assert.match(messageOf(answer), /SelfApproval: /);
    const now = await pending(request, 1);
    assert.deepEqual(approvalOf(now)?.all, [{ name: 'peer', have: 1, need: 2 }]);
    assert.deepEqual(await stage.children(request.metadata.uid), []);
    created(await vote(erin, 'parallel'));
    await stage.ready(request);
  });

  it('of ServiceAccounts count only if the template says so', async () => {
    const [refused, counted] = await Promise.all([ask('people', 'one'), ask('robots', 'robots')]);
    assert.match(messageOf(await vote(robot, 'people')), /NotApprover: /);
    created(await vote(robot, 'robots', { onBehalfOf: 'carol' }));
    await stage.ready(counted);
    assert.deepEqual(ignoredIn(await pending(refused, 0)), []);
  });

  it('stay as they are for everyone but the server', async () => {
    await ask('kept', 'two');
    const { metadata } = created(await vote(stage.carol, 'kept'));
    // Without this label, the server would not find the vote.
    const relabeled = { metadata: { labels: { [requestLabel]: null } } };
    assert.match(messageOf(await stage.plane.call('PATCH', stage.votesUrl(metadata.name), relabeled)), /VoteKept: /);
    assert.match(messageOf(await stage.plane.call('DELETE', stage.votesUrl(metadata.name))), /VoteKept: /);
    assert.match(messageOf(await stage.plane.call('DELETE', stage.votesUrl())), /VoteKept: /);
    assert.equal((await stage.plane.call('GET', stage.votesUrl(metadata.name))).status, 200);
  });

  it('are deleted by the server, and never changed, even with every right in RBAC', async () => {
    await ask('kept-by-the-server', 'two');
    const { metadata } = created(await vote(stage.carol, 'kept-by-the-server'));
    const relabeled = { metadata: { labels: { [requestLabel]: null } } };
    assert.match(messageOf(await server.call('PATCH', stage.votesUrl(metadata.name), relabeled)), /VoteKept: /);
    assert.equal((await server.call('DELETE', stage.votesUrl(metadata.name))).status, 200);
    stage.ignoreEarlierCalls();
  });

  it('count for the request that they name by its uid only', async () => {
    await ask('replaced', 'one');
    const request = { kind: 'ExecAccessRequest', name: 'replaced', uid: 'of-an-earlier-request' };
    assert.match(messageOf(await vote(stage.carol, 'replaced', { request })), /RequestNotFound: /);
  });

  it('count once for each person without the webhooks too, and no other client writes status.approval', async () => {
    const request = await ask('voted', 'two');
    const { metadata, spec } = created(await vote(stage.carol, 'voted')) as StoredRequest & { spec: VoteSpec };
    await pending(request, 1);
    const approval = { state: 'Approved', all: [{ name: 'peer', have: 2, need: 2 }], votes: [] };
    const status = `${stage.urlOf('ExecAccessRequest', 'voted')}/status`;
    assert.match(messageOf(await stage.plane.call('PATCH', status, { status: { approval } })), /StatusReserved: /);
    await stage.removeWebhooksOnly();
    try {
      const copy = (person: Person, name: string, changes: object = {}): Promise<ApiAnswer> =>
        person.call('POST', stage.votesUrl(), {
          apiVersion: `${votes}/v1alpha1`,
          kind: 'AccessVote',
          metadata: { ...metadata, resourceVersion: undefined, name },
          spec: { ...spec, ...changes },
        });
      assert.match(messageOf(await copy(erin, 'of-carol')), /IdentityForged: /);
      created(await copy(stage.carol, 'again'));
      const voter = { username: 'alice', uid: '', groups: ['devs', 'system:authenticated'], time: spec.voter?.time };
      created(await copy(stage.alice, voteName(request.metadata.uid, 'alice', spec), { voter }));
      const now = await pending(request, 3);
      assert.deepEqual(ignoredIn(now).sort(), ['MissingIdentity', 'SelfApproval', undefined]);
      assert.deepEqual(approvalOf(now)?.all, [{ name: 'peer', have: 1, need: 2 }]);
      assert.deepEqual(await stage.children(request.metadata.uid), []);
    } finally {
      await stage.restoreWebhooks();
    }
  });
});
