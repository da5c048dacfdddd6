import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { accessSessions } from '../../../src/api/access/access-session.ts';
import { AccessGateway } from '../../support/access-gateway.ts';
import { conditionOf, execRequest, type StoredRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Client } from '../../support/client.ts';
import { Person } from '../../support/person.ts';

const rbac = 'rbac.authorization.k8s.io';

describe('an emergency whose recording is lost', () => {
  let stage: AccessStage;
  let gateway: AccessGateway;
  let client: Client;
  let dave: Person;
  let request: StoredRequest;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    // Without a folder for recordings, each one is lost at its start.
    gateway = await AccessGateway.open(stage);
    client = new Client(stage);
    dave = await Person.of(stage.plane, 'dave', ['oncall']);
    await stage.apply(
      {
        apiVersion: `${rbac}/v1`,
        kind: 'RoleBinding',
        metadata: { name: 'oncall' },
        roleRef: { apiGroup: rbac, kind: 'Role', name: 'request-access' },
        subjects: [{ apiGroup: rbac, kind: 'Group', name: 'oncall' }],
      },
      {
        apiVersion: `${rbac}/v1`,
        kind: 'RoleBinding',
        metadata: { name: 'approve' },
        roleRef: { apiGroup: rbac, kind: 'Role', name: 'approve' },
        subjects: [{ apiGroup: rbac, kind: 'User', name: 'bob' }],
      },
      {
        apiVersion: `${rbac}/v1`,
        kind: 'Role',
        metadata: { name: 'approve' },
        rules: [
          {
            apiGroups: ['crds.wizardofoz.co'],
            resources: ['execaccesstemplates', 'podaccesstemplates'],
            verbs: ['get', 'list', 'approve'],
          },
          {
            apiGroups: ['crds.wizardofoz.co'],
            resources: ['execaccessrequests', 'podaccessrequests'],
            verbs: ['get', 'list'],
          },
        ],
      },
      {
        apiVersion: 'crds.wizardofoz.co/v1alpha1',
        kind: 'ExecAccessTemplate',
        metadata: { name: 'watched' },
        spec: {
          accessConfig: {
            allowedGroups: ['devs'],
            approvals: { all: [{ name: 'peer', count: 1 }] },
            emergency: { groups: ['oncall'], maxDuration: '10m', reviewWithin: '1h' },
            session: { via: 'Gateway', record: 'BestEffort' },
          },
          controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
        },
      },
    );
    await stage.templateReady('ExecAccessTemplate', 'watched');
    const asked = { templateName: 'watched', emergency: true, reason: 'the database does not answer' };
    request = await stage.createReady(dave, execRequest('urgent', asked));
  });
  after(async () => {
    await gateway?.close();
    await stage?.close();
  });

  it('lets its user work, and shows the loss to those who review it, at once and after its end', async () => {
    const name = request.metadata.name;
    const shell = await client.run(dave, 'exec', name, '--', 'sh', '-c', 'echo in');
    assert.deepEqual([shell.stdout, shell.code], ['in\n', 0], shell.stderr);
    let shown: ReturnType<typeof conditionOf>;
    await until(
      'the condition',
      async () => {
        const stored = await stage.read('ExecAccessRequest', name);
        shown = stored && conditionOf(stored, 'RecordingLost');
        return shown !== undefined;
      },
      { timeoutMs: 30_000 },
    );
    const [opened] = await gateway.process.audit((line) => line.verdict === 'opened' && line['request'] === name);
    assert.equal(shown?.status, 'True');
    assert.match(shown?.message ?? '', new RegExp(`the recording of session ${opened?.['session']} was lost at 20`));
    await client.run(dave, 'drop', name);
    await until(
      'the owed review',
      async () => /ReviewOwed/.test(JSON.stringify((await stage.read('ExecAccessRequest', name))?.status)),
      { timeoutMs: 30_000 },
    );
    const pending = await client.run(stage.bob, 'pending');
    assert.match(pending.stdout, /urgent .* Review \(RecordingLost\) /, pending.stderr);
    const details = await client.run(stage.bob, 'show', name);
    assert.match(details.stdout, /^Recording: +the recording of session /m, details.stderr);
    const described = await stage.kubectl('describe', 'ear', name);
    assert.match(described, /the recording of session/);
  });

  it('leaves no AccessSession behind', async () => {
    const isGone = async (): Promise<boolean> => {
      const path = `/apis/access.drawbridge.dev/v1alpha1/namespaces/${stage.namespace}/${accessSessions.plural}`;
      return ((await stage.plane.probe(path)).body as { items: unknown[] }).items.length === 0;
    };
    await until('the AccessSessions to go', isGone, { timeoutMs: 30_000 });
  });
});
