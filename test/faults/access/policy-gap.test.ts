import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import type { RequestStatus } from '../../../src/api/access/status.ts';
import {
  conditionOf,
  deadlineOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { attested } from '../../support/attested.ts';

const admission = '/apis/admissionregistration.k8s.io/v1';
const policies = `${admission}/validatingadmissionpolicies`;
const bindings = `${admission}/validatingadmissionpolicybindings`;

const template = (name: string, accessConfig: object): Manifest => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'ExecAccessTemplate',
  metadata: { name },
  spec: {
    accessConfig: { allowedGroups: ['devs'], ...accessConfig },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
  },
});

describe('while the admission policies are not in force', function () {
  this.timeout(180_000);
  let plane: Plane;
  let stage: AccessStage;
  /** Open before, during, and after. */
  let open: StoredRequest;
  /** Ends meanwhile. */
  let short: StoredRequest;
  /** Waits for a vote since before. */
  let waiting: StoredRequest;
  /** Created meanwhile, in the name of alice, one without a leader. */
  let forged: StoredRequest[];

  const readyz = async (query = ''): Promise<{ status: number; text: string }> => {
    const answer = await fetch(`http://127.0.0.1:${stage.server.healthPort}/readyz${query}`);
    return { status: answer.status, text: await answer.text() };
  };
  const named = (part: string): Promise<unknown> => {
    const isNamed = async (): Promise<boolean> => {
      const { status, text } = await readyz();
      return status === 503 && text.includes(part);
    };
    return until(`/readyz to name ${part}`, isNamed, { timeoutMs: 5000, everyMs: 20 });
  };
  const inForce = (timeoutMs = 90_000): Promise<unknown> =>
    until('the policies to be in force', async () => (await readyz()).status === 200, { timeoutMs, everyMs: 100 });
  const stored = ({ status, body }: ApiAnswer): StoredRequest => {
    assert.ok(status < 300, `${status} ${JSON.stringify(body)}`);
    return body as StoredRequest;
  };
  const forge = async (name: string): Promise<StoredRequest> =>
    stored(await stage.create(plane, attested(execRequest(name))));
  const reasonIs = (request: StoredRequest, type: string, reason: string): Promise<StoredRequest> =>
    stage.requestUntil(`to be ${reason}`, request, (now) => conditionOf(now, type)?.reason === reason);

  before(async () => {
    plane = await startPlane({ onProgress: (line) => console.error(line) });
    stage = await AccessStage.open({ on: plane });
    await inForce();
    await stage.apply(
      template('approved', { approvals: { all: [{ name: 'peer' }] } }),
      template('extendable', { extension: { times: 3, total: '2h', approvals: 'None' } }),
    );
    await stage.templateReady('ExecAccessTemplate', 'approved');
    await stage.templateReady('ExecAccessTemplate', 'extendable');
    open = await stage.createReady(stage.alice, execRequest('open', { templateName: 'extendable', duration: '30m' }));
    short = await stage.createReady(stage.alice, podRequest('short', { duration: '25s' }));
    waiting = await stage.createOk(stage.alice, execRequest('waiting', { templateName: 'approved' }));
    await stage.requestUntil('to wait', waiting, ({ status }) => (status?.conditions ?? []).length > 0);
  });
  after(async () => {
    await stage?.close();
    await plane?.stop();
  });

  it('/readyz names each object that is deleted, changed, or narrowed within five seconds', async () => {
    const [access, children] = ['drawbridge-access', 'drawbridge-children'];
    const steps: [string, object | undefined, string][] = [
      [
        `${bindings}/${access}`,
        { spec: { validationActions: ['Audit'] } },
        `${access} has spec.validationActions ["Audit"]`,
      ],
      [`${bindings}/${access}`, { spec: { validationActions: ['Deny'] } }, 'changed more than once'],
      [`${policies}/${access}`, { spec: { failurePolicy: 'Ignore' } }, `${access} has spec.failurePolicy "Ignore"`],
      [`${policies}/${access}`, { spec: { failurePolicy: 'Fail' } }, 'changed more than once'],
      [
        `${bindings}/${children}`,
        { spec: { matchResources: { namespaceSelector: { matchLabels: { a: 'b' } } } } },
        `${children} has spec.matchResources`,
      ],
      [`${bindings}/${children}`, undefined, `ValidatingAdmissionPolicyBinding ${children} does not exist`],
      [`${policies}/${children}`, undefined, `ValidatingAdmissionPolicy ${children} does not exist`],
    ];
    for (const [url, change, problem] of steps) {
      stored(change ? await plane.call('PATCH', url, change) : await plane.call('DELETE', url));
      await named(problem);
    }
    assert.equal((await readyz('?exclude=policies')).status, 200, 'the Pod stays in its Service');
  });

  it('requests wait, also under a leader that starts meanwhile', async () => {
    await stage.removeWebhooks();
    const passes = async (): Promise<boolean> => {
      const tried = attested(execRequest('tried'));
      return (await stage.create(plane, tried, '?dryRun=All')).status === 201;
    };
    await until('the API server to have forgotten the policies', passes, { timeoutMs: 30_000, everyMs: 50 });
    const during = await forge('during');
    await reasonIs(during, 'Ready', 'PoliciesMissing');
    await stage.stop();
    const without = await forge('without-leader');
    await stage.start({ installation: stage.server.installation });
    await named('drawbridge-access does not exist');
    await reasonIs(without, 'Ready', 'PoliciesMissing');
    forged = [during, without];
  });

  it('access ends on time', async () => {
    const line = await stage.auditLine('the end', ({ event, what }) => event === 'revocation' && what.name === 'short');
    const lateMs = Date.parse(String(line['time'])) - deadlineOf(short);
    assert.ok(lateMs < 2000, `${lateMs} ms late`);
  });

  it('nothing of that time opens once they are in force again, and all else as before', async () => {
    await stage.restoreWebhooks();
    await stage.policiesAre('in force');
    const extended = { spec: { extensions: [{ by: '10m' }] } };
    stored(await stage.alice.call('PATCH', stage.urlOf(open.kind, 'open'), extended));
    const sinceMs = Date.now();
    await inForce();
    assert.ok(Date.now() - sinceMs > 30_000, 'writes that the policies did not see may still come');
    for (const request of forged) await reasonIs(request, 'AccessResourcesCreated', 'PoliciesMissing');
    const isDecided = async (): Promise<boolean> => {
      const { status } = (await stage.read(open.kind, 'open')) as unknown as { status?: RequestStatus };
      assert.equal(status?.ended, undefined);
      return status?.extensions?.[0]?.state === 'Denied';
    };
    await until('the extension to be refused', isDecided, { timeoutMs: 10_000 });
    assert.deepEqual((await stage.children(open.metadata.uid)).map(({ kind }) => kind).sort(), ['Role', 'RoleBinding']);
    await stage.createReady(stage.alice, execRequest('afterwards', { templateName: 'extendable' }));
    const granted = await stage.audit(({ verdict }) => verdict === 'granted');
    assert.deepEqual(granted.map(({ what }) => what.name).sort(), ['afterwards', 'open', 'short']);
    const lines = await stage.audit(({ event }) => event === 'policies');
    assert.equal(lines.at(-1)?.verdict, 'proven');
  });

  it('they are in force at once after a restart, by the record', async () => {
    await stage.restart();
    await inForce(5000);
  });
});
