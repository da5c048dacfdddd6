import assert from 'node:assert/strict';
import { createAuthority } from '../../../sandbox/pki.ts';
import { type FrontProxy, frontProxyOf, frontProxyProblem, openFrontProxy } from '../../../src/gateway/front-proxy.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { InformerStore } from '../../../src/kube/informer-store.ts';
import { silentLog } from '../../../src/kube/log.ts';
import type { StoreSpec } from '../../../src/kube/store.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';

const [frontProxy, users] = ['front-proxy', 'users'].map((name) => createAuthority(name).certificate);

/** The store with the ConfigMap that the API server publishes; without data, it publishes none. */
function storeWith(data?: Readonly<Record<string, string | undefined>>) {
  let store: InformerStore<FrontProxy> | undefined;
  const watch = (spec: StoreSpec<FrontProxy>) => {
    store = new InformerStore(spec, new SimulatedClock(), silentLog);
    return { store, release: () => {} };
  };
  const opened = openFrontProxy({ watch } as unknown as Cluster);
  const metadata = {
    name: 'extension-apiserver-authentication',
    namespace: 'kube-system',
    uid: 'u',
    resourceVersion: '1',
  };
  if (data) store?.apply('ADDED', { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }, '1');
  return opened;
}

const published = {
  'client-ca-file': users,
  'requestheader-client-ca-file': frontProxy,
  'requestheader-allowed-names': '["front-proxy-client"]',
  'requestheader-username-headers': '["X-Remote-User"]',
  'requestheader-group-headers': '["X-Remote-Group"]',
};

describe('how the API server identifies itself', () => {
  it('is read from the ConfigMap that it publishes', () => {
    const settings = frontProxyOf(storeWith(published));
    assert.deepEqual(settings?.names, ['front-proxy-client']);
    assert.deepEqual(settings?.headers, { username: ['x-remote-user'], uid: [], groups: ['x-remote-group'] });
    assert.equal(settings?.problem, undefined);
  });

  const safe: readonly [string, Record<string, string | undefined>][] = [
    ['any name is allowed, and the authority signs no users', { 'requestheader-allowed-names': '[]' }],
    ['names are allowed, and the authority signs users, too', { 'client-ca-file': frontProxy }],
    ['there is no authority of users', { 'client-ca-file': undefined, 'requestheader-allowed-names': undefined }],
  ];
  for (const [what, over] of safe) {
    it(`is trusted if ${what}`, () => assert.equal(frontProxyProblem(storeWith({ ...published, ...over })), undefined));
  }

  const unsafe: readonly [string, Record<string, string | undefined>, RegExp][] = [
    [
      'any name is allowed, and the authority also signs users',
      { 'requestheader-allowed-names': '[]', 'client-ca-file': `${users}\n${frontProxy}` },
      /any user could pose as the API server; set --requestheader-allowed-names/,
    ],
    ['there is no authority', { 'requestheader-client-ca-file': undefined }, /enable the aggregation layer/],
    ['the authority is no certificate', { 'requestheader-client-ca-file': 'x' }, /has no certificate/],
    ['the names are no list', { 'requestheader-allowed-names': '"x"' }, /not a JSON list of strings/],
    ['the names are no JSON', { 'requestheader-allowed-names': 'x' }, /not a JSON list of strings/],
  ];
  for (const [what, over, problem] of unsafe) {
    it(`is not trusted if ${what}`, () => {
      const store = storeWith({ ...published, ...over });
      assert.match(frontProxyProblem(store) ?? '', problem);
      assert.equal(frontProxyOf(store)?.problem, frontProxyProblem(store));
    });
  }

  it('is not trusted until it was read', () => {
    assert.match(frontProxyProblem(storeWith()) ?? '', /, and that the ServiceAccount of the gateway may watch it$/);
  });
});
