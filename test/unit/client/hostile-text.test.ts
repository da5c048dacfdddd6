import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ScriptedCluster } from '../../support/scripted-cluster.ts';
import { request as clientRequest } from './objects.ts';

const evil = 'a\u001b[2J\u009b31m\u202eb';
const forged = 'ok\ncarol: Approve looks good';
const request = (name: string, status: object, username = evil) => ({
  ...clientRequest(name, {}, { templateName: evil, reason: `${evil}${forged}`, requester: { username } }),
  status,
});
const waits = {
  approval: {
    state: 'Pending',
    all: [{ name: evil, have: 0, need: 1 }],
    votes: [{ voter: evil, decision: 'Approve', reason: forged }],
  },
  conditions: [{ type: 'AccessApproved', status: 'Unknown', reason: 'Pending', message: `${evil}${forged}` }],
};
const rules = [{ apiGroups: [evil], resources: [forged], verbs: ['get'] }];
const template = {
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name: 'shell', namespace: 'payments' },
  spec: {
    controllerTargetRef: { kind: 'Deployment', name: evil },
    accessConfig: { allowedGroups: [evil], rules, approvals: { all: [{ name: evil, groups: [forged] }] } },
  },
};
const objects = {
  podaccessrequests: [
    request('waits', waits),
    request(
      'open',
      { state: 'Open', ready: true, podName: evil, accessMessage: evil, grant: { expiresAt: 'x' } },
      'alice',
    ),
  ],
  podaccesstemplates: [template, { ...template, metadata: { ...template.metadata, name: evil } }],
  execaccesstemplates: [],
  execaccessrequests: [],
  clusterrolebindings: [
    {
      kind: 'ClusterRoleBinding',
      metadata: { name: evil },
      roleRef: { kind: 'ClusterRole', name: 'all' },
      subjects: [{ kind: 'User', name: `${evil}${forged}` }],
    },
  ],
  rolebindings: [],
  roles: [],
  clusterroles: [
    { kind: 'ClusterRole', metadata: { name: 'all' }, rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] },
  ],
  leases: [{ metadata: { name: 'drawbridge-access' }, spec: { holderIdentity: `${evil}${forged}` } }],
  validatingadmissionpolicies: [
    { metadata: { name: 'drawbridge-access' }, spec: { failurePolicy: `${evil}${forged}` } },
  ],
  validatingadmissionpolicybindings: [],
  mutatingwebhookconfigurations: [],
  validatingwebhookconfigurations: [],
  apiservicebindings: [
    {
      apiVersion: 'kube-bind.io/v1alpha2',
      kind: 'APIServiceBinding',
      metadata: { name: evil },
      status: {
        providerPrettyName: evil,
        conditions: [{ type: evil, status: 'False', reason: evil, message: `${evil}${forged}` }],
      },
    },
  ],
  clusterinventories: [
    {
      apiVersion: 'inventory.drawbridge.dev/v1alpha1',
      kind: 'ClusterInventory',
      metadata: { name: 'entry', namespace: evil },
      spec: { mode: evil },
      status: {
        waitingFor: `${evil}${forged}`,
        components: [{ name: evil, state: evil, since: evil, message: forged, missing: [{ path: evil }] }],
      },
    },
  ],
  reconcileruns: [
    { metadata: { name: 'run' }, spec: { entry: { name: 'entry' }, component: evil, why: `${evil}${forged}` } },
  ],
};

const journalLine = (event: string, fields: object): string =>
  JSON.stringify({
    chain: evil,
    seq: 1,
    time: '2026-11-21T09:00:00Z',
    event,
    who: { user: `${evil}${forged}`, groups: [evil] },
    what: { operation: 'CREATE', kind: 'PodAccessRequest', namespace: 'payments', name: evil, uid: evil },
    template: 'shell',
    templateUid: evil,
    request: evil,
    pod: evil,
    code: evil,
    reason: `${evil}${forged}`,
    expiresAt: `${evil}${forged}`,
    ...fields,
  });
const journal = [
  journalLine('grant', { verdict: 'granted', votes: [{ voter: evil, onBehalfOf: forged }] }),
  journalLine('revocation', { verdict: 'revoked' }),
  journalLine('admission', { verdict: 'allowed' }),
  journalLine('exec', { verdict: evil }),
].join('\n');

describe('the client with hostile objects and answers', () => {
  let directory: string;
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'drawbridge-hostile-'));
    writeFileSync(join(directory, 'JOURNAL'), journal);
  });
  after(() => rmSync(directory, { recursive: true }));

  const lines: readonly (readonly string[])[] = [
    ['templates', '-o', 'wide'],
    ['list', '--everyone', '-o', 'wide'],
    ['pending'],
    ['get', 'waits'],
    ['show', 'waits'],
    ['show', 'open'],
    ['who', '-o', 'wide'],
    ['approvers', 'shell'],
    ['approve', 'waits'],
    ['deny', 'waits', '-o', 'yaml'],
    ['revoke', 'waits'],
    ['revoke', '--user', evil, '-o', 'json'],
    ['revoke', 'open', 'waits'],
    ['request', 'pod', evil, '--no-wait'],
    ['explain', 'shell'],
    ['get', evil],
    [evil],
    ['list', `--${evil}`],
    ['audit', 'verify', evil],
    ['audit', 'verify', evil, '--heads', evil, '-o', 'json'],
    ['version'],
    ['watch', 'open'],
    ['watch', 'waits', '--timeout', '1ms'],
    ['claim', 'waits', '--timeout', '1ms'],
    ['extend', 'open', '--by', '5m', '--timeout', '1ms'],
    ['who', '--journal', 'JOURNAL', '-o', 'wide'],
    ['audit', 'verify', 'JOURNAL', '--heads', 'JOURNAL'],
    ['audit', 'report', 'JOURNAL', '-o', 'wide'],
    ['audit', 'report', 'JOURNAL', '-o', 'csv'],
    ['audit', 'report', 'JOURNAL', '-o', 'name'],
    ['binding', 'status'],
    ['inventory', 'status', '-A'],
    ['inventory', 'why', 'entry'],
    ['doctor'],
    ['__complete', 'get', ''],
  ];
  for (const argv of lines) {
    it(`prints nothing that a terminal obeys: ${argv.map((word) => JSON.stringify(word)).join(' ')}`, async () => {
      const cluster = await ScriptedCluster.open(objects, ({ method, path }, answer) => {
        if (path === '/version') answer.json(200, { gitVersion: `${evil}${forged}` });
        else if (method === 'POST' && path.endsWith('accessrequests') && argv[0] === 'explain')
          answer.json(403, { kind: 'Status', code: 403, message: `admission webhook "x" denied the request: ${evil}` });
        else return false;
        return true;
      });
      const isFile = (word: string): boolean => /^[A-Z]+$/.test(word);
      const { stdout, stderr } = await cluster.run(argv.map((word) => (isFile(word) ? join(directory, word) : word)));
      await cluster.close();
      assert.notEqual(stdout + stderr, '');
      assert.doesNotMatch(stdout + stderr, /\r(?!\n)|[^\P{Cc}\t\r\n]|[\p{Cf}\p{Zl}\p{Zp}]/u);
      assert.doesNotMatch(stdout + stderr, /^\W*carol: Approve/m);
    });
  }

  it('prints a vote or a reason on the line where it belongs', async () => {
    const cluster = await ScriptedCluster.open(objects);
    const { stdout } = await cluster.run(['get', 'waits']);
    await cluster.close();
    assert.match(stdout, /^ +a\?\[2J\?31m\?b: Approve because "ok\\ncarol: Approve looks good"$/m);
  });
});
