import assert from 'node:assert/strict';
import { failure, mergeConditions, sameConditions } from '../../../src/access/conditions.ts';

const nowMs = Date.UTC(2026, 10, 21, 9, 0, 0);

describe('conditions', () => {
  it('are cut to what the API takes, and not written again for what was cut off', () => {
    const finding = failure('AccessResourcesCreated', 'ResourceRefused', 'no'.repeat(30_000));
    const first = mergeConditions({ generation: 1, conditions: [] }, [finding], nowMs);
    assert.equal(first[0]?.message.length, 32_768);
    const again = mergeConditions({ generation: 1, conditions: first }, [finding], nowMs + 1000);
    assert.ok(sameConditions(first, again));
  });
});
