import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FaultProxy } from '../../../sandbox/fault-proxy.ts';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import type { RunRecord } from '../../../src/inventory/core/run-record.ts';
import { report } from '../../support/inventory/run-report.ts';
import type { Script } from '../../support/inventory/scripted-component.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { sharedPlane } from '../../support/plane.ts';

const outageMs = 5000;
/** The server reports unready after 90 s without events. */
const unreadyWithinMs = 92_000;
/** Due in the middle of an outage, even if a busy machine starts it late. */
const dueSeconds = 4;
/** No run is due after an outage within this time. */
const restMs = 1_800_000;

const replicas = [
  { who: 'a single replica', flags: [], elected: false },
  { who: 'a leader', flags: ['--leader-elect=true', '--identity=leader'], elected: true },
];
const outages = [
  {
    how: 'refuses connections',
    quiet: false,
    begin: (proxy: FaultProxy): void => {
      proxy.refuse();
      proxy.resetAll();
    },
  },
  { how: 'answers nothing any more', quiet: true, begin: (proxy: FaultProxy): void => proxy.stall() },
];

for (const { who, flags, elected } of replicas) {
  describe(`an API server outage for ${who} of the inventory`, function () {
    this.timeout(300_000);
    let proxy: FaultProxy;
    let stage: InventoryStage;
    /** Calls as `<component> <operation> <entry>`. */
    let calls: string[];
    /** IDs of all called runs. */
    let runs: string[];
    /** Script of `network` by entry name; other entries are Done. */
    const scripts = new Map<string, Script>();

    before(async () => {
      const plane = await sharedPlane();
      await plane.kubectl(['delete', 'lease', '-n', 'drawbridge-system', 'drawbridge-inventory', '--ignore-not-found']);
      proxy = await plane.proxy();
      stage = await InventoryStage.open(flags, { apiserver: proxy.server });
    });
    beforeEach(() => {
      calls = [];
      runs = [];
    });
    afterEach(async () => {
      scripts.clear();
      await proxy?.pass();
      await stage?.clear();
    });
    after(async () => {
      await stage?.close();
      await proxy?.close();
    });

    const cases = outages.flatMap(({ how, begin, quiet }) => [
      { how: `${how} for ${outageMs / 1000} s`, begin, long: false },
      // Once is enough: test/unit/kube/list-watch.test.ts shows when a kind is stale.
      ...(quiet && !elected ? [{ how: `${how} until the server is not ready`, begin, long: true }] : []),
    ]);
    for (const { how, begin, long } of cases) {
      it(`and ${how}: calls nothing, and loses or repeats nothing when it is back`, async () => {
        await component('network', (request) => scripts.get(nameOf(request))?.(request) ?? { outcome: 'Done' });
        await component('reader', () => ({ outcome: 'Done' }), { reads: ['/status/outputs/network'] });
        const names = ['held', 'reporting', 'due', 'changed', 'untouched'];
        await Promise.all([...names, 'deleted'].map((name) => stage.entry(name)));
        await stage.ready(...names, 'deleted');

        const answer = Promise.withResolvers<void>();
        const outputs = { network: { vnetName: 'v-1' } };
        await called('held', () => answer.promise.then(() => ({ outcome: 'Done', outputs })));
        const reporting = await called('reporting', () => ({ status: 202, body: { leaseSeconds: 300 } }));
        await recorded(reporting, ({ asynchronous }) => asynchronous);
        const due = await called('due', () => ({ outcome: 'Progressing', requeueAfterSeconds: dueSeconds }));
        scripts.delete('due');
        await recorded(due, ({ phase }) => phase === 'Idle');

        begin(proxy);
        const awayMs = performance.now();
        calls = [];
        const taken = reportUntilTaken(reporting, { outcome: 'Done', outputs });
        // Surface failures before they are awaited.
        taken.catch(() => undefined);
        answer.resolve();
        await Promise.all([configure('changed', 1), stage.delete('deleted'), stage.entry('created')]);
        await sleep(Math.max(0, awayMs + outageMs - performance.now()));
        if (elected) await stage.until('it to lead no more', leadsNoMore);
        if (long) await unready(awayMs);
        assert.equal((await stage.server.health('livez')).status, 200, 'a restart would not help');
        assert.deepEqual(calls, []);

        await proxy.pass();
        const backMs = performance.now();
        await stage.gone('deleted');
        // A refused report fails the test at once, with its status.
        await Promise.all([taken, stage.ready(...names, 'created')]);
        await stage.until('all to be at rest', () => atRest([...names, 'created'].length * 2));
        console.log(`      all is well ${(performance.now() - backMs).toFixed(0)} ms after the return`);
        await stage.until('it to be ready', async () => (await stage.server.health('readyz')).ok);
        assert.deepEqual(calls.sort(), [
          'network delete deleted',
          'network reconcile changed',
          'network reconcile created',
          'network reconcile due',
          // A former leader has closed its connections; another may have led meanwhile.
          ...(elected ? ['network reconcile held'] : []),
          'reader delete deleted',
          'reader reconcile created',
          'reader reconcile held',
          'reader reconcile reporting',
        ]);
        assert.equal(new Set(runs).size, runs.length, 'no run is called twice');
      });
    }

    async function component(name: string, does: Script, spec: Readonly<Record<string, unknown>> = {}): Promise<void> {
      const it = await stage.component(name, does, { timeoutSeconds: 30, ...spec });
      it.onCall(({ request }) => {
        calls.push(`${name} ${request.operation} ${nameOf(request)}`);
        runs.push(request.run.id);
      });
    }

    /** Changes the entry and returns the resulting call, which `script` answers. */
    async function called(name: string, script: Script): Promise<ReconcileRequest> {
      const run = Promise.withResolvers<ReconcileRequest>();
      scripts.set(name, (request) => {
        run.resolve(request);
        return script(request);
      });
      await configure(name, 0);
      return run.promise;
    }

    const nameOf = ({ entry }: ReconcileRequest): string => entry.url.split('/').at(-1) ?? '';

    const configure = (name: string, size: number): Promise<unknown> =>
      stage.patch(name, { spec: { components: { network: { config: { size } } } } });

    const recorded = ({ entry, run }: ReconcileRequest, as: (record: RunRecord) => boolean): Promise<void> =>
      stage.until(`run ${run.id} to be recorded`, async () =>
        (await stage.records()).some((record) => record.entry.uid === entry.id && record.seq === run.seq && as(record)),
      );

    async function reportUntilTaken(run: ReconcileRequest, outcome: object): Promise<void> {
      for (;;) {
        // A component also reports again if the connection breaks.
        const status = await report(run, outcome).catch((error: unknown) => {
          if (!(error instanceof TypeError)) throw error;
          console.log(`      a report broke off: ${String(error.cause ?? error)}`);
          return 503;
        });
        if (status === 200) return;
        if (status !== 503)
          assert.equal(status, 503, `a report was answered with ${status}\n${await stage.server.log()}`);
        await sleep(250);
      }
    }

    const leadsNoMore = async (): Promise<boolean> => {
      const transitions = [...(await stage.server.log()).matchAll(/(no longer )?leading/g)];
      return transitions.at(-1)?.[1] !== undefined;
    };

    async function unready(awayMs: number): Promise<void> {
      const look = async (): Promise<boolean> => (await stage.server.health('readyz')).status === 503;
      await stage.until('it not to be ready', look, 2 * unreadyWithinMs);
      const tookMs = performance.now() - awayMs;
      assert.ok(tookMs < unreadyWithinMs, `${tookMs} ms`);
    }

    /** Checks that each run ended once, and that the last outcome of each key is stored. */
    async function atRest(keys: number): Promise<boolean> {
      const records = await stage.records();
      return (
        records.length === keys &&
        records.every(
          ({ phase, credentialId, seq, lastOutcome, nextAtMs = 0 }) =>
            phase === 'Idle' &&
            credentialId === undefined &&
            lastOutcome?.outcome === 'Done' &&
            lastOutcome.seq === seq &&
            nextAtMs > Date.now() + restMs,
        )
      );
    }
  });
}
