import assert from 'node:assert/strict';
import { programsFromEnvironment } from '../../../../sandbox/build/binaries.ts';

describe('programs from the environment', () => {
  const cases: { readonly env: Record<string, string>; readonly expected: object }[] = [
    { env: {}, expected: {} },
    { env: { KUBEBUILDER_ASSETS: '/a' }, expected: { etcd: '/a/etcd', 'kube-apiserver': '/a/kube-apiserver' } },
    { env: { TEST_ASSET_ETCD: '/e' }, expected: { etcd: '/e' } },
    {
      env: { KUBEBUILDER_ASSETS: '/a', TEST_ASSET_KUBE_APISERVER: '/k' },
      expected: { etcd: '/a/etcd', 'kube-apiserver': '/k' },
    },
  ];
  for (const { env, expected } of cases) {
    it(`are ${JSON.stringify(expected)} for ${JSON.stringify(env)}`, () =>
      assert.deepEqual(programsFromEnvironment(env), expected));
  }
});
