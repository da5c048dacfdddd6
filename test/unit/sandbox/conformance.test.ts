import assert from 'node:assert/strict';
import { page } from '../../../sandbox/conformance/page.ts';
import { broken, outcomes, share } from '../../../sandbox/conformance/reports.ts';

const spec = (text: string, State: string, LeafNodeType = 'It') => ({
  ContainerHierarchyTexts: ['[sig-x] Things'],
  LeafNodeType,
  LeafNodeText: text,
  State,
});

describe('the report of a conformance run', () => {
  const json = JSON.stringify([
    {
      SpecReports: [
        spec('work', 'passed'),
        spec('break', 'failed'),
        spec('wait', 'skipped'),
        spec('', 'passed', 'BeforeSuite'),
      ],
    },
    { SpecReports: null },
  ]);
  const bare = outcomes(json);

  it('has the tests that ran', () => {
    assert.deepEqual(
      [...bare],
      [
        ['[sig-x] Things work', 'passed'],
        ['[sig-x] Things break', 'failed'],
      ],
    );
  });

  it('counts what passes without drawbridge only', () => {
    assert.deepEqual(broken(bare, new Map([['[sig-x] Things break', 'failed']])), ['[sig-x] Things work']);
    assert.deepEqual(broken(bare, bare), []);
    assert.equal(share(bare, new Map()), '0 of 1');
  });

  it('becomes a page that names each test that drawbridge breaks', () => {
    const down = new Map([['[sig-x] Things work', 'timedout']]);
    const { text, failures } = page({
      version: 'v1',
      bare,
      up: bare,
      down,
      direct: bare,
      gateway: bare,
      deletionMs: 61_400,
    });
    assert.equal(failures, 1);
    assert.match(text, /all features up \| 1 of 1 \| none/);
    assert.match(text, /at 0 \| 0 of 1 \| \[sig-x\] Things work/);
    assert.match(text, /after 61 s/);
  });
});
