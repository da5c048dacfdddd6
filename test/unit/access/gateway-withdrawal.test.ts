import assert from 'node:assert/strict';
import { withdrawalName } from '../../../src/access/gateway-withdrawal.ts';
import { gatewayApiService } from '../../../src/api/gateway/names.ts';
import type { ObjectMeta } from '../../../src/api/object.ts';
import { apiServices, configMaps, pods } from '../../../src/api/resources.ts';
import { TransportError } from '../../../src/kube/errors.ts';
import { LifecycleStage } from './lifecycle/lifecycle-stage.ts';

const namespace = 'drawbridge-system';
const record = { namespace, name: withdrawalName };
const spec = {
  group: 'gateway.drawbridge.dev',
  version: 'v1alpha1',
  service: { namespace, name: 'drawbridge-gateway', port: 443 },
};
const metadata = {
  name: gatewayApiService,
  labels: { 'helm.sh/chart': 'drawbridge-0.1.0' },
  annotations: { by: 'helm' },
};

describe('the APIService of the gateway', () => {
  let stage: LifecycleStage;
  beforeEach(async () => {
    stage = new LifecycleStage();
    await stage.start();
    apiServiceIs('True');
    podIs('True');
    await stage.clock.advance(10);
  });
  afterEach(() => stage.stop());

  const apiServiceIs = (
    available: string,
    more: { annotations?: Record<string, string>; caBundle?: string } = {},
  ): void => {
    const status = { conditions: [{ type: 'Available', status: available }] };
    stage.cluster.put(apiServices, {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { ...metadata, annotations: { ...metadata.annotations, ...more.annotations } },
      spec: { ...spec, ...(more.caBundle === undefined ? {} : { caBundle: more.caBundle }) },
      status,
    });
  };
  const podIs = (ready: string, more: Partial<ObjectMeta> = {}): void => {
    const labels = { 'app.kubernetes.io/name': 'drawbridge', 'app.kubernetes.io/component': 'gateway' };
    const status = { phase: 'Running', conditions: [{ type: 'Ready', status: ready }] };
    const name = { namespace, name: 'drawbridge-gateway-1' };
    stage.cluster.put(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...name, labels, ...more },
      spec: {},
      status,
    });
  };
  const gatewayDies = (): void => {
    podIs('False');
    apiServiceIs('False');
  };
  const exists = (): boolean => stage.cluster.find(apiServices, { name: gatewayApiService }) !== undefined;
  const withdrawn = async (): Promise<void> => {
    gatewayDies();
    await stage.clock.advance(121_000);
    assert.ok(!exists());
  };
  const recorded = (): unknown => (stage.cluster.find(configMaps, record)?.['data'] as object | undefined) ?? {};

  it('stays while a gateway is ready, without a call', async () => {
    stage.cluster.calls.length = 0;
    await stage.clock.advance(600_000);
    assert.ok(exists());
    assert.deepEqual(stage.cluster.calls, []);
  });

  it('goes two minutes after the last gateway, and comes back as it was with the next', async () => {
    gatewayDies();
    await stage.clock.advance(119_000);
    assert.ok(exists());
    await stage.clock.advance(1100);
    assert.ok(!exists());
    podIs('True');
    await stage.clock.advance(100);
    const restored = stage.cluster.find(apiServices, { name: gatewayApiService });
    assert.deepEqual(
      [restored?.spec, restored?.metadata.labels, restored?.metadata.annotations],
      [spec, metadata.labels, metadata.annotations],
    );
    assert.deepEqual(recorded(), {});
  });

  for (const [whose, certificates, annotations, restored] of [
    ['with the authority that an administrator chose', 'files', {}, 'QQ=='],
    ['without the authority that the gateway writes', 'own', {}, undefined],
    ['without the authority that cert-manager writes', 'files', { 'cert-manager.io/inject-ca-from': 'a/b' }, undefined],
  ] as const) {
    it(`comes back ${whose}`, async () => {
      await stage.stop();
      stage.certificates = certificates;
      await stage.start();
      podIs('False');
      apiServiceIs('False', { annotations, caBundle: 'QQ==' });
      await stage.clock.advance(121_000);
      assert.ok(!exists());
      podIs('True');
      await stage.clock.advance(100);
      const after = stage.cluster.find(apiServices, { name: gatewayApiService });
      const caBundle = restored === undefined ? {} : { caBundle: restored };
      assert.deepEqual(
        [after?.spec, after?.metadata.annotations],
        [
          { ...spec, ...caBundle },
          { ...metadata.annotations, ...annotations },
        ],
      );
    });
  }

  it('stays away if another client deletes it while the leader withdraws it', async () => {
    stage.cluster.fault = ({ verb }) => {
      if (verb === 'delete') stage.cluster.drop(apiServices, { name: gatewayApiService });
    };
    gatewayDies();
    await stage.clock.advance(121_000);
    assert.deepEqual([exists(), recorded()], [false, {}]);
    podIs('True');
    await stage.clock.advance(1000);
    assert.ok(!exists());
  });

  it('comes back although the answer to its deletion was lost', async () => {
    stage.cluster.fault = ({ verb }) => {
      if (verb !== 'delete') return;
      stage.cluster.drop(apiServices, { name: gatewayApiService });
      throw new TransportError('no answer', undefined, false);
    };
    gatewayDies();
    await stage.clock.advance(130_000);
    assert.ok(!exists());
    podIs('True');
    await stage.clock.advance(1000);
    assert.ok(exists());
  });

  it('stays if a gateway is ready again within two minutes', async () => {
    gatewayDies();
    await stage.clock.advance(110_000);
    podIs('True');
    await stage.clock.advance(10);
    podIs('False');
    await stage.clock.advance(110_000);
    assert.ok(exists());
  });

  it('goes after 3 s if all gateways were scaled down, because the leader may be, too', async () => {
    podIs('True', { deletionTimestamp: '2026-11-21T09:00:00Z', deletionGracePeriodSeconds: 45 });
    await stage.clock.advance(2900);
    assert.ok(exists());
    await stage.clock.advance(200);
    assert.ok(!exists());
  });

  it('stays while its only gateway is replaced', async () => {
    podIs('True', { deletionTimestamp: '2026-11-21T09:00:00Z', deletionGracePeriodSeconds: 45 });
    await stage.clock.advance(1000);
    podIs('False');
    await stage.clock.advance(60_000);
    assert.ok(exists());
  });

  it('goes two minutes after another client created it again, if still no gateway is ready', async () => {
    gatewayDies();
    await stage.clock.advance(300_000);
    assert.ok(!exists());
    apiServiceIs('False');
    await stage.clock.advance(119_000);
    assert.ok(exists());
    await stage.clock.advance(2000);
    assert.ok(!exists());
  });

  it('comes back by a new leader, and goes by a new leader', async () => {
    await withdrawn();
    await stage.stop();
    podIs('True');
    await stage.start();
    await stage.clock.advance(100);
    assert.ok(exists());
    await stage.stop();
    gatewayDies();
    await stage.start();
    await stage.clock.advance(121_000);
    assert.ok(!exists());
  });

  it('stays away if another client deleted it', async () => {
    stage.cluster.drop(apiServices, { name: gatewayApiService });
    await stage.clock.advance(600_000);
    podIs('False');
    podIs('True');
    await stage.clock.advance(1000);
    assert.ok(!exists());
  });

  it('stays away if Helm installed it again before a gateway was ready, and then deleted it', async () => {
    await withdrawn();
    apiServiceIs('False');
    podIs('True');
    await stage.clock.advance(100);
    assert.deepEqual(recorded(), {});
    stage.cluster.drop(apiServices, { name: gatewayApiService });
    await stage.clock.advance(1000);
    assert.ok(!exists());
  });

  it('stays if a gateway outside of the cluster answers', async () => {
    stage.cluster.drop(pods, { namespace, name: 'drawbridge-gateway-1' });
    await stage.clock.advance(600_000);
    assert.ok(exists());
  });

  for (const [what, apiService] of [
    ['no JSON', '{'],
    ['no spec', '{"labels":{"a":"b"}}'],
    ['no object', '7'],
  ] as const) {
    it(`is not created from a record with ${what}, which is cleared`, async () => {
      stage.cluster.drop(apiServices, { name: gatewayApiService });
      const data = { apiService };
      stage.cluster.put(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: record, data });
      await stage.clock.advance(1000);
      assert.ok(!exists());
      assert.deepEqual(recorded(), {});
    });
  }
});
