import assert from 'node:assert/strict';
import type { ReconcileRequest } from '../../../src/api/inventory/contract/request.ts';
import { deferred } from '../../../src/kit/promises.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import { InventoryStage } from '../../support/inventory/stage.ts';
import { outputsIn, patchStatus, readEntry } from '../../support/inventory/status-patch.ts';

describe('the content of an entry', function () {
  this.timeout(120_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  afterEach(async () => stage?.clear());
  after(async () => stage?.close());

  it('keeps unknown fields', async () => {
    const config = { deep: { er: [1, { y: 'ä' }] }, 'with/slash': true };
    await stage.component('novel', () => ({ outcome: 'Done', outputs: { novel: { made: config } } }));
    await stage.entry('one', { cluster: { any: { thing: 1 } }, components: { novel: { config, more: 'field' } } });
    await stage.ready('one');
    const { content } = await stage.get('one');
    assert.deepEqual((content.spec as { cluster: unknown }).cluster, { any: { thing: 1 } });
    assert.deepEqual((content.spec as { components: unknown }).components, {
      novel: { enabled: true, config, more: 'field' },
    });
    assert.deepEqual(content.status.outputs['novel'], { made: config });
  });

  it('is immediately visible to other components', async () => {
    let [turns, both] = [0, 0];
    const met = deferred();
    const seen: (number | undefined)[] = [];
    const ball = [deferred(), deferred()];
    const rounds = 10;
    // One component writes and the other reads, in both directions.
    for (const [name, other, first] of [
      ['ping', 'pong', true],
      ['pong', 'ping', false],
    ] as const) {
      const [mine, theirs] = first ? [0, 1] : [1, 0];
      await stage.component(
        name,
        async (run) => {
          both += 1;
          if (both === 2) met.resolve();
          await met.promise;
          for (let i = 1; i <= rounds; i++) {
            if (!first || i > 1) {
              await ball[mine]?.promise;
              ball[mine] = deferred();
              const { body } = await readEntry(run);
              seen.push(outputsIn(body)?.[other]?.count);
            }
            turns += 1;
            const { status, body } = await patchStatus(run, { status: { outputs: { [name]: { count: turns } } } });
            if (status !== 200) return { outcome: 'Failed', message: body.slice(0, 500) };
            ball[theirs]?.resolve();
          }
          return { outcome: 'Done' };
        },
        { timeoutSeconds: 30 },
      );
    }
    await stage.entry('one');
    await stage.ready('one');
    assert.deepEqual(
      seen,
      Array.from({ length: 2 * rounds - 1 }, (_, i) => i + 1),
    );
  });

  it('accepts one of two patches of the same version, and rejects the other with Conflict', async () => {
    const verdicts: number[][] = [];
    const stored: unknown[] = [];
    await stage.component('network', async (run) => {
      const writeTwice = async () => {
        const { metadata } = JSON.parse((await readEntry(run)).body) as { metadata: { resourceVersion: string } };
        const { resourceVersion } = metadata;
        const write = (by: string) =>
          patchStatus(run, { metadata: { resourceVersion }, status: { outputs: { network: { by } } } });
        return Promise.all([write('a'), write('b')]);
      };
      let said = await writeTwice();
      // The server wrote the status of the entry after the read.
      while (said.every(({ status }) => status === 409)) said = await writeTwice();
      verdicts.push(said.map(({ status }) => status).sort());
      const winner = said.find(({ status }) => status === 200);
      stored.push(outputsIn(winner?.body), outputsIn((await readEntry(run)).body));
      return { outcome: 'Done' };
    });
    await stage.entry('one');
    await stage.ready('one');
    assert.deepEqual(verdicts, [[200, 409]]);
    assert.deepEqual(stored[0], stored[1]);
    assert.notEqual(stored[0], undefined);
  });

  it('rejects writes of a finished run and of paths that the component does not own', async () => {
    const runs: ReconcileRequest[] = [];
    const refused: { status: number; body: string }[] = [];
    await stage.component('network', async (run) => {
      runs.push(run);
      refused.push(await patchStatus(run, { status: { outputs: { cluster: { mine: true } } } }));
      return { outcome: 'Done' };
    });
    await stage.entry('one');
    await stage.ready('one');
    const [first] = runs;
    assert.ok(first);
    assert.equal(refused[0]?.status, 403);
    assert.match(refused[0]?.body ?? '', /ForeignPath/);
    const late = await patchStatus(first, { status: { outputs: { network: { late: true } } } });
    assert.equal(late.status, 403);
    assert.match(late.body, /NoSuchRun/);
    assert.deepEqual((await stage.get('one')).content.status.outputs, {});
  });

  it('is rejected above 64 KiB with its size, including published outputs', async () => {
    const network = await stage.component('network', () => ({
      outcome: 'Done',
      outputs: { network: { big: 'x'.repeat(70_000) } },
    }));
    await stage.entry('one');
    await stage.until('the outputs to be refused', () => network.calls.length > 0);
    await stage.until('a row that says so', async () => {
      const [row] = (await stage.get('one')).components;
      return row?.state === 'Failed' || row?.state === 'Retrying';
    });
    await assert.rejects(
      stage.patch('one', { spec: { cluster: { big: 'x'.repeat(70_000) } } }),
      (error: unknown) => error instanceof ApiError && /7\d{4} bytes; at most 65536 are allowed/.test(error.message),
    );
  });
});
