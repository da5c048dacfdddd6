import assert from 'node:assert/strict';
import { until } from '../../../sandbox/wait.ts';
import { apiServiceBindingKind } from '../../../src/api/binding/api-service-binding.ts';
import { clusterInventoryKind } from '../../../src/api/inventory/cluster-inventory.ts';
import { reconcileRunKind } from '../../../src/api/inventory/reconcile-run.ts';
import { customResourceDefinition } from '../../../src/api/schema/crd.ts';
import type { Kind } from '../../../src/api/schema/kind.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { Client } from '../../support/client.ts';
import { commandsOf, runAsReader, scriptOf } from '../../support/page-commands.ts';

interface ComponentItem {
  readonly component: string;
  readonly next: string;
  readonly attempt: number;
  readonly suspended: boolean;
}

describe('drawbridge tells administrators', () => {
  let stage: AccessStage;
  let client: Client;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    client = new Client(stage);
  });
  after(() => stage?.close());

  const nameOf = ({ resource: { plural, group } }: Kind): string => `${plural}.${group}`;
  const install = async (...kinds: Kind[]): Promise<void> => {
    const input = kinds.map((kind) => JSON.stringify(customResourceDefinition(kind))).join('\n---\n');
    await stage.plane.kubectl(['apply', '-f', '-'], { input });
    // The API server serves a kind, and names it to kubectl, a moment after the CRD exists.
    const isKnown = async (): Promise<boolean> =>
      (await stage.plane.kubectl(['get', kinds.map(nameOf).join(','), '-A'], { reject: false })).code === 0;
    await until('kubectl to know the kinds', isKnown, { timeoutMs: 30_000 });
  };
  const uninstall = (...kinds: Kind[]) => stage.plane.kubectl(['delete', 'crd', ...kinds.map(nameOf)]);

  const [, ...doctor] = scriptOf('docs/tasks/install.md', 'drawbridge doctor').trim().split(' ');

  it('who can bypass it, and what works', async () => {
    await stage.kubectl('create', 'rolebinding', 'mallory', '--clusterrole=edit', '--user=mallory');
    const { code, stdout, stderr } = await client.run(client.admin, ...doctor);
    assert.equal(code, 1, stderr);
    const [again, objects = ''] = commandsOf('docs/tasks/troubleshoot-access.md', 'drawbridge doctor');
    assert.equal(again, `drawbridge ${doctor.join(' ')}`);
    await runAsReader({ plane: stage.plane, folder: stage.plane.directory }, objects);
    for (const check of ['CRDs', 'webhooks', 'webhooks answer', 'policies', 'clocks', 'nodes/proxy']) {
      assert.match(stdout, new RegExp(`^${check} +ok +`, 'm'));
    }
    const where = `in namespace ${stage.namespace} \\(RoleBinding ${stage.namespace}/mallory\\)`;
    assert.match(
      stdout,
      new RegExp(`^exec everywhere +found +User mallory can enter pods without a request ${where}$`, 'm'),
    );
    // Kubernetes and its controllers are not listed, but nothing is hidden only because its name looks like theirs.
    assert.doesNotMatch(stdout, / (Group|User|ServiceAccount) (system:|kube-system\/)/);
    const bindings = [
      ['everyone', '--group=system:authenticated'],
      ['helm', '--serviceaccount=kube-system:helm'],
    ] as const;
    for (const [name, subject] of bindings)
      await stage.plane.kubectl(['create', 'clusterrolebinding', name, '--clusterrole=cluster-admin', subject]);
    const bypassed = (await client.run(client.admin, ...doctor)).stdout;
    for (const [name] of bindings) await stage.plane.kubectl(['delete', 'clusterrolebinding', name]);
    for (const subject of ['Group system:authenticated', 'ServiceAccount kube-system/helm'])
      assert.match(bypassed, new RegExp(`^nodes/proxy +found +${subject} can enter every pod`, 'm'));
    await stage.kubectl('delete', 'rolebinding', 'mallory');
    assert.doesNotMatch((await client.run(client.admin, ...doctor)).stdout, /mallory/);
  });

  it('what entries of the inventory wait for, and why components ran', async () => {
    await install(clusterInventoryKind, reconcileRunKind);
    try {
      const group = 'inventory.drawbridge.dev/v1alpha1';
      await stage.apply({
        apiVersion: group,
        kind: 'ClusterInventory',
        metadata: { name: 'prod' },
        spec: { mode: 'managed' },
      });
      const since = '2026-11-21T09:00:00Z';
      const missing = [{ path: '/status/outputs/network/vnet', want: 'present' }];
      const message = 'shoot waits for network';
      const status = {
        waitingFor: 'shoot waits for…',
        components: [
          { name: 'shoot', state: 'NotReady', since, missing },
          { name: 'waits', state: 'NotReady', since, missing: [{ path: '/status/outputs/dns', want: 'absent' }] },
          {
            name: 'runs',
            state: 'Progressing',
            reason: 'Running',
            message: 'running since 9; last outcome: Done',
            since,
          },
          { name: 'next', state: 'Progressing', reason: 'InputsChanged', since },
          { name: 'byoc', state: 'NotApplicable', reason: 'NotApplicable', message: 'runs only in mode byoc', since },
        ],
        conditions: [{ type: 'Ready', status: 'False', reason: 'NotReady', message, lastTransitionTime: since }],
      };
      const patch = JSON.stringify({ status });
      await stage.kubectl('patch', 'clusterinventory', 'prod', '--subresource=status', '--type=merge', '-p', patch);
      const { metadata } = JSON.parse(await stage.kubectl('get', 'clusterinventory', 'prod', '-o', 'json'));
      const running = { phase: 'Running', startedAt: since, why: 'retry', attempt: 2 };
      for (const [component, spec] of [
        ['runs', { ...running, asynchronous: true, leaseUntil: '2026-11-21T09:01:00.000000Z' }],
        ['next', { phase: 'Idle', next: 'at 2026-11-21T10:00:00Z or earlier', why: 'interval passed' }],
      ] as const)
        await stage.apply({
          apiVersion: group,
          kind: 'ReconcileRun',
          metadata: { name: `prod.${component}` },
          spec: { entry: { name: 'prod', uid: metadata.uid }, component, ...spec },
        });
      const { code, stdout, stderr } = await client.run(client.admin, 'inventory', 'status');
      assert.equal(code, 1, stderr);
      assert.match(stdout, /^prod +managed +False +2026-11-21T09:00:00Z +shoot waits for network$/m);
      const wide = await client.run(client.admin, 'inventory', 'status', '-o', 'wide');
      assert.match(wide.stdout, /^prod +managed +False +\S+ +false +20\S+Z +shoot waits for network$/m);
      const why = await client.ok(client.admin, 'inventory', 'why', 'prod');
      for (const line of [
        /^shoot +NotReady +2026-11-21T09:00:00Z +- +- +waits for \/status\/outputs\/network\/vnet$/m,
        /^waits +NotReady +\S+ +- +- +waits for \/status\/outputs\/dns to be absent$/m,
        /^runs +Progressing +\S+ +running since 2026-11-21T09:00:00Z; without a report, it ends at about 2026-11-21T09:01:00Z +retry +running since 9; last outcome: Done$/m,
        /^next +Progressing +\S+ +at 2026-11-21T10:00:00Z or earlier +interval passed +InputsChanged: inputs or registration changed; a run is due or in progress$/m,
      ])
        assert.match(why, line);
      await stage.kubectl('patch', 'clusterinventory', 'prod', '--type=merge', '-p', '{"spec":{"suspend":true}}');
      const { items } = JSON.parse(await client.ok(client.admin, 'inventory', 'why', 'prod', '-o', 'json'));
      assert.deepEqual(
        (items as ComponentItem[]).map(({ component, next, attempt, suspended }) => [
          component,
          next,
          attempt,
          suspended,
        ]),
        [
          ['shoot', 'none: suspended by spec.suspend of the entry', 0, true],
          ['waits', 'none: suspended by spec.suspend of the entry', 0, true],
          [
            'runs',
            'running since 2026-11-21T09:00:00Z; without a report, it ends at about 2026-11-21T09:01:00Z',
            2,
            true,
          ],
          ['next', 'at 2026-11-21T10:00:00Z or earlier', 0, true],
          ['byoc', '', 0, true],
        ],
      );
      const none = await client.run(client.admin, 'inventory', 'why', 'none');
      assert.equal(none.code, 1);
      assert.match(none.stderr, /no entry none in namespace \S+; list entries with: drawbridge inventory status -n /);
    } finally {
      await uninstall(clusterInventoryKind, reconcileRunKind);
    }
  });

  it('the problems of bindings', async () => {
    await install(apiServiceBindingKind);
    try {
      const spec = { kubeconfigSecretRef: { name: 'provider', key: 'kubeconfig', namespace: 'kube-bind' } };
      const binding = {
        apiVersion: 'kube-bind.io/v1alpha2',
        kind: 'APIServiceBinding',
        metadata: { name: 'mangodb' },
        spec,
      };
      await stage.plane.kubectl(['create', '-f', '-'], { input: JSON.stringify(binding) });
      const lastTransitionTime = '2026-11-21T09:00:00Z';
      const conditions = [
        { type: 'Ready', status: 'False', message: 'not ready', lastTransitionTime },
        {
          type: 'SecretValid',
          status: 'False',
          severity: 'Error',
          message: 'Secret provider not found',
          lastTransitionTime,
        },
      ];
      const patch = JSON.stringify({ status: { conditions } });
      await stage.kubectl('patch', 'apiservicebinding', 'mangodb', '--subresource=status', '--type=merge', '-p', patch);
      const { code, stdout, stderr } = await client.run(client.admin, 'binding', 'status');
      assert.equal(code, 1, stderr);
      assert.match(stdout, /^mangodb +- +False +SecretValid: Secret provider not found$/m);
    } finally {
      await uninstall(apiServiceBindingKind);
    }
  });
});
