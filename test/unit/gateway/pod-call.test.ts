import assert from 'node:assert/strict';
import type { GrantedRule } from '../../../src/api/access/grant.ts';
import { decide, type Granted, isSubject, type ProxyCall } from '../../../src/gateway/pod-call.ts';

const rule = (resource: string, ...verbs: string[]): GrantedRule => ({
  apiGroups: [''],
  resources: [resource],
  resourceNames: ['web-0'],
  verbs,
});
const granted: Granted = {
  namespace: 'payments',
  name: 'debug-1a2b3c4d-access',
  subjects: [{ kind: 'User', name: 'alice' }],
  pod: 'web-0',
  rules: [rule('pods', 'get', 'list', 'watch'), rule('pods/exec', 'get', 'create'), rule('pods/log', 'get')],
};
const pods = '/api/v1/namespaces/payments/pods';

function call(path: string, over: Partial<Omit<ProxyCall, 'query'>> = {}): ProxyCall {
  const [before = '', query = ''] = path.split('?');
  return { method: 'GET', path: before, query: new URLSearchParams(query), upgrade: undefined, ...over };
}
const upgrade = { upgrade: 'websocket' };
const stream = (path: string) => call(path, upgrade);
const codeOf = (asked: ProxyCall, over: Partial<Granted> = {}): string => {
  const decision = decide(asked, { ...granted, ...over });
  return decision.kind === 'refusal' ? `${decision.refusal.status} ${decision.refusal.code}` : decision.kind;
};

describe('what a grant lets its subject call through the gateway', () => {
  const forwarded: readonly [string, ProxyCall, string][] = [
    ['the pod', call(`${pods}/web-0`), `${pods}/web-0`],
    ['the list of pods, of which it shows its own', call(pods), `${pods}?fieldSelector=metadata.name%3Dweb-0`],
    [
      'a list that selects another pod, of which it shows its own',
      call(`${pods}?fieldSelector=metadata.name%3Dother&limit=500`),
      `${pods}?fieldSelector=metadata.name%3Dweb-0&limit=500`,
    ],
    [
      'a list that selects twice',
      call(`${pods}?fieldSelector=metadata.name%3Dweb-0&fieldSelector=metadata.name%3Dother`),
      `${pods}?fieldSelector=metadata.name%3Dweb-0`,
    ],
    ['its log', call(`${pods}/web-0/log?follow=true&tailLines=5`), `${pods}/web-0/log?follow=true&tailLines=5`],
    ['the version of the API server', call('/version'), '/version'],
  ];
  for (const [what, asked, target] of forwarded) {
    it(`reads ${what}`, () => {
      const decision = decide(asked, granted);
      assert.equal(decision.kind === 'read' && decision.target, target);
    });
  }

  for (const [asked, follows] of [
    [`${pods}?watch=true`, true],
    [`${pods}?watch=1`, true],
    [`${pods}?watch=false`, false],
    [`${pods}?watch=FALSE`, false],
    [`${pods}?watch=0`, false],
    [`${pods}?watch`, true],
    [`${pods}/web-0/log?follow=true`, true],
    [`${pods}/web-0/log`, false],
  ] as const) {
    it(`${asked} ${follows ? 'may last' : 'ends by itself'}`, () => {
      const decision = decide(call(asked), granted);
      assert.equal(decision.kind === 'read' && decision.follows, follows);
    });
  }

  it('opens exec with its options', () => {
    const decision = decide(
      stream(`${pods}/web-0/exec?command=sh&command=-c&container=app&stdin=true&stdout=true&tty=true`),
      granted,
    );
    assert.ok(decision.kind === 'stream');
    assert.deepEqual(decision.options, {
      container: 'app',
      stdin: true,
      stdout: true,
      stderr: false,
      tty: true,
      command: ['sh', '-c'],
    });
  });

  const parameters: readonly [what: string, target: string, names: readonly string[]][] = [
    ['a read of the pod', `${pods}/web-0`, ['includeObject', 'pretty', 'resourceVersion', 'timeout']],
    [
      'a list of pods',
      pods,
      [
        ...['allowWatchBookmarks', 'continue', 'fieldSelector', 'includeObject', 'labelSelector', 'limit', 'pretty'],
        ...['resourceVersion', 'resourceVersionMatch', 'sendInitialEvents', 'shardSelector', 'timeout'],
        ...['timeoutSeconds', 'watch'],
      ],
    ],
    [
      'a log',
      `${pods}/web-0/log`,
      [
        ...['container', 'follow', 'limitBytes', 'pretty', 'previous', 'sinceSeconds', 'sinceTime', 'stream'],
        ...['tailLines', 'timeout', 'timestamps'],
      ],
    ],
    ['exec', `${pods}/web-0/exec`, ['command', 'container', 'stderr', 'stdin', 'stdout', 'timeout', 'tty']],
    ['attach', `${pods}/web-0/attach`, ['container', 'stderr', 'stdin', 'stdout', 'timeout', 'tty']],
    ['port-forward', `${pods}/web-0/portforward`, ['ports', 'timeout']],
  ];
  for (const [what, target, names] of parameters) {
    for (const name of names) {
      it(`passes ${name} of ${what}`, () => {
        const upgrade = /exec|attach|portforward/.test(target) ? 'websocket' : undefined;
        const rules = ['exec', 'attach', 'portforward'].map((way) => rule(`pods/${way}`, 'create'));
        const decision = decide(call(`${target}?${name}=1`, { upgrade }), {
          ...granted,
          rules: [...granted.rules, ...rules],
        });
        assert.ok(decision.kind === 'read' || decision.kind === 'stream', JSON.stringify(decision));
        assert.equal(new URL(decision.target, 'https://x').searchParams.has(name), true);
      });
    }
  }

  for (const path of ['', '/api', '/api/v1', '/apis']) {
    it(`answers discovery at ${path || 'the root'}`, () => assert.equal(codeOf(call(path)), 'document'));
  }

  const refused: readonly [string, ProxyCall, string][] = [
    ['another pod', call(`${pods}/web-1`), '403 NotGranted'],
    ['exec into another pod', stream(`${pods}/web-1/exec?command=sh`), '403 NotGranted'],
    ['a pod whose name begins alike', stream(`${pods}/web-01/exec`), '403 NotGranted'],
    ['another namespace', call('/api/v1/namespaces/other/pods/web-0'), '403 NotGranted'],
    ['all namespaces', call('/api/v1/pods'), '403 NotGranted'],
    ['another kind', call('/api/v1/namespaces/payments/secrets/web-0'), '403 NotGranted'],
    ['another subresource', call(`${pods}/web-0/proxy`), '403 NotGranted'],
    ['below a subresource', stream(`${pods}/web-0/exec/x`), '403 NotGranted'],
    ['ephemeral containers', call(`${pods}/web-0/ephemeralcontainers`, { method: 'PATCH' }), '403 NotGranted'],
    ['a stream that the grant does not give', stream(`${pods}/web-0/portforward`), '403 NotGranted'],
    ['deletion', call(`${pods}/web-0`, { method: 'DELETE' }), '403 NotGranted'],
    ['creation', call(pods, { method: 'POST' }), '403 NotGranted'],
    ['an upgrade of a read', stream(`${pods}/web-0`), '403 NotGranted'],
    ['an upgrade of discovery', stream('/api'), '403 NotGranted'],
    ['exec without an upgrade', call(`${pods}/web-0/exec?command=sh`), '400 WebSocketRequired'],
    ['exec by SPDY', call(`${pods}/web-0/exec`, { method: 'POST', upgrade: 'spdy/3.1' }), '400 WebSocketRequired'],
    ['a POST that upgrades', call(`${pods}/web-0/exec`, { ...upgrade, method: 'POST' }), '400 WebSocketRequired'],
    ['an unknown parameter of exec', stream(`${pods}/web-0/exec?user=root`), '400 NotServed'],
    ['a log without certificate check', call(`${pods}/web-0/log?insecureSkipTLSVerifyBackend=true`), '400 NotServed'],
  ];
  for (const [what, asked, code] of refused) it(`refuses ${what}`, () => assert.equal(codeOf(asked), code));

  it('says what the grant gives', () => {
    const decision = decide(call(`${pods}/web-1`), granted);
    assert.ok(decision.kind === 'refusal');
    assert.match(
      decision.refusal.message,
      /^GET ".*\/web-1" is not part of grant .*; it gives get, list, watch on pods; .* for pod web-0/,
    );
  });

  it('needs the verb create for streams', () => {
    assert.equal(codeOf(stream(`${pods}/web-0/exec`), { rules: [rule('pods/exec', 'get')] }), '403 NotGranted');
    assert.equal(codeOf(stream(`${pods}/web-0/exec`), { rules: [rule('pods/exec', 'create')] }), 'stream');
  });
});

describe('a subject of a grant', () => {
  const alice = { username: 'alice', uid: '', groups: ['devs'] };
  it('is the user by name', () => {
    assert.equal(isSubject(granted, alice), true);
    assert.equal(isSubject(granted, { ...alice, username: 'Alice' }), false);
  });
  it('is never a group, even if the grant names one', () => {
    assert.equal(isSubject({ ...granted, subjects: [{ kind: 'Group', name: 'devs' }] }, alice), false);
    assert.equal(isSubject(granted, { username: 'x', uid: '', groups: ['alice', 'system:masters'] }), false);
  });
});
