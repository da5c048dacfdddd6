import assert from 'node:assert/strict';
import type { ApiAnswer } from '../../../sandbox/api-call.ts';
import { type Plane, startPlane } from '../../../sandbox/plane.ts';
import { until } from '../../../sandbox/wait.ts';
import { policyRecordName } from '../../../src/access/policies/policy-guard.ts';
import { requestLabel } from '../../../src/api/access/names.ts';
import type { RequestStatus } from '../../../src/api/access/status.ts';
import {
  accessUrl,
  conditionOf,
  deadlineOf,
  execRequest,
  type Manifest,
  podRequest,
  type StoredRequest,
} from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';

const admission = '/apis/admissionregistration.k8s.io/v1';
const policies = `${admission}/validatingadmissionpolicies`;
const bindings = `${admission}/validatingadmissionpolicybindings`;

/** Of a client that no policy and no webhook has checked. */
const forged = {
  username: 'carol',
  uid: '',
  groups: ['devs'],
  time: '2026-11-21T09:00:00Z',
  signature: 'x'.repeat(43),
};

const template = (name: string, spec: object = {}): Manifest => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'ExecAccessTemplate',
  metadata: { name },
  spec: {
    accessConfig: { allowedGroups: ['devs'], ...spec },
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

  const readyz = async (query = ''): Promise<{ status: number; text: string }> => {
    const answer = await fetch(`http://127.0.0.1:${stage.server.healthPort}/readyz${query}`);
    return { status: answer.status, text: await answer.text() };
  };
  const named = (part: string): Promise<unknown> =>
    until(
      `/readyz to name ${part}`,
      async () => {
        const { status, text } = await readyz();
        return status === 503 && text.includes(part);
      },
      { timeoutMs: 5000, everyMs: 20 },
    );
  const inForce = (): Promise<unknown> =>
    until('the policies to be in force', async () => (await readyz()).status === 200, {
      timeoutMs: 90_000,
      everyMs: 100,
    });
  const stored = ({ status, body }: ApiAnswer): StoredRequest => {
    assert.ok(status < 300, `${status} ${JSON.stringify(body)}`);
    return body as StoredRequest;
  };
  const asAdmin = async (manifest: Manifest): Promise<StoredRequest> =>
    stored(await stage.create(stage.plane, manifest));
  const deniedWith = async (request: StoredRequest, code: string): Promise<StoredRequest> => {
    const denied = await stage.requestUntil(
      'to be denied',
      request,
      (now) => conditionOf(now, 'AccessResourcesCreated')?.status === 'False',
    );
    assert.equal(conditionOf(denied, 'AccessResourcesCreated')?.reason, code);
    assert.equal(denied.status?.grant, undefined);
    return denied;
  };

  before(async () => {
    plane = await startPlane({ onProgress: (line) => console.error(line) });
    stage = await AccessStage.open({ on: plane });
    await inForce();
    const approvals = { all: [{ name: 'peer' }] };
    await stage.apply(
      template('approved', { approvals }),
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

  it('names each object that is deleted, changed, or narrowed within five seconds, and stays in Services', async () => {
    const steps: [string, object | undefined, string][] = [
      [
        `${bindings}/drawbridge-access`,
        { spec: { validationActions: ['Audit'] } },
        'drawbridge-access has spec.validationActions ["Audit"]',
      ],
      [`${bindings}/drawbridge-access`, { spec: { validationActions: ['Deny'] } }, 'changed more than once'],
      [
        `${policies}/drawbridge-access`,
        { spec: { failurePolicy: 'Ignore' } },
        'drawbridge-access has spec.failurePolicy "Ignore"',
      ],
      [`${policies}/drawbridge-access`, { spec: { failurePolicy: 'Fail' } }, 'changed more than once'],
      [
        `${bindings}/drawbridge-children`,
        { spec: { matchResources: { namespaceSelector: { matchLabels: { a: 'b' } } } } },
        'drawbridge-children has spec.matchResources',
      ],
      [
        `${bindings}/drawbridge-children`,
        undefined,
        'ValidatingAdmissionPolicyBinding drawbridge-children does not exist',
      ],
      [`${policies}/drawbridge-children`, undefined, 'ValidatingAdmissionPolicy drawbridge-children does not exist'],
    ];
    for (const [url, change, problem] of steps) {
      const answer = change ? await plane.call('PATCH', url, change) : await plane.call('DELETE', url);
      assert.ok(answer.status < 300, JSON.stringify(answer.body));
      await named(problem);
    }
    assert.equal((await readyz('?exclude=policies')).status, 200);
  });

  it('denies what other clients create in the name of a user, and finds it again after a restart', async () => {
    await stage.removeWebhooks();
    // The API server notices a deleted policy within a second.
    const passes = async (): Promise<boolean> =>
      (await stage.create(stage.plane, execRequest('tried', { requester: forged }), '?dryRun=All')).status === 201;
    await until('nothing to deny a forgery', passes, { timeoutMs: 30_000, everyMs: 50 });
    await deniedWith(await asAdmin(execRequest('forged', { requester: forged })), 'PoliciesMissing');
    await stage.stop();
    const later = await asAdmin(execRequest('without-leader', { requester: forged }));
    const unknown = { ...forged, username: 'admin', groups: ['system:masters'] };
    await asAdmin({ ...template('theirs'), spec: { ...(template('theirs')['spec'] as object), author: unknown } });
    stored(
      await plane.call('PATCH', stage.urlOf(open.kind, 'open'), {
        spec: { extensions: [{ by: '10m', signature: 'x'.repeat(43) }] },
      }),
    );
    const votes = `/apis/access.drawbridge.dev/v1alpha1/namespaces/${stage.namespace}/accessvotes`;
    const { uid } = waiting.metadata;
    const voter = { ...forged, username: 'erin' };
    const spec = {
      request: { kind: 'ExecAccessRequest', name: 'waiting', uid },
      template: { kind: 'ExecAccessTemplate', name: 'approved', uid: 'u', generation: 1 },
      decision: 'Approve',
      voter,
    };
    for (const about of ['Access', 'Extension-1']) {
      const metadata = { name: `forged-${about.toLowerCase()}`, labels: { [requestLabel]: uid } };
      const vote = { apiVersion: 'access.drawbridge.dev/v1alpha1', kind: 'AccessVote', metadata };
      stored(await plane.call('POST', votes, { ...vote, spec: { ...spec, about } }));
    }
    const role = { metadata: { name: 'planted', labels: { [requestLabel]: open.metadata.uid } }, rules: [] };
    stored(await plane.call('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${stage.namespace}/roles`, role));
    await stage.start({ installation: stage.server.installation });
    await named('drawbridge-access does not exist');
    await deniedWith(later, 'PoliciesMissing');
  });

  it('ends access on time, and lets users revoke it', async () => {
    const line = await stage.auditLine('the end', ({ event, what }) => event === 'revocation' && what.name === 'short');
    const lateMs = Date.parse(String(line['time'])) - deadlineOf(short);
    assert.ok(lateMs < 2000, `${lateMs} ms late`);
  });

  it('grants nothing of that time once they are in force again, and all else as before', async () => {
    await stage.restoreWebhooks();
    await stage.policiesAre('in force');
    const sinceMs = Date.now();
    await inForce();
    assert.ok(Date.now() - sinceMs > 30_000, 'writes that the policies did not see may still come');
    await deniedWith(waiting, 'PoliciesMissing');
    const { status } = (await stage.read(open.kind, 'open')) as unknown as { status?: RequestStatus };
    assert.deepEqual(
      status?.extensions?.map(({ state }) => state),
      ['Refused'],
    );
    assert.equal(status?.ended, undefined);
    assert.deepEqual((await stage.children(open.metadata.uid)).map(({ kind }) => kind).sort(), ['Role', 'RoleBinding']);
    const theirs = await stage.templateReady('ExecAccessTemplate', 'theirs', false);
    assert.equal(conditionOf(theirs, 'AuthorHoldsRights')?.reason, 'PoliciesMissing');
    await stage.createReady(stage.alice, execRequest('afterwards', { templateName: 'extendable' }));
    const deleted = await stage.audit(({ event, verdict }) => event === 'policies' && verdict === 'deleted');
    assert.deepEqual(
      deleted.map(({ what }) => what.name),
      ['forged-extension-1'],
    );
    const granted = await stage.audit(
      ({ verdict, what }) => verdict === 'granted' && ['forged', 'without-leader', 'waiting'].includes(what.name ?? ''),
    );
    assert.deepEqual(granted, []);
    const lines = await stage.audit(({ event }) => event === 'policies');
    assert.equal(lines.at(-1)?.verdict, 'proven');
  });

  it('accepts a template of that time after its author writes it again', async () => {
    const change = { spec: { author: { username: 'me' } } };
    stored(await plane.call('PATCH', stage.urlOf('ExecAccessTemplate', 'theirs'), change));
    await stage.templateReady('ExecAccessTemplate', 'theirs');
  });

  it('has them in force at once after a restart, by its record', async () => {
    await stage.restart();
    await until('the policies to be in force', async () => (await readyz()).status === 200, { timeoutMs: 5000 });
    assert.equal(
      (await plane.call('GET', `/api/v1/namespaces/drawbridge-system/secrets/${policyRecordName}`)).status,
      200,
    );
  });
});

describe('templates that exist before the installation', function () {
  this.timeout(180_000);
  let plane: Plane;
  let stage: AccessStage;
  const namespace = 'existing';
  const podSpec = { containers: [{ name: 'sh', image: 'sh:1' }] };
  const stored = (name: string, spec: object = {}): Manifest => ({
    apiVersion: 'crds.wizardofoz.co/v1alpha1',
    kind: 'PodAccessTemplate',
    metadata: { name },
    spec: { accessConfig: { allowedGroups: ['devs'] }, podSpec, ...spec },
  });
  const urlOf = (name = ''): string => accessUrl('PodAccessTemplate', namespace, name);
  const authorIs = async (name: string, reason: string): Promise<void> => {
    let last: unknown;
    const isSo = async (): Promise<boolean> => {
      const { body } = await plane.call('GET', urlOf(name));
      last = conditionOf(body as StoredRequest, 'AuthorHoldsRights')?.reason;
      return last === reason;
    };
    await until(`the author of ${name} to be ${reason}`, isSo, { timeoutMs: 30_000 }).catch((error: Error) =>
      assert.fail(`${error.message}, not ${last}`),
    );
  };

  before(async () => {
    plane = await startPlane({ onProgress: (line) => console.error(line) });
    await plane.kubectl(['apply', '-f', 'charts/drawbridge/files/crds']);
    await plane.call('POST', '/api/v1/namespaces', { metadata: { name: namespace } });
    const existing = [
      stored('plain'),
      stored('privileged', { allowPrivilegedPod: true }),
      stored('signed', { author: { ...forged, username: 'admin', groups: ['system:masters'] } }),
    ];
    for (const manifest of existing) {
      const isStored = async (): Promise<boolean> => (await plane.call('POST', urlOf(), manifest)).status === 201;
      await until('the API server to serve the kind', isStored, { timeoutMs: 30_000, everyMs: 100 });
    }
    stage = await AccessStage.open({ on: plane });
  });
  after(async () => {
    await stage?.close();
    await plane?.stop();
  });

  it('have no author whom the server knows', async () => {
    await authorIs('plain', 'AuthorUnknown');
    await authorIs('privileged', 'AuthorUnknown');
    await authorIs('signed', 'PoliciesMissing');
  });

  it('are trusted if they say so and hand out no privilege, and if they name no author', async () => {
    await stage.stop();
    const flags = ['--trust-existing-templates=true'];
    await stage.start({ installation: stage.server.installation, flags });
    await authorIs('plain', 'Success');
    await authorIs('privileged', 'AuthorUnknown');
    await authorIs('signed', 'PoliciesMissing');
  });

  it('are accepted from a user with all the permissions who writes the author', async () => {
    await stage.restart();
    await authorIs('plain', 'AuthorUnknown');
    for (const name of ['plain', 'signed']) {
      const { status, body } = await plane.call('PATCH', urlOf(name), { spec: { author: { username: 'me' } } });
      assert.equal(status, 200, JSON.stringify(body));
      await authorIs(name, 'Success');
    }
  });
});
