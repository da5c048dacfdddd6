import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../../sandbox/wait.ts';

describe('until', () => {
  it('checks once more if a check that began in time ends after the timeout', async () => {
    const answers = [false, true];
    const condition = async (): Promise<boolean | undefined> => {
      const answer = answers.shift();
      if (answer === false) await sleep(60);
      return answer;
    };
    assert.equal(await until('the second answer', condition, { timeoutMs: 50, everyMs: 1 }), true);
  });

  it('rejects if a check that began after the timeout fails', async () => {
    await assert.rejects(
      until('nothing', () => false, { timeoutMs: 1, everyMs: 5 }),
      /^Error: waited 1 ms for nothing$/,
    );
  });
});
