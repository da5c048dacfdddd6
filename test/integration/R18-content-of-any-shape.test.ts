import assert from 'node:assert/strict';
import { request } from 'node:https';
import type { ReconcileRequest } from '../../src/api/inventory/contract/request.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { InventoryStage } from '../support/inventory/stage.ts';

/** What a component does with nothing but what the request gives it. */
function patchStatus({ entry, auth }: ReconcileRequest, patch: unknown): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const call = request(
      `${entry.url}/status`,
      {
        method: 'PATCH',
        ca: auth.ca,
        headers: { authorization: `Bearer ${auth.token}`, 'content-type': 'application/merge-patch+json' },
      },
      (answer) => {
        let body = '';
        answer.on('data', (bytes: Buffer) => {
          body += bytes.toString('utf8');
        });
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
      },
    );
    call.on('error', reject);
    call.end(JSON.stringify(patch));
  });
}

describe('the content of an entry', function () {
  this.timeout(120_000);
  let stage: InventoryStage;

  before(async () => {
    stage = await InventoryStage.open();
  });
  afterEach(async () => stage?.clear());
  after(async () => stage?.close());

  it('may have fields that nobody has heard of, and keeps them', async () => {
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

  it('loses nothing when two components write it at the same time, and each sees what it wrote', async () => {
    const rounds = 25;
    for (const name of ['left', 'right']) {
      await stage.component(
        name,
        async (run) => {
          for (let i = 1; i <= rounds; i++) {
            const { status, body } = await patchStatus(run, { status: { outputs: { [name]: { count: i } } } });
            if (status !== 200) return { outcome: 'Failed', message: `${status} ${body}`.slice(0, 500) };
            const seen = JSON.parse(body) as { status: { outputs: Record<string, { count: number }> } };
            if (seen.status.outputs[name]?.count !== i) return { outcome: 'Failed', message: 'not what it wrote' };
          }
          return { outcome: 'Done' };
        },
        { timeoutSeconds: 30 },
      );
    }
    await stage.entry('one');
    await stage.ready('one');
    const { content } = await stage.get('one');
    assert.deepEqual(content.status.outputs, { left: { count: rounds }, right: { count: rounds } });
    const records = await stage.records();
    assert.deepEqual(
      records.map(({ seq, lastOutcome }) => [seq, lastOutcome?.outcome]),
      [
        [1, 'Done'],
        [1, 'Done'],
      ],
    );
  });

  it('cannot be written by a run that is over, nor beside what the component owns', async () => {
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

  it('is refused above 64 KiB with its size, and what is published too', async () => {
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
      (error: unknown) => error instanceof ApiError && /7\d{4} bytes, and may have 65536/.test(error.message),
    );
  });
});
