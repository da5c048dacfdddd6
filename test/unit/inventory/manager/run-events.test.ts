import assert from 'node:assert/strict';
import { forceAnnotation } from '../../../../src/api/inventory/names.ts';
import type { Reply } from '../../../../src/inventory/ports.ts';
import { sleep } from '../../../../src/kit/clock.ts';
import { answer, done } from '../../../support/inventory/in-memory-manager.ts';
import { memoryStage } from '../../../support/inventory/memory-stage.ts';

describe('the Events and reasons of runs', () => {
  it('include an Event for each new outcome or reason, a Warning unless the component asks for the retry', async () => {
    const replies: readonly Reply[] = [
      answer({ outcome: 'Retry', message: 'quota exceeded' }),
      answer({ outcome: 'Retry', message: 'quota still exceeded' }),
      { kind: 'failed', code: 'NotJson', message: 'no JSON' },
      { kind: 'failed', code: 'Timeout', message: 'too late' },
      { kind: 'failed', code: 'UnexpectedStatus', message: 'status 500' },
      { kind: 'notAccepted', code: 'Unreachable', message: 'connection refused' },
      { kind: 'notAccepted', code: 'Busy', message: 'status 503' },
      answer({ outcome: 'Failed', message: 'no such region' }),
    ];
    let calls = 0;
    const stage = await memoryStage([{ name: 'network' }], { network: () => replies[calls++] ?? done({}) });
    const { manager } = stage;
    stage.inventory.create({ name: 'one' });
    await stage.clock.advance(60_000);
    assert.deepEqual(
      manager.recorded.map(({ type, reason, note }) => `${type} ${reason} ${note.split('; ')[0]}`),
      [
        'Normal Retry network: Retry: quota exceeded',
        'Warning Retry network: Retry (NotJson): no JSON',
        'Warning Retry network: Retry (Timeout): too late',
        'Warning Retry network: Retry (UnexpectedStatus): status 500',
        'Warning Retry network: Retry (Unreachable): connection refused',
        'Normal Retry network: Retry (Busy): status 503',
        'Warning Failed network: Failed: no such region',
      ],
    );
  });

  it('include an Event for each new message of a Failed', async () => {
    const messages = ['no such region', 'no such region', 'no such zone'];
    const stage = await memoryStage([{ name: 'network' }], {
      network: () => answer({ outcome: 'Failed', message: messages.shift() ?? 'end' }),
    });
    const { manager } = stage;
    const { ref } = stage.inventory.create({ name: 'one' });
    for (let run = 0; run < 3; run += 1) {
      await stage.clock.advance(1000);
      stage.inventory.annotate(ref, { [forceAnnotation('network')]: `${run}` });
    }
    assert.deepEqual(
      manager.recorded.map(({ note }) => note.split('; ')[0]),
      ['network: Failed: no such region', 'network: Failed: no such zone'],
    );
  });

  it('name only the force annotation if nothing else changed during a run', async () => {
    const stage = await memoryStage([{ name: 'network' }], {
      network: async (_request, signal) => {
        await sleep(stage.clock, 1000, signal);
        return done({});
      },
    });
    const { manager } = stage;
    const { ref } = stage.inventory.create({ name: 'one' });
    await stage.clock.advance(500);
    stage.inventory.annotate(ref, { [forceAnnotation('network')]: '1' });
    await stage.clock.advance(5000);
    assert.deepEqual(
      manager.calls.map(({ run }) => run.reasons),
      [['Created'], ['Forced']],
    );
  });
});
