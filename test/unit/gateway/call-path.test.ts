import assert from 'node:assert/strict';
import { readCall } from '../../../src/gateway/call-path.ts';

const prefix = '/apis/gateway.drawbridge.dev/v1alpha1/namespaces/payments/grants/debug-1a2b3c4d-access/proxy';

describe('the path of a call of the gateway', () => {
  const proxied: readonly [target: string, path: string][] = [
    [prefix, ''],
    [`${prefix}/`, ''],
    [
      `${prefix}/api/v1/namespaces/payments/pods/web-0/exec?command=a%2Fb`,
      '/api/v1/namespaces/payments/pods/web-0/exec',
    ],
  ];
  for (const [target, path] of proxied) {
    it(`${target} names a grant and ${path || 'nothing'} below it`, () => {
      const call = readCall(target);
      assert.ok(call?.kind === 'proxy');
      assert.deepEqual([call.namespace, call.grant, call.path], ['payments', 'debug-1a2b3c4d-access', path]);
    });
  }

  it('may have an encoded query, whose values are decoded', () => {
    const call = readCall(`${prefix}/api?command=a%2Fb&command=c+d`);
    assert.deepEqual(call?.kind === 'proxy' && call.query.getAll('command'), ['a/b', 'c d']);
  });

  const session = '0b0f8f2e-7f2a-4a52-8d0a-3f6c1d2e9a10';
  const namespaced = prefix.slice(0, prefix.indexOf('/grants/'));
  for (const kind of ['session', 'recording'] as const) {
    it(`may name a ${kind}`, () =>
      assert.deepEqual(readCall(`${namespaced}/${kind}s/${session}/log?follow=true`), {
        kind,
        name: { namespace: 'payments', session },
      }));
  }

  for (const path of [
    '/apis',
    '/apis/gateway.drawbridge.dev',
    '/apis/gateway.drawbridge.dev/v1alpha1',
    '/openapi/v2',
  ]) {
    it(`${path} names a document`, () => assert.deepEqual(readCall(path), { kind: 'document', path }));
  }

  const refused = [
    '',
    '*',
    'apis',
    '/',
    '//apis',
    `${prefix}/..%2f..%2fother/proxy/api`,
    `${prefix}/%2e%2e/x`,
    `${prefix}/../other`,
    `${prefix}/./api`,
    `${prefix}//api`,
    `${prefix}/.hidden`,
    `${prefix}/api\\v1`,
    `${prefix}/api v1`,
    `${prefix}/äpi`,
    prefix.replace('payments', 'Payments'),
    prefix.replace('payments', ''),
    prefix.replace('debug-1a2b3c4d-access', ''),
    prefix.replace('/proxy', '/status'),
    prefix.replace('/proxy', ''),
    `${prefix}y`,
    prefix.replace('v1alpha1', 'v1'),
    `/apis/gateway.drawbridge.dev/v1alpha1/namespaces/${'a'.repeat(64)}/grants/g/proxy`,
    `https://elsewhere${prefix}`,
    '/a/b/c/d/e',
    `${namespaced}/sessions/${session}`,
    `${namespaced}/sessions/${session}/proxy`,
    `${namespaced}/sessions/${session}/log/`,
    `${namespaced}/sessions/${session}/log/more`,
    `${namespaced}/sessions/${session.toUpperCase()}/log`,
    `${namespaced}/sessions/all/log`,
    `${namespaced}/recordings/${session}.cast/log`,
    `${namespaced}/recordings/${session}%00/log`,
    `${namespaced}/recordings/../log`,
    `${namespaced}/recordings/..%2f${session}/log`,
    `${namespaced.replace('payments', '-payments')}/recordings/${session}/log`,
    `${namespaced}/session/${session}/log`,
    `/apis/gateway.drawbridge.dev/v1alpha1/sessions/${session}/log`,
  ];
  for (const target of refused) {
    it(`${JSON.stringify(target)} is refused`, () => assert.equal(readCall(target), undefined));
  }
});
