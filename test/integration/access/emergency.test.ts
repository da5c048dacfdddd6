import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import type { AuditLine } from '../../../sandbox/server-process.ts';
import { until } from '../../../sandbox/wait.ts';
import { approverRights } from '../../support/access-manifests.ts';
import { execRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Person } from '../../support/person.ts';

const reason = 'the database does not answer';

describe('emergency access', () => {
  let stage: AccessStage;
  /** On call, and in no allowed group. */
  let dave: Person;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    dave = await Person.of(stage.plane, 'dave', ['oncall']);
    await stage.kubectl('create', 'rolebinding', 'oncall', '--role=request-access', '--group=oncall');
    await stage.apply(...approverRights('execaccesstemplates', 'carol', 'dave'));
    const emergency = { groups: ['oncall'], maxDuration: '1m', reviewWithin: '1h' };
    await stage.configure('ExecAccessTemplate', 'payments-exec', { emergency });
  });

  after(() => stage?.close());

  const stateOf = ({ status }: StoredRequest): string | undefined =>
    (status as { approval?: { state: string } } | undefined)?.approval?.state;
  const review = (
    who: Person,
    { kind, metadata }: StoredRequest,
    decision: 'Approve' | 'Deny' = 'Approve',
    about = 'Review',
    query = '',
  ): Promise<ApiAnswer> => {
    const request = { kind, name: metadata.name, uid: metadata.uid };
    return stage.vote(who, { kind, metadata }, { request, about, decision, reason: 'read the journal' }, query);
  };
  const assertDenied = ({ status, body }: ApiAnswer, code: string): void => {
    assert.ok(status >= 400, JSON.stringify(body));
    assert.match((body as { message: string }).message, new RegExp(code));
  };
  const isGone = ({ kind, metadata }: StoredRequest): Promise<void> =>
    until('the request to be gone', async () => (await stage.read(kind, metadata.name)) === undefined, {
      timeoutMs: 60_000,
    }).then(() => undefined);

  it('is not opened for others, or without a reason', async () => {
    assertDenied(
      await stage.create(stage.alice, execRequest('not-on-call', { emergency: true, reason })),
      'EmergencyNotAllowed',
    );
    assertDenied(await stage.create(dave, execRequest('no-reason', { emergency: true })), 'InvalidRequest');
  });

  it('opens at once, ends on time, and stays until another person reviewed it', async function () {
    this.timeout(120_000);
    const request = await stage.createReady(dave, execRequest('down', { emergency: true, reason, duration: '8s' }));
    assert.equal(stateOf(request), 'ReviewOwed');
    assert.equal(await dave.mayExec(stage.namespace, request.status?.podName ?? ''), true);
    const ended = await stage.requestUntil('has ended', request, ({ status }) => status?.ready === false);
    assert.equal(stateOf(ended), 'ReviewOwed');
    assert.equal(await dave.mayExec(stage.namespace, request.status?.podName ?? ''), false);
    assertDenied(await review(dave, request), 'SelfApproval');
    const reviewed = await review(stage.carol, request);
    assert.equal(reviewed.status, 201, JSON.stringify(reviewed.body));
    await isGone(request);
    const line = await stage.auditLine('the review', ({ event }) => event === 'review');
    assert.deepEqual([line.verdict, line.who.user, line.what.name], ['reviewed', 'dave', 'down']);
  });

  it('ends at once if its review is denied while it is open', async function () {
    this.timeout(120_000);
    const request = await stage.createReady(dave, execRequest('not-justified', { emergency: true, reason }));
    const denied = await review(stage.carol, request, 'Deny');
    assert.equal(denied.status, 201, JSON.stringify(denied.body));
    await stage.shutTo(dave, request.status?.podName ?? '', 10_000);
    await isGone(request);
    const end = await stage.endOf('not-justified');
    assert.equal(end.code, 'VoteDenied');
    const isOfRequest = ({ event, what }: AuditLine): boolean => event === 'review' && what.name === 'not-justified';
    const line = await stage.auditLine('the review', isOfRequest);
    assert.equal(line.verdict, 'reviewed');
  });

  it('keeps its first review, and still ends by a denial of its access', async function () {
    this.timeout(120_000);
    const request = await stage.createReady(dave, execRequest('justified', { emergency: true, reason }));
    assert.equal((await review(stage.carol, request)).status, 201);
    await stage.requestUntil('is reviewed', request, (now) => stateOf(now) === 'Reviewed');
    const known = async (): Promise<boolean> => {
      const { body } = await review(stage.carol, request, 'Deny', 'Review', '?dryRun=All');
      return /NothingToDecide: .* has been reviewed already; to deny .*, set spec\.about to Access/.test(
        JSON.stringify(body),
      );
    };
    await until('the webhook to know the review', known, { timeoutMs: 10_000 });
    assert.equal(await dave.mayExec(stage.namespace, request.status?.podName ?? ''), true);
    assert.equal((await review(stage.carol, request, 'Deny', 'Access')).status, 201);
    await isGone(request);
  });

  it('is reviewed even if its request was deleted', async function () {
    this.timeout(120_000);
    const request = await stage.createReady(dave, execRequest('deleted', { emergency: true, reason }));
    await dave.call('DELETE', stage.urlOf('ExecAccessRequest', 'deleted'));
    await isGone(request);
    const owed = async (): Promise<boolean> => {
      const url = '/api/v1/namespaces/drawbridge-system/configmaps/drawbridge-emergency-reviews';
      const { data = {} } = (await stage.plane.probe(url)).body as { data?: Record<string, string> };
      return data[request.metadata.uid] !== undefined;
    };
    assert.equal(await owed(), true);
    const reviewed = await review(stage.carol, request);
    assert.equal(reviewed.status, 201, JSON.stringify(reviewed.body));
    await until('the review to be settled', async () => !(await owed()), { timeoutMs: 30_000 });
  });
});
