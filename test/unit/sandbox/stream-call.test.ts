import assert from 'node:assert/strict';
import { streamCall } from '../../../sandbox/conformance/stream-call.ts';

const global = ['--server=https://api', '--kubeconfig=/k', '--namespace=shop'];

describe('a call of kubectl that opens a stream', () => {
  const rows: [line: string, pod: string, namespace: string][] = [
    ['exec web -- echo cp', 'web', 'shop'],
    ['exec --pod-running-timeout=2m0s pod/web -i -c app -- cat', 'web', 'shop'],
    ['exec -c app -i web cat', 'web', 'shop'],
    ['attach -n other web -i', 'web', 'other'],
    ['cp other/web:/file /local', 'web', 'other'],
    ['cp /local web:/file', 'web', 'shop'],
    ['port-forward --address=127.0.0.1 pod/web :80', 'web', 'shop'],
  ];
  for (const [line, pod, namespace] of rows) {
    it(`${line}: pod ${pod} in ${namespace}`, () => {
      const call = streamCall([...global, ...line.split(' ')]);
      assert.deepEqual([call?.pod, call?.namespace, call?.server], [pod, namespace, 'https://api']);
      assert.deepEqual(call?.rest, [...global.slice(1), ...line.split(' ')]);
    });
  }

  it('takes the server of the last flag, as kubectl does', () => {
    const call = streamCall([...global, 'exec', '-s', 'http://127.0.0.1:8001', 'web', '--', 'id']);
    assert.equal(call?.server, 'http://127.0.0.1:8001');
    assert.deepEqual(call?.rest, ['--kubeconfig=/k', '--namespace=shop', 'exec', 'web', '--', 'id']);
  });

  it('is none if it runs another verb', () => {
    assert.equal(streamCall([...global, 'get', 'pods']), undefined);
    assert.equal(streamCall([...global, 'logs', 'exec']), undefined);
  });
});
