import assert from 'node:assert/strict';
import { configMaps, secrets, serviceAccounts } from '../../../../src/api/resources.ts';
import { exemption } from '../../../../src/binding/claims/exemption.ts';

describe('an object that is never copied', () => {
  type Candidate = Parameters<typeof exemption>[1];
  const ordinary: Candidate = { key: 'team-a/creds', name: 'creds', labels: { app: 'kettle' }, type: 'Opaque' };
  const home = { ownNamespaces: new Set(['drawbridge-system']), isKubeconfig: (key: string) => key === 'team-b/acme' };
  const ours = { 'app.kubernetes.io/name': 'drawbridge' };
  const ofEntry = { 'inventory.drawbridge.dev/entry-uid': '1-2-3' };
  const cases: readonly [string, Parameters<typeof exemption>[0], Partial<Candidate>, RegExp | undefined][] = [
    ['the root certificate of every namespace', configMaps, { name: 'kube-root-ca.crt' }, /every namespace/],
    ['the default ServiceAccount', serviceAccounts, { name: 'default' }, /every namespace/],
    ['the token of a ServiceAccount', secrets, { type: 'kubernetes.io/service-account-token' }, /its own cluster/],
    ['the token of a new node', secrets, { type: 'bootstrap.kubernetes.io/token' }, /its own cluster/],
    ['a labeled kubeconfig', secrets, { labels: { 'kube-bind.io/provider-kubeconfig': 'true' } }, /kubeconfig/],
    ['a kubeconfig that a binding names', secrets, { key: 'team-b/acme' }, /kubeconfig/],
    ['any Secret in the namespace of our keys', secrets, { key: 'drawbridge-system/any' }, /keys of drawbridge/],
    ['any ConfigMap in the namespace of our keys', configMaps, { key: 'drawbridge-system/any' }, /drawbridg/],
    ['any ServiceAccount in the namespace of our keys', serviceAccounts, { key: 'drawbridge-system/any' }, /drawbridg/],
    ['a Secret of ours elsewhere', secrets, { labels: ours }, /belongs to drawbridge/],
    ['a ConfigMap of ours elsewhere', configMaps, { labels: ours }, /belongs to drawbridge/],
    ['the kubeconfig of an inventory entry', secrets, { labels: ofEntry }, /belongs to drawbridge/],
    ['the account of a component', serviceAccounts, { labels: ofEntry }, /belongs to drawbridge/],
    ['any other Secret', secrets, {}, undefined],
    ['a ConfigMap of that name', configMaps, { name: 'default', key: 'team-b/acme' }, undefined],
    ['a Secret of another program', secrets, { labels: { 'app.kubernetes.io/name': 'cafe' } }, undefined],
    ['a Secret that is named like our namespace', secrets, { key: 'team-a/drawbridge-system' }, undefined],
  ];
  for (const [what, resource, fields, expected] of cases) {
    it(`${expected ? 'is' : 'is not'} ${what}`, () => {
      const reason = exemption(resource, { ...ordinary, ...fields }, home);
      if (expected) assert.match(reason ?? '', expected);
      else assert.equal(reason, undefined);
    });
  }
});
