import assert from 'node:assert/strict';
import { compileSelector, formatSelector, type SelectorShape } from '../../../src/kit/label-selector.ts';

function matches(selector: SelectorShape | undefined, labels: Record<string, string>): boolean {
  const compiled = compileSelector(selector);
  return 'matches' in compiled ? compiled.matches(labels) : assert.fail(compiled.error);
}

const expression = (key: string, operator: string, values?: string[]): SelectorShape => ({
  matchExpressions: [{ key, operator, ...(values ? { values } : {}) }],
});

describe('compileSelector', () => {
  it('matches nothing if absent and everything if empty', () => {
    assert.equal(matches(undefined, {}), false);
    assert.equal(matches({}, {}), true);
    assert.equal(matches({ matchLabels: {}, matchExpressions: [] }, { a: 'b' }), true);
  });

  const table: [string, SelectorShape, Record<string, string>, boolean][] = [
    ['label equal', { matchLabels: { app: 'x' } }, { app: 'x', tier: 'y' }, true],
    ['label different', { matchLabels: { app: 'x' } }, { app: 'z' }, false],
    ['label absent', { matchLabels: { app: 'x' } }, {}, false],
    ['all labels needed', { matchLabels: { a: '1', b: '2' } }, { a: '1' }, false],
    ['empty value', { matchLabels: { a: '' } }, { a: '' }, true],
    ['In', expression('a', 'In', ['1', '2']), { a: '2' }, true],
    ['In absent', expression('a', 'In', ['1']), {}, false],
    ['NotIn', expression('a', 'NotIn', ['1']), { a: '2' }, true],
    ['NotIn listed', expression('a', 'NotIn', ['1']), { a: '1' }, false],
    ['NotIn absent', expression('a', 'NotIn', ['1']), {}, true],
    ['Exists', expression('a', 'Exists'), { a: '' }, true],
    ['Exists absent', expression('a', 'Exists'), {}, false],
    ['DoesNotExist', expression('a', 'DoesNotExist'), {}, true],
    ['DoesNotExist present', expression('a', 'DoesNotExist'), { a: '1' }, false],
    ['labels and expressions', { matchLabels: { b: '1' }, ...expression('a', 'Exists') }, { a: '1' }, false],
    ['inherited names are no labels', expression('constructor', 'Exists'), {}, false],
    ['a label named constructor', { matchLabels: { constructor: 'x' } }, { constructor: 'x' }, true],
  ];
  for (const [title, selector, labels, expected] of table) {
    it(`${title}: ${expected ? 'matches' : 'does not match'}`, () => assert.equal(matches(selector, labels), expected));
  }

  const refused: [unknown, RegExp][] = [
    [expression('a', 'in', ['1']), /operator "in" is unknown; allowed are In, NotIn, Exists, DoesNotExist/],
    [expression('a', 'Gt', ['1']), /allowed are/],
    [expression('a', 'In', []), /at least one value/],
    [expression('a', 'NotIn'), /at least one value/],
    [expression('a', 'Exists', ['1']), /takes no values/],
    [expression('a b', 'Exists'), /not a label key/],
    [expression('', 'Exists'), /not a label key/],
    [{ matchLabels: { a: 'x,b=y' } }, /matchLabels\["a"\]: "x,b=y" is not a label value/],
    [{ matchLabels: { a: 1 } }, /type number/],
    [{ matchLabels: 'a=b' }, /map/],
    [{ matchExpressions: {} }, /list/],
    [{ matchExpressions: [null] }, /object with key/],
    [{ matchExpressions: [{}] }, /type undefined/],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: 'x' }] }, /list of strings/],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: [undefined] }] }, /not a label value/],
  ];
  for (const [selector, error] of refused) {
    it(`rejects ${JSON.stringify(selector)}`, () => {
      const compiled = compileSelector(selector as SelectorShape);
      assert.match('error' in compiled ? compiled.error : 'accepted', error);
    });
  }
});

describe('formatSelector', () => {
  it('prints the query for the same objects', () => {
    const formatted = formatSelector({
      matchLabels: { tier: 'back', 'app.kubernetes.io/name': 'x' },
      matchExpressions: [
        { key: 'a', operator: 'In', values: ['2', '1'] },
        { key: 'b', operator: 'NotIn', values: ['3'] },
        { key: 'c', operator: 'Exists' },
        { key: 'd', operator: 'DoesNotExist' },
      ],
    });
    assert.deepEqual(formatted, { text: 'app.kubernetes.io/name=x,tier=back,a in (1,2),b notin (3),c,!d' });
    assert.deepEqual(formatSelector({}), { text: '' });
  });

  it('rejects values that would change the query', () => {
    assert.ok('error' in formatSelector({ matchLabels: { a: 'b),c in (d' } }));
  });
});
