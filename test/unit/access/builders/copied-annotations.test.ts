import assert from 'node:assert/strict';
import { copiedAnnotations } from '../../../../src/access/builders/pod-template-mutation.ts';

describe('the annotations that access pods get from their workload', () => {
  it('are all but those that others act upon', () => {
    const kept = { 'metrics.example.com/scrape': 'true', 'linkerd.io.example.com/x': 'y', note: '' };
    const left = {
      'iam.amazonaws.com/role': 'admin',
      'vault.hashicorp.com/agent-inject': 'true',
      'sidecar.istio.io/inject': 'true',
      'linkerd.io/inject': 'enabled',
    };
    assert.deepEqual(copiedAnnotations({ ...kept, ...left }), kept);
  });

  it('keep what is switched off switched off', () => {
    const annotations = { 'sidecar.istio.io/inject': 'false', 'linkerd.io/inject': 'disabled' };
    assert.deepEqual(copiedAnnotations(annotations), annotations);
  });

  for (const odd of [undefined, null, 'x', ['y'], JSON.parse('{"__proto__": "x"}')]) {
    it(`leave ${JSON.stringify(odd)} as it is`, () => assert.deepEqual(copiedAnnotations(odd), odd));
  }
});
