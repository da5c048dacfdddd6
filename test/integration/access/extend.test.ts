import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import type { RequestApproval, RequestStatus } from '../../../src/api/access/status.ts';
import { accessTemplate, approverRights } from '../../support/access-manifests.ts';
import { deadlineOf, execRequest, type Manifest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import type { Person } from '../../support/person.ts';

const template = (name: string, config: object): Manifest =>
  accessTemplate('ExecAccessTemplate', name, undefined, config);
const extension = { times: 2, total: '20m', approvals: 'None' };

describe('open access', () => {
  let stage: AccessStage;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    const approvals = { all: [{ name: 'peer', count: 1 }], claimWithin: '10m' };
    await stage.apply(
      template('extendable', { extension }),
      template('claimed', { approvals, start: { maxAhead: '24h' } }),
      ...approverRights('execaccesstemplates', 'carol'),
    );
    await stage.templateReady('ExecAccessTemplate', 'extendable');
    await stage.templateReady('ExecAccessTemplate', 'claimed');
  });
  after(() => stage?.close());

  const change = (person: Person, { metadata: { name } }: StoredRequest, spec: object): Promise<ApiAnswer> =>
    person.call('PATCH', stage.urlOf('ExecAccessRequest', name), { spec });
  const messageOf = ({ body }: ApiAnswer): string => (body as { message?: string }).message ?? '';
  const statusOf = ({ status }: StoredRequest): RequestStatus => (status ?? {}) as RequestStatus;
  const decided = (request: StoredRequest, count: number): Promise<StoredRequest> =>
    stage.requestUntil(`to have ${count} decided extensions`, request, (now) => {
      const { extensions = [] } = statusOf(now);
      return extensions.filter(({ state }) => state !== 'Pending').length === count;
    });
  const isIn = (state: RequestApproval['state']) => (now: StoredRequest) => statusOf(now).approval?.state === state;
  const passes = (instantMs: number): Promise<void> => sleep(Math.max(0, instantMs - Date.now()));

  it('is extended in place by its requester only', async function () {
    this.timeout(60_000);
    const asked = execRequest('extended', { templateName: 'extendable', duration: '8s' });
    const request = await stage.createReady(stage.alice, asked);
    const pod = request.status?.podName ?? '';
    const children = await stage.children(request.metadata.uid);

    const refused = await change(stage.carol, request, { extensions: [{ by: '1m' }] });
    assert.equal(refused.status, 403, messageOf(refused));
    assert.match(messageOf(refused), /NotRequester: /);
    const { status, body } = await change(stage.alice, request, { extensions: [{ by: '7s', reason: 'INC-42' }] });
    assert.equal(status, 200, JSON.stringify(body));

    const extended = await decided(request, 1);
    const [entry] = statusOf(extended).extensions ?? [];
    assert.equal(entry?.state, 'Granted', entry?.message);
    assert.equal(Date.parse(entry?.expiresAt ?? ''), deadlineOf(request) + 7000);
    const line = await stage.auditLine('the extension', ({ verdict }) => verdict === 'extended');
    assert.equal(line['reason'], 'INC-42');

    await passes(deadlineOf(request) + 1500);
    assert.equal(await stage.alice.mayExec(stage.namespace, pod), true);
    assert.deepEqual(await stage.children(request.metadata.uid), children);
    await stage.gone(request);
    assert.equal(await stage.alice.mayExec(stage.namespace, pod), false);
  });

  it('keeps its extensions as they are', async () => {
    const asked = execRequest('kept', { templateName: 'extendable', duration: '5m' });
    const request = await stage.createReady(stage.alice, asked);
    assert.equal((await change(stage.alice, request, { extensions: [{ by: '1m' }] })).status, 200);
    await decided(request, 1);
    for (const extensions of [[], [{ by: '2m' }], null]) {
      const answer = await change(stage.alice, request, { extensions });
      assert.equal(answer.status, 422, JSON.stringify(extensions));
      assert.match(messageOf(answer), /SpecImmutable: /);
    }
    const second = await change(stage.alice, request, { extensions: [{ by: '1m' }, { by: '2m' }] });
    assert.equal(second.status, 200, messageOf(second));
    const states = (statusOf(await decided(request, 2)).extensions ?? []).map(({ state }) => state);
    assert.deepEqual(states, ['Granted', 'Granted']);
    const third = await change(stage.alice, request, { extensions: [{ by: '1m' }, { by: '2m' }, { by: '3m' }] });
    assert.match(messageOf(third), /NotExtendable: /);
    assert.equal((await change(stage.carol, request, { revoked: true })).status, 200);
    await stage.closed(request);
  });

  it('begins with the claim of its requester only', async () => {
    const request = await stage.createOk(stage.alice, execRequest('claimed', { templateName: 'claimed' }));
    assert.match(messageOf(await change(stage.alice, request, { claimed: true })), /WrongState: /);
    const vote = await stage.vote(stage.carol, request);
    assert.equal(vote.status, 201, messageOf(vote));
    await stage.requestUntil('to be claimable', request, isIn('Claimable'));
    const refused = await change(stage.carol, request, { claimed: true });
    assert.match(messageOf(refused), /NotRequester: /);
    assert.equal((await change(stage.alice, request, { claimed: true })).status, 200);
    await stage.ready(request);
  });

  it('is scheduled if it is approved before its time', async () => {
    const startAt = new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+/, '');
    const asked = execRequest('later', { templateName: 'claimed', duration: '5m', startAt });
    const request = await stage.createOk(stage.alice, asked);
    assert.equal((await stage.vote(stage.carol, request)).status, 201);
    await stage.requestUntil('to be scheduled', request, isIn('Scheduled'));
  });
});
