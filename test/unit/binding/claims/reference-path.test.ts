import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseReferencePath, type ReferencePath, referencesIn } from '../../../../src/binding/claims/reference-path.ts';

function path(text: string): ReferencePath {
  const parsed = parseReferencePath(text);
  assert.ok(!('problem' in parsed), 'problem' in parsed ? parsed.problem : '');
  return parsed;
}

const found = (object: unknown, name: string, namespace?: string): string[] =>
  referencesIn(object, path(name), namespace === undefined ? undefined : path(namespace)).map(
    (one) => `${one.namespace ?? '-'}/${one.name}`,
  );

describe('paths of references', () => {
  const kettle = {
    spec: {
      secretRef: { name: ' boiler ', namespace: 'kitchen' },
      refs: [{ name: 'a', namespace: 'x' }, { name: 'b' }, { namespace: 'z' }, { name: 'd', namespace: 'y' }, 'text'],
      rooms: [
        { room: 'one', refs: [{ name: 'p' }, { name: 'q' }] },
        { room: 'two', refs: [{ name: 'r' }] },
      ],
      names: ['n1', 'n2', ['n3']],
      namespaces: ['s1', 's2'],
      home: 'kitchen',
      'dotted.name': { name: 'dot' },
      7: { name: 'seven' },
      number: 5,
      empty: '',
      nothing: null,
    },
  };
  const cases: readonly [string, string, string | undefined, string[]][] = [
    ['a field, trimmed', 'spec.secretRef.name', undefined, ['-/boiler']],
    ['a field with its namespace', 'spec.secretRef.name', 'spec.secretRef.namespace', ['kitchen/boiler']],
    ['every element', 'spec.refs.#.name', undefined, ['-/a', '-/b', '-/d']],
    ['each element with its own namespace', 'spec.refs.#.name', 'spec.refs.#.namespace', ['x/a', '-/b', 'y/d']],
    ['one element by its number', 'spec.refs.3.name', 'spec.refs.3.namespace', ['y/d']],
    ['a list within a list', 'spec.rooms.#.refs.#.name', undefined, ['-/p', '-/q', '-/r']],
    ['elements in the namespace above', 'spec.rooms.#.refs.#.name', 'spec.rooms.#.room', ['one/p', 'one/q', 'two/r']],
    ['elements with one namespace for all', 'spec.refs.#.name', 'spec.home', ['kitchen/a', 'kitchen/b', 'kitchen/d']],
    ['a list of names', 'spec.names', undefined, ['-/n1', '-/n2', '-/n3']],
    ['nothing if several namespaces are possible', 'spec.names', 'spec.namespaces', []],
    ['a dot within a name', 'spec.dotted\\.name.name', undefined, ['-/dot']],
    ['a number as the name of a field', 'spec.7.name', undefined, ['-/seven']],
    ['nothing where there is no such field', 'spec.other.name', undefined, []],
    ['nothing where the list is no list', 'spec.secretRef.#.name', undefined, []],
    ['nothing where the object is a list', 'spec.refs.name', undefined, []],
    ['nothing in a value that is no string', 'spec.number', undefined, []],
    ['nothing in an empty string', 'spec.empty', undefined, []],
    ['nothing in null', 'spec.nothing.name', undefined, []],
    ['nothing in an inherited property', 'spec.constructor.name', undefined, []],
  ];
  for (const [what, name, namespace, expected] of cases) {
    it(`find ${what}`, () => assert.deepEqual(found(kettle, name, namespace), expected));
  }

  const refused: readonly [string, RegExp][] = [
    ['', /is empty/],
    ['spec..name', /an empty part/],
    ['.spec.name', /an empty part/],
    ['spec.name.', /an empty part/],
    ['spec.refs.#', /ends with #/],
    ['spec.refs[*].name', /unsupported "\["/],
    ['spec.refs.*.name', /unsupported "\*"/],
    ['spec.re?s.name', /unsupported "\?"/],
    ['spec.refs.#(kind=="Secret").name', /unsupported "\("|more than a #/],
    ['spec.refs.##.name', /more than a #/],
    ['spec.refs.@reverse.0.name', /unsupported "@"/],
    ['spec.refs|0.name', /unsupported "\|"/],
    ['$.spec.name', /unsupported "\$"/],
    ['{spec.name}', /unsupported "\{"/],
    ['spec.name\\', /ends within an escape/],
    [`spec.${'a'.repeat(600)}`, /longer than/],
  ];
  for (const [text, expected] of refused) {
    it(`reject ${JSON.stringify(text.slice(0, 40))} with a reason`, () => {
      const parsed = parseReferencePath(text);
      assert.ok('problem' in parsed);
      assert.match(parsed.problem, expected);
      assert.match(parsed.problem, /allowed are names/);
    });
  }

  it('find any field under its escaped name', () => {
    const name = fc.string({ minLength: 1 }).filter((text) => text !== '__proto__');
    fc.assert(
      fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), (fields) => {
        let object: unknown = 'target';
        for (const field of [...fields].reverse()) object = Object.fromEntries([[field, object]]);
        const text = fields.map((field) => field.replaceAll(/./gsu, (each) => `\\${each}`)).join('.');
        fc.pre(text.length <= 512 && !/[\uD800-\uDFFF]/.test(text));
        assert.deepEqual(found(object, text), ['-/target']);
      }),
      { seed: 11, numRuns: 200 },
    );
  });

  it('pair every name with the namespace of its own element, even if fields are missing', () => {
    const word = fc.constantFrom('a', 'b', 'c', 'd');
    const element = fc.record({ name: word, namespace: word }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.array(fc.oneof(element, fc.constant(null), fc.array(element))), (refs) => {
        const expected = refs.flatMap((ref) =>
          ref && !Array.isArray(ref) && ref.name ? [`${ref.namespace ?? '-'}/${ref.name}`] : [],
        );
        assert.deepEqual(found({ refs }, 'refs.#.name', 'refs.#.namespace'), expected);
      }),
      { seed: 12, numRuns: 300 },
    );
  });

  it('never throw for any path and any object', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.jsonValue(), (name, namespace, object) => {
        const paths = [name, namespace].map((text) => parseReferencePath(text));
        const [first, second] = paths;
        if (!first || !second || 'problem' in first || 'problem' in second) return;
        for (const one of referencesIn(object, first, second)) assert.notEqual(one.name, '');
      }),
      { seed: 13, numRuns: 500 },
    );
  });
});
