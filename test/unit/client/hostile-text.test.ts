import assert from 'node:assert/strict';
import { ScriptedCluster } from '../../support/scripted-cluster.ts';

const evil = 'a\u001b[2J\u009b31m\u202eb';
const forged = 'ok\ncarol: Approve looks good';
const request = (name: string, status: object = {}, spec: object = {}) => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessRequest',
  metadata: { name, namespace: 'payments', uid: name, resourceVersion: '1', creationTimestamp: '2026-11-21T09:00:00Z' },
  spec: { templateName: evil, reason: `${evil}${forged}`, requester: { username: evil }, ...spec },
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
      { ready: true, podName: evil, accessMessage: evil, grant: { expiresAt: 'x' } },
      { requester: { username: 'alice' } },
    ),
  ],
  podaccesstemplates: [template, { ...template, metadata: { ...template.metadata, name: evil } }],
  execaccesstemplates: [],
  execaccessrequests: [],
};

describe('the client with hostile objects and answers', () => {
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
    ['drop', 'open', 'waits'],
    ['request', 'pod', evil, '--no-wait'],
    ['explain', 'shell'],
    ['get', evil],
    [evil],
    ['list', `--${evil}`],
    ['audit', 'verify', evil],
    ['audit', 'verify', evil, '--heads', evil, '-o', 'json'],
    ['version'],
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
      const { stdout, stderr } = await cluster.run(argv);
      await cluster.close();
      assert.notEqual(stdout + stderr, '');
      assert.doesNotMatch(stdout + stderr, /[^\P{Cc}\t\n]|[\p{Cf}\p{Zl}\p{Zp}]/u);
      assert.doesNotMatch(stdout + stderr, /^\W*carol: Approve/m);
    });
  }

  it('prints a vote or a reason on the line where it belongs', async () => {
    const cluster = await ScriptedCluster.open(objects);
    const { stdout } = await cluster.run(['get', 'waits']);
    await cluster.close();
    assert.match(stdout, /^ +a\?\[2J\?31m\?b: Approve ok\?carol: Approve looks good$/m);
  });
});
