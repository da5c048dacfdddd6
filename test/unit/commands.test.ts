import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { stopSignal } from '../../src/commands.ts';

describe('signals to the process', () => {
  const cases: [first: 'SIGTERM' | 'SIGINT', second: 'SIGTERM' | 'SIGINT'][] = [
    ['SIGTERM', 'SIGTERM'],
    ['SIGTERM', 'SIGINT'],
    ['SIGINT', 'SIGTERM'],
    ['SIGINT', 'SIGINT'],
  ];
  for (const [first, second] of cases) {
    it(`stop the command with ${first}, and end the process at once with a ${second} after it`, () => {
      const signals = new EventEmitter();
      const exits: number[] = [];
      const stop = stopSignal(signals, (code) => exits.push(code));
      assert.equal(stop.aborted, false);
      signals.emit(first);
      assert.deepEqual([stop.reason.message, exits], [`received ${first}`, []]);
      signals.emit(second);
      assert.deepEqual(exits, [1]);
    });
  }
});
