import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../sandbox/wait.ts';
import type { ReconcileRequest } from '../../src/api/inventory/contract/request.ts';
import { BoundObject, boundKind } from '../support/binding/bound-object.ts';
import { installEarlier, isEarlierKnown } from '../support/earlier-release.ts';
import { NodeComponent } from '../support/inventory/node-component.ts';
import { installLimitMs, NodeStage } from '../support/node-stage.ts';
import { commandsOf } from '../support/page-commands.ts';

const page = 'docs/tasks/upgrade.md';
const [upgrade = ''] = commandsOf(page, 'helm upgrade');
const [, rollback = ''] = commandsOf(page, 'helm rollback');
const values = `--set features.access=false --set features.binding=true --set features.inventory=true \
  --set 'binding.bindable={${boundKind}}' --set 'inventory.namespaces={fleet}'`;
const steps = [
  { step: 'the upgrade', command: `${upgrade} --set image.tag=`, heat: 60, region: 'west' },
  { step: 'the rollback', command: rollback.replace('REVISION', '1'), heat: 80, region: 'north' },
] as const;

(isEarlierKnown ? describe : describe.skip)('with binding and the inventory on a real node,', function () {
  this.timeout(240_000);
  let stage: NodeStage;
  let bound: BoundObject;
  /** Of the copy at the provider, as the earlier version created it. */
  let uid: string;
  let component: NodeComponent;

  before(async function () {
    this.timeout(installLimitMs);
    stage = await NodeStage.bare();
    await uninstall();
    await stage.apply(
      ...['fleet', 'team-a'].map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
    );
    await installEarlier(stage, values);
    bound = await BoundObject.open(stage, 'team-a');
    uid = await bound.copyWith(100);
    component = await NodeComponent.register(stage, 'fleet');
    await component.run('steady', 'east');
    await component.whenReady('steady');
    component.slow.add('slow');
  });
  after(async function () {
    this.timeout(installLimitMs);
    await component?.close();
    await bound?.close();
    await uninstall();
  });

  for (const { step, command, heat, region } of steps)
    describe(step, () => {
      /** Of `slow`: begun before the step, and reported after it. */
      let open: ReconcileRequest;
      /** What was not ready meanwhile, and why. */
      let faults: readonly string[];
      let calls: { readonly steady: number; readonly slow: number };

      before(async () => {
        open = await component.run('slow', region);
        await component.whenAwaited('slow');
        calls = { steady: await component.calls('steady'), slow: await component.calls('slow') };
        faults = await watched(() => replace(command, () => bound.heatTo(heat)));
      });

      it('keeps kind and entry ready all the time, and the binding except while it connects again', async () => {
        const others = faults.filter((fault) => fault !== 'the binding: InformersSyncing');
        assert.deepEqual(others, []);
        await bound.whenReady();
      });

      it('keeps the copy of a bound object, with what changed meanwhile', async () => {
        assert.equal(await bound.copyWith(heat), uid);
      });

      it('is followed by syncing in both directions', async () => {
        await bound.heatTo(heat + 1);
        assert.equal(await bound.copyWith(heat + 1), uid);
        await bound.answer(`boiling after ${step}`);
      });

      it('starts no run, and a change of an entry starts one', async () => {
        assert.equal(await component.calls('steady'), calls.steady);
        await component.run('steady', region);
        await component.whenReady('steady');
        assert.equal(await component.calls('steady'), calls.steady + 1);
      });

      it('is followed by the report of a run that began before, and was not started again', async () => {
        assert.match(await component.report(open, { outcome: 'Done', outputs: { cluster: { region } } }), / 200$/);
        await component.whenReady('slow');
        assert.deepEqual((await component.entry('slow')).status?.outputs, { cluster: { region } });
        assert.equal(await component.calls('slow'), calls.slow);
      });
    });

  const replicas = () => stage.pods(stage.system, 'app.kubernetes.io/name=drawbridge');

  /** Resolves once every replica of before has ended; `change` is made while they are replaced. */
  async function replace(command: string, change: () => Promise<void>): Promise<void> {
    const before = (await replicas()).map(({ metadata }) => metadata.uid);
    await stage.sh(command);
    await change();
    await stage.rolledOut();
    const haveEnded = async (): Promise<boolean> =>
      (await replicas()).every(({ metadata }) => !before.includes(metadata.uid));
    await until('the replicas of before to end', haveEnded, { timeoutMs: 90_000 });
  }

  /** Resolves to what was not ready at some time during the work, and why. */
  async function watched(work: () => Promise<void>): Promise<string[]> {
    const faults = new Set<string>();
    let isDone = false;
    const done = work().finally(() => {
      isDone = true;
    });
    while (!isDone) {
      for (const fault of await bound.faults()) faults.add(fault);
      if (!(await component.isReady('steady'))) faults.add('the entry');
      await sleep(200);
    }
    await done;
    return [...faults];
  }

  async function uninstall(): Promise<void> {
    if (await stage.isInstalled()) await stage.sh(`helm uninstall drawbridge -n ${stage.system} --timeout 5m`);
  }
});
