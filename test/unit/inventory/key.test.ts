import assert from 'node:assert/strict';
import { keyText, parseKey, parseRunId, runId } from '../../../src/inventory/key.ts';

const key = { entryUid: '83d0108f-9d20-4542-a004-05461b83aa91', component: 'connectivity-proxy' };

describe('the key of a component of an entry', () => {
  it('round-trips through its text', () => assert.deepEqual(parseKey(keyText(key)), key));
  it('round-trips through a run ID', () => assert.deepEqual(parseRunId(runId(key, 17)), { ...key, seq: 17 }));

  for (const text of ['', 'u', 'u/', '/c', 'u/c/d']) {
    it(`rejects ${JSON.stringify(text)}`, () => assert.equal(parseKey(text), undefined));
  }
  for (const id of ['', 'u.c', 'u.c.0', 'u.c.01', 'u.c.1.2', 'u.C.1', '../u.c.1', 'u.c.9999999999999999', 'u.c.1\n']) {
    it(`rejects the run ID ${JSON.stringify(id)}`, () => assert.equal(parseRunId(id), undefined));
  }
});
