import assert from 'node:assert/strict';
import { exits } from '../../src/client/command-spec.ts';
import type { StoredRequest } from '../support/access-requests.ts';
import { installLimitMs, NodeStage } from '../support/node-stage.ts';

interface Death {
  readonly title: string;
  readonly name: string;
  /** `controllerTargetMutationConfig` of the template. */
  readonly config: object;
  /** What the client says. */
  readonly says: RegExp;
}

const replaceImage = { op: 'replace', path: '/spec/containers/0/image', value: 'localhost/absent:1' };
/** Otherwise the kubelet starts the container again and again, and the Pod lives on. */
const patchSpecOperations = [{ op: 'add', path: '/spec/restartPolicy', value: 'Never' }];
const outOfMemory = { command: ['sh', '-c', 'sleep 2; tail /dev/zero'], resources: { limits: { memory: '16Mi' } } };

const deaths: readonly Death[] = [
  {
    title: 'was evicted',
    name: 'evicted',
    config: {
      command: ['sh', '-c', 'head -c 50000000 /dev/zero > /tmp/big; sleep 3600'],
      resources: { limits: { 'ephemeral-storage': '10Mi' } },
    },
    says: /its pod has ended: Failed: Evicted: /,
  },
  {
    title: 'ran out of memory',
    name: 'oom-killed',
    config: { ...outOfMemory, patchSpecOperations },
    says: /its pod has ended: Failed: .*OOMKilled/,
  },
  {
    title: 'completed',
    name: 'completed',
    config: { command: ['sleep', '2'], patchSpecOperations },
    says: /its pod has ended: Succeeded/,
  },
];

const stuck: readonly Death[] = [
  {
    title: 'has an image that the node cannot pull',
    name: 'unpullable',
    config: { command: ['sh'], patchSpecOperations: [replaceImage] },
    says: /ImagePullBackOff: .*kubectl describe pod/,
  },
  {
    title: 'fits on no node',
    name: 'unschedulable',
    config: { command: ['sh'], nodeSelector: { absent: 'true' } },
    says: /not scheduled: .*didn't match.*kubectl describe pod/,
  },
];

/** A command that ends only with its Pod. */
const forever = ['--', 'sleep', '600'];
const endLimitMs = 5_000;

describe('access to a Pod that', function () {
  this.timeout(120_000);
  let stage: NodeStage;

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.open();
    await stage.apply(...[...deaths, ...stuck].map(({ name, config }) => templateOf(name, config)));
    await stage.templatesReady();
  });
  after(async () => {
    await stage.deleteRequests();
    for (const { name } of [...deaths, ...stuck])
      await stage.sh(`kubectl delete podaccesstemplate ${name} -n payments`);
  });

  for (const { title, name, says } of deaths) {
    it(`${title} ends, and the client says why`, async () => {
      const { ended } = stage.client.start(stage.alice, 'request', 'pod', name, '--for', '10m', '--exec', ...forever);
      const request = await requestOf(name);
      await stage.request('PodAccessRequest', request, ({ status }) => status?.ended !== undefined, 60_000);
      const startedMs = Date.now();
      const { code, stderr } = await ended;
      assert.ok(Date.now() - startedMs < endLimitMs, 'the command ends with its Pod');
      assert.notEqual(code, 0);
      assert.match(stderr, says);
      const again = await stage.client.run(stage.alice, 'exec', request);
      assert.equal(again.code, exits.ended);
      assert.match(again.stderr, says);
    });
  }

  for (const { title, name, says } of stuck) {
    it(`${title} waits, and the client shows why`, async () => {
      const running = stage.client.start(stage.alice, 'request', 'pod', name, '--for', '10m', '--exec');
      const request = await requestOf(name);
      await stage.lateness('the client to say why', Date.now(), () => says.test(running.soFar().stderr));
      const { status } = await stage.request('PodAccessRequest', request, () => true);
      assert.notEqual(status?.ready, true);
      running.kill('SIGINT');
      await running.ended;
    });
  }

  const requestOf = async (template: string): Promise<string> => {
    let name = '';
    await stage.lateness('the request', Date.now(), async () => {
      const { body } = await stage.node.probe(
        '/apis/crds.wizardofoz.co/v1alpha1/namespaces/payments/podaccessrequests',
      );
      const { items } = body as { items: StoredRequest[] };
      name = items.find(({ spec }) => spec?.['templateName'] === template)?.metadata.name ?? '';
      return name !== '';
    });
    return name;
  };
});

const templateOf = (name: string, controllerTargetMutationConfig: object): object => ({
  apiVersion: 'crds.wizardofoz.co/v1alpha1',
  kind: 'PodAccessTemplate',
  metadata: { name, namespace: 'payments' },
  spec: {
    accessConfig: { allowedGroups: ['devs'], defaultDuration: '10m', maxDuration: '1h' },
    controllerTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'payments' },
    controllerTargetMutationConfig,
  },
});
