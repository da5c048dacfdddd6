import assert from 'node:assert/strict';
import { allTrue } from '../../../src/access/conditions.ts';
import { condition } from '../../support/request-views.ts';

describe('conditions', () => {
  it('are all true only if each of the types exists and is True', () => {
    const conditions = [condition('A', 'True'), condition('B', 'False'), condition('C', 'True')];
    assert.equal(allTrue(conditions, ['A', 'C']), true);
    assert.equal(allTrue(conditions, ['A', 'B']), false);
    assert.equal(allTrue(conditions, ['A', 'D']), false);
  });
});
