import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { until } from '../../../sandbox/wait.ts';
import type { RequestStatus } from '../../../src/api/access/status.ts';
import { accessTemplate, role, roleBinding, targetOf, workload } from '../../support/access-manifests.ts';
import {
  conditionOf,
  deadlineOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';

const votes = 'access.drawbridge.dev';

const template = (name: string, approvals: object, accessConfig: object = {}): Manifest =>
  accessTemplate('ExecAccessTemplate', name, undefined, { approvals, ...accessConfig });

/** Alice, carol, and erin may approve; bob may only create votes. */
const approvers: readonly Manifest[] = [
  role('vote', { apiGroups: [votes], resources: ['accessvotes'], verbs: ['create', 'delete'] }),
  role('approve', { apiGroups: ['crds.wizardofoz.co'], resources: ['execaccesstemplates'], verbs: ['approve'] }),
  roleBinding('vote', ['alice', 'carol', 'erin', 'bob']),
  ...['alice', 'carol', 'erin'].map((user) => roleBinding('approve', [user], `approve-${user}`)),
];

describe('access that others approve', () => {
  let stage: AccessStage;
  let erin: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    erin = await Person.of(stage.plane, 'erin', ['secops']);
    const peer = { name: 'peer', groups: ['devs'] };
    const security = { name: 'security', groups: ['secops'] };
    await stage.apply(
      template('two-teams', { all: [peer, security] }),
      template('peer', { all: [peer] }),
      template('security', { all: [security] }),
      ...approvers,
    );
    await stage.templateReady('ExecAccessTemplate', 'two-teams');
    await stage.templateReady('ExecAccessTemplate', 'peer');
    await stage.templateReady('ExecAccessTemplate', 'security');
  });
  after(() => stage?.close());

  const vote = (person: Person, request: StoredRequest, spec: object = {}): Promise<ApiAnswer> =>
    stage.vote(person, request, spec);
  const messageOf = ({ body }: ApiAnswer): string => (body as { message?: string }).message ?? '';
  const assertCreated = (answer: ApiAnswer): StoredRequest => {
    assert.equal(answer.status, 201, messageOf(answer));
    return answer.body as StoredRequest;
  };
  const assertDenied = (answer: ApiAnswer, message: RegExp): void => {
    assert.ok(answer.status >= 400 && answer.status < 500, JSON.stringify(answer.body));
    assert.match(messageOf(answer), message);
  };
  const approvalOf = ({ status }: StoredRequest): RequestStatus['approval'] =>
    (status as RequestStatus | undefined)?.approval;
  const mayApprove = (person: Person): Promise<boolean> =>
    person.may({
      namespace: stage.namespace,
      verb: 'approve',
      group: 'crds.wizardofoz.co',
      resource: 'execaccesstemplates',
      name: 'two-teams',
    });
  const ask = (name: string, templateName: string, spec: object = {}): Promise<StoredRequest> =>
    stage.createOk(stage.alice, execRequest(name, { templateName, ...spec }));
  const pending = (request: StoredRequest, votesSeen = 0): Promise<StoredRequest> =>
    stage.requestUntil(`to be pending with ${votesSeen} votes`, request, (now) => {
      const approval = approvalOf(now);
      return approval?.state === 'Pending' && (approval.votes ?? []).length === votesSeen;
    });

  it('is asked for through each template of examples/approvals.yaml', async () => {
    await stage.applyFiles('examples/approvals.yaml');
    const olga = await Person.of(stage.plane, 'olga', ['devs', 'sre']);
    const asked = [
      [podRequest, 'debug', { reason: 'INC-42 the disk is full' }, ['peer']],
      [execRequest, 'production', { reason: 'INC-42 restart the worker' }, ['owner', 'security']],
      [execRequest, 'maintenance', {}, ['owner']],
      [podRequest, 'oncall', {}, ['on-call']],
    ] as const;
    for (const [requestOf, name, spec, entries] of asked) {
      const templateName = `payments-${name}`;
      const manifest = requestOf(name, { templateName, ...spec });
      await stage.templateReady(manifest.kind.replace('Request', 'Template'), templateName);
      const request = await pending(await stage.createOk(olga, manifest));
      assert.deepEqual(
        (approvalOf(request)?.all ?? []).map((entry) => entry.name),
        entries,
      );
    }
  });

  it('tells voters whose approval would not count, also in a dry run, and lets them deny', async () => {
    const request = await ask('other-team', 'security');
    await pending(request);
    const manifest = (decision: string): string =>
      JSON.stringify({
        apiVersion: `${votes}/v1alpha1`,
        kind: 'AccessVote',
        metadata: { generateName: 'vote-' },
        spec: { request: { kind: 'ExecAccessRequest', name: 'other-team' }, decision },
      });
    const create = (decision: string, ...flags: string[]): Promise<{ code: number; stderr: string }> =>
      stage.carol.kubectl(['create', '-n', stage.namespace, ...flags, '-f', '-'], {
        input: manifest(decision),
        reject: false,
      });
    const denial =
      /NotApprover: an approval of carol would not count: the user is in none of the groups that template security needs \(security: \[secops\]\)/;
    const dryRun = await create('Approve', '--dry-run=server');
    assert.match(dryRun.stderr, denial);
    assert.match(
      dryRun.stderr,
      /^Warning: FAIL group: .*; to pass: ask a member of such a group to approve; you can only deny$/m,
    );
    const created = await create('Approve');
    assert.equal(created.code, 1);
    assert.match(created.stderr, denial);
    const deny = await create('Deny');
    assert.equal(deny.code, 0, deny.stderr);
    await stage.requestUntil('to be denied', request, (now) => approvalOf(now)?.state === 'Denied');
  });

  it('leaves an Event with the reason if it is revoked while it waits, also for a name that was used before', async () => {
    const endedBy = async (revokedReason: string): Promise<void> => {
      const request = await pending(await ask('withdrawn', 'peer'));
      const spec = { revoked: true, revokedReason };
      const { status } = await stage.plane.call('PATCH', stage.urlOf(request.kind, 'withdrawn'), { spec });
      assert.equal(status, 200);
      await stage.gone(request);
      const note = `the request ended before access opened: the request was revoked: ${revokedReason}`;
      const events = (): Promise<string> =>
        stage.kubectl('get', 'events', '--field-selector', 'involvedObject.name=withdrawn');
      await until('the Event RequestEnded', async () => (await events()).includes(note), {
        timeoutMs: 30_000,
        everyMs: 200,
      });
    };
    await endedBy('INC-41 closed');
    await endedBy('INC-42 closed');
  });

  it('opens when every entry is met, for the shortest time that a vote approves', async () => {
    const request = await ask('approved', 'two-teams', { duration: '30m' });
    await pending(request);
    assertCreated(await vote(stage.carol, request, { reason: 'INC-42 is real' }));
    const half = await pending(request, 1);
    assert.deepEqual(approvalOf(half)?.all, [
      { name: 'peer', have: 1, need: 1 },
      { name: 'security', have: 0, need: 1 },
    ]);
    assert.deepEqual(await stage.children(request.metadata.uid), []);
    assertCreated(await vote(erin, request, { max: '2m' }));
    const open = await stage.ready(request);
    const startsAt = Date.parse(String(open.status?.grant?.['startsAt']));
    assert.equal(deadlineOf(open) - startsAt, 120_000);
    assert.equal(await stage.alice.mayExec(stage.namespace, open.status?.podName ?? ''), true);
    const line = await stage.auditLine(
      'the grant',
      ({ verdict, what }) => verdict === 'granted' && what.name === 'approved',
    );
    assert.deepEqual(
      (line['votes'] as { voter: string; reason?: string }[]).map(({ voter, reason }) => [voter, reason]).sort(),
      [
        ['carol', 'INC-42 is real'],
        ['erin', undefined],
      ],
    );
    // Later tests observe what alice may do in the same pods.
    await stage.kubectl('delete', 'execaccessrequest', 'approved', '--wait=false');
    await stage.closed(request);
  });

  /** Creates a workload, and a template of the same name for it, which needs one approval. */
  const applyWorkload = async (kind: string, name: string, replicas: number): Promise<void> => {
    await stage.apply(
      workload(name, { replicas, ...(kind === 'StatefulSet' ? { serviceName: name } : {}) }, kind),
      accessTemplate('ExecAccessTemplate', name, targetOf(name, kind), { approvals: { all: [{ name: 'peer' }] } }),
    );
    await stage.templateReady('ExecAccessTemplate', name);
  };

  it('keeps its approval while the workload has no running pod, says so, and opens when it has one', async () => {
    await applyWorkload('Deployment', 'rolling', 0);
    const request = await ask('rolling', 'rolling');
    await pending(request);
    assertCreated(await vote(stage.carol, request));
    const waiting = await stage.requestUntil(
      'to wait for a pod',
      request,
      (now) => approvalOf(now)?.state === 'Approved',
    );
    const found = waiting.status?.conditions?.find(({ type }) => type === 'AccessApproved');
    assert.deepEqual([found?.status, found?.reason], ['Unknown', 'NoRunningPod']);
    assert.match(found?.message ?? '', /^waiting until .*; Deployment \S+ has no running pod; wait for its rollout/);
    const event = await until(
      'the Event',
      async () => {
        const printed = await stage.kubectl('get', 'events', '--field-selector=reason=NoRunningPod', '-o=name');
        return printed.trim() || undefined;
      },
      { timeoutMs: 60_000, everyMs: 100 },
    );
    assert.match(event, /^event\//);
    await stage.kubectl('scale', 'deployment', 'rolling', '--replicas=1');
    const open = await stage.ready(request);
    assert.match(open.status?.podName ?? '', /^rolling-/);
    await stage.kubectl('delete', 'execaccessrequest', 'rolling', '--wait=false');
    await stage.closed(request);
  });

  it('waits for the pod of a StatefulSet that it names', async () => {
    await applyWorkload('StatefulSet', 'stateful', 0);
    const request = await ask('stateful', 'stateful', { targetPod: 'stateful-0' });
    await pending(request);
    assertCreated(await vote(stage.carol, request));
    const waiting = await stage.requestUntil(
      'to wait for its pod',
      request,
      (now) => approvalOf(now)?.state === 'Approved',
    );
    const found = conditionOf(waiting, 'AccessApproved');
    assert.deepEqual([found?.status, found?.reason], ['Unknown', 'InvalidTargetPod']);
    await stage.kubectl('scale', 'statefulset', 'stateful', '--replicas=1');
    assert.equal((await stage.ready(request)).status?.podName, 'stateful-0');
    await stage.kubectl('delete', 'execaccessrequest', 'stateful', '--wait=false');
    await stage.closed(request);
  });

  it('is denied if a Deployment replaced the pod that it names; the message names the pods that run now', async () => {
    await applyWorkload('Deployment', 'replaced', 1);
    const runningPod = (other = ''): Promise<string> =>
      until(
        `a running pod other than ${other}`,
        async () => {
          const only = ['-l', 'app=replaced', '--field-selector=status.phase=Running', '-o', 'name'];
          const names = (await stage.kubectl('get', 'pods', ...only)).trim().split('\n');
          const [name = ''] = names.map((line) => line.replace('pod/', ''));
          return names.length === 1 && name !== other && name;
        },
        { timeoutMs: 30_000, everyMs: 100 },
      );
    const old = await runningPod();
    const [request, unpinned] = await Promise.all([
      ask('replaced', 'replaced', { targetPod: old }),
      ask('unpinned', 'replaced'),
    ]);
    await Promise.all([pending(request), pending(unpinned)]);
    await stage.kubectl('delete', 'pod', old, '--wait=false');
    const now = await runningPod(old);
    // Once this request is open, the server has seen that the new pod runs.
    assertCreated(await vote(stage.carol, unpinned));
    assert.equal((await stage.ready(unpinned)).status?.podName, now);
    assertCreated(await vote(stage.carol, request));
    const denied = await stage.requestUntil(
      'to be denied',
      request,
      (asked) => conditionOf(asked, 'AccessResourcesCreated') !== undefined,
    );
    const { status, reason, message = '' } = conditionOf(denied, 'AccessResourcesCreated') ?? {};
    assert.deepEqual([status, reason], ['False', 'InvalidTargetPod']);
    assert.ok(message.includes(old), message);
    assert.match(message, /leave spec\.targetPod out$/);
    await stage.kubectl('delete', 'execaccessrequest', 'unpinned', '--wait=false');
    await stage.closed(unpinned);
  });

  it('refuses votes of the requester, of users without the verb, and a second equal vote', async () => {
    const request = await ask('refused', 'two-teams');
    assertDenied(await vote(stage.alice, request), /SelfApproval: /);
    assertDenied(await vote(stage.bob, request), /NotApprover: /);
    assertCreated(await vote(stage.carol, request));
    assert.equal((await vote(stage.carol, request)).status, 409);
    const now = await pending(request, 1);
    assert.equal(approvalOf(now)?.votes?.[0]?.voter, 'carol');
    assertDenied(
      await vote(stage.carol, request),
      /AlreadyVoted: carol has already voted on ExecAccessRequest refused at .*; to deny the access, or to end it if it is open, vote with spec\.decision Deny/,
    );
  });

  it('is denied by one denial, and ends by one if it is open', async () => {
    const [denied, ended] = await Promise.all([ask('denied', 'peer'), ask('ended', 'peer', { duration: '10m' })]);
    assertCreated(await vote(erin, denied, { decision: 'Deny', reason: 'not today' }));
    const now = await stage.requestUntil('to be denied', denied, (request) => approvalOf(request)?.state === 'Denied');
    assert.match(
      now.status?.conditions?.map(({ message }) => message).join() ?? '',
      /erin denied the request: not today/,
    );
    assertCreated(await vote(stage.carol, ended));
    const open = await stage.ready(ended);
    assertCreated(await vote(erin, ended, { decision: 'Deny', reason: 'wrong pod' }));
    await stage.gone(ended);
    assert.equal(await stage.alice.mayExec(stage.namespace, open.status?.podName ?? ''), false);
    const line = await stage.endOf('ended');
    assert.equal(line['code'], 'VoteDenied');
    assertDenied(await vote(stage.carol, denied), /NothingToDecide: /);
  });

  it('counts a vote for one version of the template', async () => {
    await stage.apply(template('edited', { all: [{ name: 'peer', count: 2 }] }));
    await stage.templateReady('ExecAccessTemplate', 'edited');
    const request = await ask('edited', 'edited');
    assertCreated(await vote(stage.carol, request));
    await pending(request, 1);
    const edit = { spec: { accessConfig: { maxDuration: '2h' } } };
    const { status } = await stage.plane.call('PATCH', stage.urlOf('ExecAccessTemplate', 'edited'), edit);
    assert.equal(status, 200);
    await stage.templateReady('ExecAccessTemplate', 'edited');
    assertCreated(await vote(erin, request));
    const now = await pending(request, 2);
    const [{ ignored } = {}] = (approvalOf(now)?.votes ?? []).filter(({ voter }) => voter === 'carol');
    assert.match(ignored ?? '', /^TemplateChanged: /);
    assertCreated(await vote(stage.carol, request));
    await stage.ready(request);
  });

  it('counts a vote only while the voter holds the verb', async () => {
    const request = await ask('lost', 'two-teams');
    assertCreated(await vote(stage.carol, request));
    await pending(request, 1);
    await stage.kubectl('delete', 'rolebinding', 'approve-carol');
    await until('carol to lose the verb', async () => !(await mayApprove(stage.carol)), { timeoutMs: 30_000 });
    assertCreated(await vote(erin, request));
    const now = await pending(request, 2);
    const [{ ignored } = {}] = (approvalOf(now)?.votes ?? []).filter(({ voter }) => voter === 'carol');
    assert.match(ignored ?? '', /^NotApprover: /);
    await stage.apply(...approvers);
    await until('carol to hold the verb', () => mayApprove(stage.carol), { timeoutMs: 30_000 });
  });

  it('keeps its votes, without the webhooks too', async () => {
    const request = await ask('kept', 'two-teams');
    const { metadata } = assertCreated(await vote(erin, request, { decision: 'Deny' }));
    const other = await ask('forged', 'peer');
    await pending(other);
    assertDenied(await erin.call('DELETE', stage.votesUrl(metadata.name)), /VoteKept: /);
    await stage.removeWebhooksOnly();
    try {
      assertDenied(await erin.call('DELETE', stage.votesUrl(metadata.name)), /VoteKept: /);
      assertDenied(await vote(stage.carol, other), /MissingIdentity: /);
      const asOther = {
        voter: { username: 'erin', uid: '', groups: [], time: new Date().toISOString() },
      };
      assertDenied(await vote(stage.carol, other, asOther), /IdentityForged: /);
      const asSelf = { username: 'bob', uid: '', groups: ['qa', 'system:authenticated'] };
      const named = { kind: 'ExecAccessTemplate', name: 'peer', uid: 'u', generation: 1 };
      const time = new Date().toISOString();
      assertDenied(await vote(stage.bob, other, { voter: { ...asSelf, time }, template: named }), /NotApprover: /);
    } finally {
      await stage.restoreWebhooks();
    }
  });
});
