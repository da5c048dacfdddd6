import assert from 'node:assert/strict';
import { Memories } from '../../../../src/access/lifecycle/memory.ts';
import { requestView } from '../../../support/request-views.ts';
import { SimulatedClock } from '../../../support/simulated-clock.ts';

describe('the memory of a request', () => {
  const request = requestView();
  const namesake = requestView({ uid: 'r-2' });

  it('is the same until the request is forgotten', () => {
    const memories = new Memories(new SimulatedClock());
    const memory = memories.of(request);
    assert.equal(memories.of(request), memory);
    assert.equal(memories.find(request), memory);
    memories.forget(request.key);
    assert.equal(memories.find(request), undefined);
  });

  it('is not that of an earlier request of the same name', () => {
    const memories = new Memories(new SimulatedClock());
    const memory = memories.of(request);
    memory.childrenDeleted = true;
    assert.equal(memories.find(namesake), undefined);
    assert.equal(memories.of(namesake).childrenDeleted, false);
    assert.equal(memories.find(request), undefined);
  });
});
